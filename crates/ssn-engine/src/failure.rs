//! Errors of the library as exit codes, and choices of the command line in its terms.

use ssn::{Error, ErrorKind};
use ssn_cli::args;
use ssn_cli::{Exit, Failure};
use ssn_train::run::CheckpointChoice;

/// The failure for an error of the library.
pub fn failure(error: Error) -> Failure {
    let exit = match error.kind {
        ErrorKind::ProblemsFound => Exit::ProblemsFound,
        ErrorKind::Usage => Exit::Usage,
        ErrorKind::BadData => Exit::BadData,
        ErrorKind::Unavailable => Exit::Unavailable,
        ErrorKind::Internal => Exit::Internal,
        ErrorKind::Io => Exit::Io,
        ErrorKind::Stopped => Exit::Stopped,
        ErrorKind::NonFinite => Exit::NonFinite,
        ErrorKind::OutOfMemory => Exit::OutOfMemory,
    };
    Failure::new(exit, error.message)
}

/// Which checkpoint of a run.
pub fn which(checkpoint: args::Checkpoint) -> CheckpointChoice {
    match checkpoint {
        args::Checkpoint::Best => CheckpointChoice::Best,
        args::Checkpoint::Last => CheckpointChoice::Last,
    }
}
