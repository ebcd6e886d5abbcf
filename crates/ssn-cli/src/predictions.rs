//! What the verbs about predictions share.

use std::path::Path;

use ssn_core::CoreError;
use ssn_data::nearest;
use ssn_eval::PredictionError;
use ssn_io::Problem;

use crate::exit::{Exit, Failure};

/// A failure of the predictions crate: bad data, unless the system refused or more samples were asked for than there are.
pub fn failure(error: PredictionError) -> Failure {
    let exit = match &error {
        PredictionError::File(file) if matches!(file.problem, Problem::Io(_)) => Exit::Io,
        PredictionError::Write(_) => Exit::Io,
        PredictionError::TooFewSamples { .. } => Exit::Usage,
        _ => Exit::BadData,
    };
    Failure::new(exit, error)
}

/// A failure of the mathematics on values that were checked before.
pub fn core_failure(error: CoreError) -> Failure {
    Failure::new(Exit::BadData, error)
}

/// That a class does not exist in a file or dataset, and which was probably meant.
pub fn unknown_name(name: &str, known: &[String], place: &Path) -> String {
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("it has {}", known.join(", ")),
    };
    format!("there is no class {name:?} in {}; {hint}", place.display())
}
