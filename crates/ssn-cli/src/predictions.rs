//! What the verbs about predictions share.

use ssn_core::CoreError;
use ssn_predictions::PredictionError;
use ssn_volume::Problem;

use crate::exit::{Exit, Failure};

/// A failure of the predictions crate: bad data, unless the system refused.
pub fn failure(error: PredictionError) -> Failure {
    let exit = match &error {
        PredictionError::File(file) if matches!(file.problem, Problem::Io(_)) => Exit::Io,
        PredictionError::Write(_) => Exit::Io,
        _ => Exit::BadData,
    };
    Failure::new(exit, error)
}

/// A failure of the mathematics on values that were checked before.
pub fn core_failure(error: CoreError) -> Failure {
    Failure::new(Exit::BadData, error)
}
