//! What can go wrong in this crate.

use std::path::PathBuf;

use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = NnError> = std::result::Result<T, E>;

/// A computation that cannot be done or has failed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum NnError {
    /// Tensors whose shapes do not fit together.
    #[error("{field} has shape {found:?}, but {expected} is needed")]
    Shape {
        field: &'static str,
        found: Vec<i64>,
        /// The shape needed, in words and letters.
        expected: String,
    },
    /// A parameter outside its range.
    #[error("{field} is {value}, but it must be {expected}")]
    Parameter {
        field: &'static str,
        value: String,
        /// The range in words.
        expected: &'static str,
    },
    /// An image of a size that a network cannot have.
    #[error(
        "{what} is {} along d, h, w, but {rule}; the nearest that fit are {}",
        sizes(found),
        nearest_sizes(nearest)
    )]
    Size {
        /// The size, as the config file names it.
        what: &'static str,
        found: [i64; 3],
        rule: String,
        /// The next smaller, if there is one, and the next larger size that fit.
        nearest: Vec<[i64; 3]>,
    },
    /// A layer that cannot be made.
    #[error("{layer} would have the shape {shape:?}; {setting} must be at least 1")]
    Layer {
        /// The tensor, the path to its layer included.
        layer: String,
        shape: Vec<i64>,
        setting: &'static str,
    },
    /// Weights that do not fit the network.
    #[error("{layer} has shape {found:?} in the file and {expected:?} in the network; {advice}")]
    Weights { layer: String, found: Vec<i64>, expected: Vec<i64>, advice: String },
    /// A file of weights that cannot be used.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A GPU that cannot be used, or work on it that failed.
    #[error(transparent)]
    Cuda(#[from] ssn_cuda::CudaError),
    /// Ranks that cannot work together, or one that is gone.
    #[error("training over ranks cannot go on: {reason}")]
    Communicator { reason: String },
    /// A file or folder that could not be written.
    #[error("cannot write {}: {source}; what was saved before is still there", path.display())]
    Save { path: PathBuf, source: std::io::Error },
    /// A parameter of a model that an optimizer cannot train.
    #[error("the parameter {parameter} cannot be trained: {problem}")]
    Trainable { parameter: String, problem: &'static str },
    /// Gradients whose norm is not finite, and which therefore cannot be clipped.
    #[error("the gradient of {of} has the norm {norm}; no gradient was changed")]
    GradientNorm {
        /// The name of the first parameter with such a gradient, or all parameters together.
        of: String,
        norm: f64,
    },
    /// A saved state that is not of this optimizer.
    #[error("the state of the optimizer cannot be restored: {entry} {problem}")]
    OptimizerState { entry: String, problem: String },
    /// A distribution that the host's checks refuse.
    #[error(transparent)]
    Core(#[from] ssn_core::CoreError),
    /// An error of libtorch.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}

/// `30 × 30 × 30`.
fn sizes(size: &[i64; 3]) -> String {
    size.map(|n| n.to_string()).join(" × ")
}

/// `16 × 16 × 16 and 32 × 32 × 32`.
fn nearest_sizes(nearest: &[[i64; 3]]) -> String {
    nearest.iter().map(sizes).collect::<Vec<_>>().join(" and ")
}

/// Refuses a setting that is outside its range.
pub fn require(holds: bool, field: &'static str, value: impl ToString, expected: &'static str) -> Result<()> {
    if holds { Ok(()) } else { refused(field, value, expected) }
}

/// The refusal of a setting that is outside its range.
pub fn refused<T>(field: &'static str, value: impl ToString, expected: &'static str) -> Result<T> {
    Err(NnError::Parameter { field, value: value.to_string(), expected })
}
