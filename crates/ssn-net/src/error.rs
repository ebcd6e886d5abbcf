//! What can go wrong in this crate.

use std::path::PathBuf;

use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

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
    /// An image of a size that a network cannot have.
    #[error(
        "{what} is {} along d, h, w, but {rule}; the nearest that fit are {}",
        sizes(found),
        nearest_sizes(nearest)
    )]
    Size {
        /// The size, as the config file names it.
        what: &'static str,
        /// The size found.
        found: [i64; 3],
        /// What the network needs.
        rule: String,
        /// The next smaller, if there is one, and the next larger size that fit.
        nearest: Vec<[i64; 3]>,
    },
    /// A layer that cannot be made.
    #[error("{layer} would have the shape {shape:?}; {setting} must be at least 1")]
    Layer {
        /// The tensor, the path to its layer included.
        layer: String,
        /// The shape that the settings ask for.
        shape: Vec<i64>,
        /// The settings to change.
        setting: &'static str,
    },
    /// Weights that do not fit the network.
    #[error("{layer} has shape {found:?} in the file and {expected:?} in the network; {advice}")]
    Weights {
        /// The tensor.
        layer: String,
        /// The shape in the file.
        found: Vec<i64>,
        /// The shape in the network.
        expected: Vec<i64>,
        /// The setting to change.
        advice: String,
    },
    /// A file of weights that cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A config that cannot be used.
    #[error("{}: {reason}", path.display())]
    Config {
        /// The config file.
        path: PathBuf,
        /// What is wrong with it, where, and what to write instead.
        reason: String,
    },
    /// A run folder that cannot be used.
    #[error("{}: {reason}; {advice}", path.display())]
    Run {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do next.
        advice: &'static str,
    },
    /// A file of predictions that cannot be made or used.
    #[error(transparent)]
    Prediction(#[from] ssn_predictions::PredictionError),
    /// A dataset, a case or a setting of data that cannot be used.
    #[error(transparent)]
    Data(#[from] ssn_data::DataError),
    /// A GPU that cannot be used, or work on it that failed.
    #[error(transparent)]
    Cuda(#[from] ssn_cuda::CudaError),
    /// Ranks that cannot work together, or one that is gone.
    #[error("training over ranks cannot go on: {reason}")]
    Ranks {
        /// What is wrong.
        reason: String,
    },
    /// A file or folder that could not be written.
    #[error("cannot write {}: {source}; what was saved before is still there", path.display())]
    Save {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A training step with a loss or a gradient that is not finite.
    #[error("{what} in step {step} is not finite; the step was not applied")]
    NonFinite {
        /// What is not finite.
        what: String,
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
    /// A parameter of a model that an optimiser cannot train.
    #[error("the parameter {parameter} cannot be trained: {problem}")]
    Trainable {
        /// The name of the parameter.
        parameter: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Gradients whose norm is not finite, and which therefore cannot be clipped.
    #[error("the gradient of {of} has the norm {norm}; no gradient was changed")]
    GradientNorm {
        /// The name of the first parameter with such a gradient, or all parameters together.
        of: String,
        /// The norm, infinite or not a number.
        norm: f64,
    },
    /// A saved state that is not of this optimiser.
    #[error("the state of the optimiser cannot be restored: {entry} {problem}")]
    OptimizerState {
        /// The name of the entry.
        entry: String,
        /// What is wrong with it.
        problem: StateProblem,
    },
    /// An image that cannot be predicted.
    #[error(transparent)]
    Image(#[from] ImageProblem),
    /// A case of a validation that cannot be predicted.
    #[error("case {id} of the validation: {problem}")]
    Case {
        /// The case.
        id: String,
        /// Why.
        problem: ImageProblem,
    },
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

/// What can be wrong with an entry of an optimiser's saved state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateProblem {
    /// The optimiser needs the entry.
    #[error("is missing")]
    Missing,
    /// The optimiser has no such entry: the state is of another model or method.
    #[error("belongs to no parameter of this model and method")]
    Unknown,
    /// The entry occurs twice.
    #[error("occurs twice")]
    Twice,
    /// A tensor of another shape.
    #[error("has shape {found:?}, but its parameter needs {expected:?}")]
    Shape {
        /// The shape found.
        found: Vec<i64>,
        /// The shape needed.
        expected: Vec<i64>,
    },
    /// A tensor of another element type.
    #[error("holds {found:?}, but its parameter needs {expected:?}")]
    Kind {
        /// The element type found.
        found: tch::Kind,
        /// The element type needed.
        expected: tch::Kind,
    },
    /// A count of steps below zero.
    #[error("is {0}, but a count of steps is at least 0")]
    Count(i64),
}

/// What can be wrong with a whole image, or with what a network makes of it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ImageProblem {
    /// An image with other channels than the network's.
    #[error("the image has {found} channels, but the network was made for {expected}")]
    Channels {
        /// The channels of the image.
        found: usize,
        /// Those of the network.
        expected: i64,
    },
    /// An image or a mask whose length does not follow from its shape.
    #[error("{what} has {found} values, but its shape {shape:?} asks for {expected}")]
    Length {
        /// The image or the mask.
        what: &'static str,
        /// The values found.
        found: usize,
        /// The values needed.
        expected: usize,
        /// The shape.
        shape: Vec<usize>,
    },
    /// A mask without a voxel inside.
    #[error("the mask is 0 everywhere; leave it out to predict the whole image")]
    EmptyMask,
    /// A value of the image that is not finite.
    #[error("channel {channel} of the image is {value} at voxel {voxel:?} (d, h, w), but must be finite")]
    Value {
        /// The channel, from 0.
        channel: usize,
        /// `[d, h, w]`, from 0.
        voxel: [usize; 3],
        /// The value.
        value: f32,
    },
    /// A number of the network that cannot be kept.
    #[error(
        "the network's {part} is {value} for class {class} at voxel {voxel:?} (d, h, w), but must {rule}"
    )]
    Output {
        /// The mean, the diagonal or the factor.
        part: &'static str,
        /// The class, from 0.
        class: usize,
        /// `[d, h, w]` in the whole image, from 0.
        voxel: [usize; 3],
        /// The value.
        value: f32,
        /// What can be kept.
        rule: &'static str,
    },
    /// A distribution that does not fit into memory.
    #[error(
        "there is no memory for {values} numbers of the {part}; keep the factor as f16, or give a smaller \
         image or a mask"
    )]
    Memory {
        /// The mean, the diagonal or the factor.
        part: &'static str,
        /// How many numbers it has.
        values: usize,
    },
}

/// Refuses a setting that is outside its range.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: impl ToString,
    expected: &'static str,
) -> Result<()> {
    if holds { Ok(()) } else { refused(field, value, expected) }
}

/// The refusal of a setting that is outside its range.
pub(crate) fn refused<T>(field: &'static str, value: impl ToString, expected: &'static str) -> Result<T> {
    Err(NetError::Parameter { field, value: value.to_string(), expected })
}
