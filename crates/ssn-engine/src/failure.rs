//! What failed in the network crate, with the exit code that says so.

use ssn_cli::datasets;
use ssn_cli::{Exit, Failure};
use ssn_net::NetError;
use ssn_predictions::PredictionError;
use ssn_volume::Problem;

/// The failure of a verb that trains or predicts.
pub fn failure(error: NetError) -> Failure {
    let exit = match error {
        NetError::Data(error) => return datasets::failure(error),
        NetError::Prediction(error) => return prediction(error),
        NetError::Save { .. } => Exit::Io,
        NetError::Parameter { .. }
        | NetError::Size { .. }
        | NetError::Layer { .. }
        | NetError::Run { .. } => Exit::Usage,
        NetError::Config { .. }
        | NetError::File { .. }
        | NetError::Weights { .. }
        | NetError::Shape { .. } => Exit::BadData,
        NetError::NonFinite { .. } | NetError::GradientNorm { .. } | NetError::Diverged { .. } => {
            Exit::NonFinite
        }
        _ => Exit::Internal,
    };
    Failure::new(exit, error)
}

/// The failure of a verb that reads or writes predictions.
pub fn prediction(error: PredictionError) -> Failure {
    let exit = match &error {
        PredictionError::Write(_) => Exit::Io,
        PredictionError::File(file) if matches!(file.problem, Problem::Io(_)) => Exit::Io,
        PredictionError::Unusable { .. } | PredictionError::File(_) => Exit::BadData,
        PredictionError::Parts(_) | PredictionError::Core(_) => Exit::BadData,
    };
    Failure::new(exit, error)
}
