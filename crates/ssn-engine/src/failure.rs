//! What failed in the network crate, with the exit code that says so.

use ssn_cli::{Exit, Failure};
use ssn_cli::{datasets, predictions};
use ssn_net::NetError;

/// The failure of a verb that trains or predicts.
pub fn failure(error: NetError) -> Failure {
    let exit = match error {
        NetError::Data(error) => return datasets::failure(error),
        NetError::Prediction(error) => return predictions::failure(error),
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
