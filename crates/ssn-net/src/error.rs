//! What can go wrong in this crate.

use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, NetError>;

/// A computation that cannot be done or has failed.
#[derive(Debug, Error)]
pub enum NetError {
    /// Tensors whose shapes do not fit together.
    #[error("{field} has shape {found:?}, but {expected} is needed")]
    Shape {
        /// The tensor.
        field: &'static str,
        /// The shape found.
        found: Vec<i64>,
        /// The shape needed, in words and letters.
        expected: String,
    },
    /// A parameter outside its range.
    #[error("{field} is {value}, but it must be {expected}")]
    Parameter {
        /// The parameter.
        field: &'static str,
        /// The value found.
        value: String,
        /// The range in words.
        expected: &'static str,
    },
    /// A training step with a loss or a gradient that is not finite.
    #[error("{what} of step {step} is not finite; the step was not applied")]
    NonFinite {
        /// What is not finite.
        what: &'static str,
        /// The step, counted from 1.
        step: usize,
    },
    /// A model whose parameters left the range that a distribution may have.
    #[error("the model cannot be used after step {step}: {reason}")]
    Diverged {
        /// The last step.
        step: usize,
        /// What is wrong with it.
        reason: ssn_core::CoreError,
    },
    /// A distribution that the host's checks refuse.
    #[error(transparent)]
    Core(#[from] ssn_core::CoreError),
    /// An error of libtorch.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}
