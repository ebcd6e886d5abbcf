//! Errors of the library as exit codes, and choices of the command line in its terms.

use ssn::Error;
use ssn_cli::Failure;
use ssn_cli::args;
use ssn_train::run::CheckpointChoice;

/// The failure for an error of the library.
pub fn failure(error: Error) -> Failure {
    Failure::new(error.kind.into(), error.message)
}

/// Which checkpoint of a run.
pub fn which(checkpoint: args::Checkpoint) -> CheckpointChoice {
    match checkpoint {
        args::Checkpoint::Best => CheckpointChoice::Best,
        args::Checkpoint::Last => CheckpointChoice::Last,
    }
}
