//! What failed in the network crate, with the exit code that says so.

use ssn_cli::{Exit, Failure};
use ssn_cli::{datasets, predictions};
use ssn_net::NetError;
use ssn_net::error::ImageProblem;

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
        NetError::Image(ref problem) | NetError::Case { ref problem, .. } => match problem {
            ImageProblem::Output { .. } => Exit::NonFinite,
            ImageProblem::Memory { .. } => Exit::OutOfMemory,
            _ => Exit::BadData,
        },
        _ => Exit::Internal,
    };
    Failure::new(exit, error)
}
