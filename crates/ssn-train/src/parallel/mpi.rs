//! Ranks that are processes of an MPI launcher.

#![allow(unsafe_code, reason = "what MPI promises about threads no compiler can check")]

use std::sync::Arc;

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives, Equivalence};
use ssn_nn::communicator::Communicator;
use ssn_nn::error::{NnError, Result};

/// MPI takes counts as 32-bit numbers; what is longer goes in parts.
const MOST_AT_ONCE: usize = 1 << 28;

/// This process among those that a launcher started. MPI ends with this value.
pub struct MpiWorld {
    comm: Arc<MpiCommunicator>,
    _universe: Universe,
}

impl MpiWorld {
    /// Takes part. Once per process.
    ///
    /// # Errors
    /// MPI has been started already, or does not allow calls from several threads.
    pub fn join() -> Result<Self> {
        let failed = |reason: &str| NnError::communicator(reason);
        let (universe, threading) = mpi::initialize_with_threading(Threading::Multiple)
            .ok_or_else(|| failed("MPI has been started already"))?;
        if threading < Threading::Multiple {
            return Err(failed(
                "this MPI does not allow calls from several threads at once (MPI_THREAD_MULTIPLE)",
            ));
        }
        let comm = Arc::new(MpiCommunicator::new(universe.world().duplicate()));
        Ok(Self { comm, _universe: universe })
    }

    /// The communicator of all processes.
    pub fn communicator(&self) -> Arc<dyn Communicator> {
        self.comm.clone()
    }

    /// Ends all processes at once with an exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.comm.communicator.0.abort(code)
    }
}

/// A communicator of processes.
#[derive(Debug)]
struct MpiCommunicator {
    rank: usize,
    size: usize,
    communicator: Shared,
}

struct Shared(SimpleCommunicator);

// SAFETY: MPI was started with MPI_THREAD_MULTIPLE, which allows calls from any thread; a communicator is a handle that
// these calls do not change. `Communicator` asks its callers for one order of collective calls on each communicator.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("communicator")
    }
}

impl MpiCommunicator {
    fn new(communicator: SimpleCommunicator) -> Self {
        let [rank, size] = [communicator.rank(), communicator.size()].map(|number| number.max(0) as usize);
        Self { rank, size, communicator: Shared(communicator) }
    }

    fn sum<T: Equivalence + Copy + Default>(&self, numbers: &mut [T]) -> Result<()> {
        let mut sums = vec![T::default(); numbers.len().min(MOST_AT_ONCE)];
        for part in numbers.chunks_mut(MOST_AT_ONCE) {
            let sums = &mut sums[..part.len()];
            self.communicator.0.all_reduce_into(&*part, sums, SystemOperation::sum());
            part.copy_from_slice(sums);
        }
        Ok(())
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.size
    }

    fn all_reduce_f32(&self, numbers: &mut [f32]) -> Result<()> {
        self.sum(numbers)
    }

    fn all_reduce_f64(&self, numbers: &mut [f64]) -> Result<()> {
        self.sum(numbers)
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        // A message has a byte before it, so that none is empty: the address of nothing means something else to MPI.
        let bytes = [&[0], bytes].concat();
        let mut counts = vec![0i32; self.size];
        let count =
            i32::try_from(bytes.len()).map_err(|_| NnError::communicator("a message has more than 2 GiB"))?;
        self.communicator.0.all_gather_into(&count, &mut counts[..]);
        let starts: Vec<i32> = counts
            .iter()
            .scan(0i32, |start, count| {
                let here = *start;
                *start = start.saturating_add(*count);
                Some(here)
            })
            .collect();
        let total: usize = counts.iter().map(|count| *count as usize).sum();
        let mut all = vec![0u8; total];
        let mut parts = PartitionMut::new(&mut all[..], &counts[..], &starts[..]);
        self.communicator.0.all_gather_varcount_into(&bytes[..], &mut parts);
        let mut rest = all.as_slice();
        let mut take = |count: &i32| {
            let (part, after) = rest.split_at(*count as usize);
            rest = after;
            part[1..].to_vec()
        };
        Ok(counts.iter().map(&mut take).collect())
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Arc::new(Self::new(self.communicator.0.duplicate())))
    }
}
