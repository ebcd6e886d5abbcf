//! What can go wrong in this crate.

use std::io;
use std::path::{Path, PathBuf};

use ssn_nn::NnError;
use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

/// Training or a prediction that cannot be done or has failed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TrainError {
    /// A network, its loss or its optimizer, or a file that cannot be used or written.
    #[error(transparent)]
    Network(#[from] NnError),
    /// A dataset, a case or a setting of data that cannot be used.
    #[error(transparent)]
    Data(#[from] ssn_data::DataError),
    /// A config that cannot be used.
    #[error("{}: {reason}", path.display())]
    Config { path: PathBuf, reason: String },
    /// A run folder that cannot be used.
    #[error("{}: {reason}; {advice}", path.display())]
    Run { path: PathBuf, reason: String, advice: &'static str },
    /// A file of predictions that cannot be made or used.
    #[error(transparent)]
    Prediction(#[from] ssn_eval::EvalError),
    /// A training step with a loss or a gradient that is not finite.
    #[error("{what} in step {step} is not finite; the step was not applied")]
    NonFinite {
        what: String,
        /// The step, counted from 1.
        step: usize,
    },
    /// A model whose parameters left the range that a distribution may have.
    #[error("the model cannot be used after step {step}: {reason}")]
    Diverged { step: usize, reason: ssn_core::CoreError },
    /// An image that cannot be predicted.
    #[error(transparent)]
    Image(#[from] ImageProblem),
    /// A case of a validation that cannot be predicted.
    #[error("case {id} of the validation: {problem}")]
    Case { id: String, problem: ImageProblem },
    /// Work that was stopped by its caller.
    #[error("stopped on request")]
    Stopped,
}

impl From<ssn_core::CoreError> for TrainError {
    fn from(error: ssn_core::CoreError) -> Self {
        Self::Network(error.into())
    }
}

impl From<ssn_cuda::CudaError> for TrainError {
    fn from(error: ssn_cuda::CudaError) -> Self {
        Self::Network(error.into())
    }
}

impl From<tch::TchError> for TrainError {
    fn from(error: tch::TchError) -> Self {
        Self::Network(error.into())
    }
}

/// What can be wrong with a whole image, or with what a network makes of it.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ImageProblem {
    /// An image with other channels than the network's.
    #[error("the image has {found} channels, but the network was made for {expected}")]
    Channels { found: usize, expected: i64 },
    /// An image or a mask whose length does not follow from its shape.
    #[error("{what} has {found} values, but its shape {shape:?} asks for {expected}")]
    Length { what: &'static str, found: usize, expected: usize, shape: Vec<usize> },
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
        value: f32,
    },
    /// A number of the network that cannot be kept.
    #[error(
        "the network's {part} is {value} for class {class} at voxel {voxel:?} (d, h, w), but must {rule}; the usual reasons are an \
         image whose intensities are not scaled like those of training and a network that has hardly begun to learn"
    )]
    Output {
        part: &'static str,
        /// The class, from 0.
        class: usize,
        /// `[d, h, w]` in the whole image, from 0.
        voxel: [usize; 3],
        value: f32,
        rule: &'static str,
    },
    /// A distribution that does not fit into memory.
    #[error(
        "there is no memory for {values} numbers of the {part}; keep the factor as f16, or give a smaller \
         image or a mask"
    )]
    Memory { part: &'static str, values: usize },
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
    Ok(ssn_nn::error::refused(field, value, expected)?)
}

/// A file or folder that could not be written.
pub(crate) fn unsaved(path: &Path, source: io::Error) -> TrainError {
    NnError::Save { path: path.to_owned(), source }.into()
}

/// A file that cannot be used.
pub(crate) fn unusable_file(path: &Path, reason: impl ToString) -> TrainError {
    NnError::File { path: path.to_owned(), reason: reason.to_string() }.into()
}
