//! Training by the processes that a launcher of parallel programs started, if it started several.

use std::sync::Arc;

use ssn::ErrorKind;
use ssn_cli::Failure;
use ssn_nn::communicator::Communicator;

/// The processes of a launcher.
pub struct World {
    #[cfg(feature = "mpi")]
    mpi: ssn_train::parallel::mpi::MpiWorld,
    /// Without MPI nobody joins.
    #[cfg(not(feature = "mpi"))]
    mpi: std::convert::Infallible,
}

impl World {
    /// Joins the others; nothing if this process is alone.
    #[cfg(feature = "mpi")]
    pub fn join() -> Result<Option<Self>, Failure> {
        let Some(launched) = ssn::data::launched() else { return Ok(None) };
        let mpi = ssn_train::parallel::mpi::MpiWorld::join().map_err(ssn::Error::from)?;
        let found = mpi.communicator().world_size();
        if found != launched.size {
            // Each would train a network of its own.
            return Err(Failure::new(
                ErrorKind::Unavailable,
                format!(
                    "a launcher started {} processes, but MPI sees {found} of them: start them with the mpirun of the MPI that \
                     ssn-engine was built with, or by `srun --mpi=pmix`",
                    launched.size
                ),
            ));
        }
        Ok(Some(Self { mpi }))
    }

    /// Refuses to be one of several without MPI: each would train a network of its own.
    #[cfg(not(feature = "mpi"))]
    pub fn join() -> Result<Option<Self>, Failure> {
        match ssn::data::launched() {
            None => Ok(None),
            Some(launched) => Err(Failure::new(
                ErrorKind::Unavailable,
                format!(
                    "a launcher started {} processes, but this ssn-engine was built without MPI; build it with \
                     `cargo build --release --package ssn-engine --features mpi`, or start one process",
                    launched.size
                ),
            )),
        }
    }

    /// The processes as ranks.
    pub fn ranks(&self) -> Arc<dyn Communicator> {
        #[cfg(feature = "mpi")]
        return self.mpi.communicator();
        #[cfg(not(feature = "mpi"))]
        match self.mpi {}
    }

    /// Tells why this process cannot go on, and ends all: the others would wait for it for ever.
    pub fn end_all(&self, failure: &Failure) -> ! {
        failure.tell();
        #[cfg(feature = "mpi")]
        self.mpi.abort(failure.kind as i32);
        #[cfg(not(feature = "mpi"))]
        match self.mpi {}
    }
}
