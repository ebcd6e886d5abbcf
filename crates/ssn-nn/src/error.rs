//! Errors of computations with libtorch.

use std::fmt::Display;
use std::io;
use std::path::Path;

use ssn_core::CoreError;
use ssn_cuda::CudaError;
use ssn_io::{Error, ErrorKind, Place};
use tch::TchError;

/// The result of functions that compute with libtorch.
pub type Result<T, E = NnError> = std::result::Result<T, E>;

/// An error of a computation with libtorch, or of what it needs.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// A setting, a shape, a file or a rank that cannot be used.
    #[error(transparent)]
    Other(#[from] Error),
    /// Gradients whose norm is not finite, and which therefore cannot be clipped.
    #[error("the gradient of {of} has the norm {norm}; no gradient was changed")]
    GradientNorm {
        /// The name of the first parameter with such a gradient, or all parameters together.
        of: String,
        /// The norm.
        norm: f64,
    },
    /// A distribution that the host's checks refuse.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A GPU that cannot be used, or work on it that failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// An error of libtorch.
    #[error("libtorch: {0}")]
    Torch(#[from] TchError),
}

impl NnError {
    /// Returns the kind, which programs can act on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Other(error) => error.kind,
            Self::GradientNorm { .. } => ErrorKind::NonFinite,
            Self::Cuda(CudaError::Library { .. } | CudaError::NotBuilt | CudaError::NoDevice { .. }) => {
                ErrorKind::Unavailable
            }
            Self::Core(_) | Self::Cuda(_) | Self::Torch(_) => ErrorKind::Internal,
        }
    }

    /// Returns an error of a tensor whose shape does not fit; `expected` is the shape needed, in words and letters.
    pub fn shape(field: &str, found: &[i64], expected: impl Display) -> Self {
        let reason = format!("has shape {found:?}, but {expected} is needed");
        Error::mismatch(reason).at(Place::Setting(field.to_owned())).into()
    }

    /// Returns an error of an image size that a network cannot have. `nearest` has the next smaller size that fits, if there
    /// is one, and the next larger one.
    pub(crate) fn size(found: [i64; 3], rule: &str, nearest: &[[i64; 3]]) -> Self {
        let written = |size: &[i64; 3]| size.map(|n| n.to_string()).join(" × ");
        let nearest = nearest.iter().map(written).collect::<Vec<_>>().join(" and ");
        let error = Error::usage(format!("is {} along d, h, w, but {rule}", written(&found)));
        let place = Place::Setting("the image size".to_owned());
        error.at(place).advise(format!("the nearest that fit are {nearest}")).into()
    }

    /// Returns an error of a parameter of a model that an optimizer cannot train.
    pub fn untrainable(parameter: &str, problem: &str) -> Self {
        Error::internal(format!("the parameter {parameter} cannot be trained: {problem}")).into()
    }

    /// Returns an error of a file that cannot be used.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Error::data(path, reason).into()
    }

    /// Returns an error of a file or folder that cannot be written.
    pub fn unsaved(path: &Path, source: io::Error) -> Self {
        Error::system("write", path, source).advise("what was saved before is still there").into()
    }

    /// Returns an error of ranks that cannot work together, or of one that has ended.
    pub fn communicator(reason: impl Display) -> Self {
        Error::internal(format!("training over ranks cannot go on: {reason}")).into()
    }
}

/// Refuses a setting that is outside its range.
pub fn require(holds: bool, field: &str, value: impl Display, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { refused(field, value, expected) }
}

/// Returns the error of a setting that is outside its range.
pub fn refused<T>(field: &str, value: impl Display, expected: &str) -> Result<T> {
    Err(Error::setting(field, value, expected).into())
}

impl From<NnError> for Error {
    fn from(error: NnError) -> Self {
        let (kind, message) = (error.kind(), error.to_string());
        if let Some(error) = of_device(&message) {
            return error;
        }
        match error {
            _ if kind == ErrorKind::Internal => Self::internal(of_libtorch(&message)),
            NnError::Other(error) => error,
            error => Self::new(kind, message).caused_by(error),
        }
    }
}

/// Returns the first sentence of an error of libtorch, without the C++ frames that follow, and what to do.
fn of_libtorch(message: &str) -> String {
    let frames =
        ["\nException raised from", "\nframe #"].iter().filter_map(|begin| message.find(begin)).min();
    let Some(frames) = frames else { return message.to_owned() };
    let sentence = message[..frames].trim().trim_end_matches('.').replace("Internal torch error: ", "");
    format!(
        "{sentence}. This is a defect of the program: please report it with the command used; a run has the details in its log.txt"
    )
}

/// Returns the error that a message of libtorch means if its device failed or has too little memory.
pub fn of_device(message: &str) -> Option<Error> {
    out_of_memory(message).or_else(|| {
        let told = ssn_cuda::says_failed(message)?;
        // The C++ part says the same where the failure ends the program.
        Some(Error::new(
            ErrorKind::Io,
            format!("the GPU stopped working ({told}){}", ssn_cuda::FAILURE_ADVICE),
        ))
    })
}

/// Returns the error for a message of libtorch about too little memory, with the sizes in it.
fn out_of_memory(message: &str) -> Option<Error> {
    let on_host = message.contains("DefaultCPUAllocator: can't allocate memory");
    if !on_host && !ssn_cuda::says_out_of_memory(message) {
        return None;
    }
    // The first sentences say how much was wanted, how much there is, and who has it; advice to programmers follows.
    let start = ["CUDA out of memory", "DefaultCPUAllocator"]
        .iter()
        .find_map(|begin| message.find(begin))
        .unwrap_or(0);
    let told = message[start..].lines().next().unwrap_or_default();
    let told = told.split(" If reserved but unallocated").next().unwrap_or(told).trim_end_matches('.');
    let what = if on_host { "the machine's memory" } else { "the GPU's memory" };
    Some(Error::new(
        ErrorKind::OutOfMemory,
        format!(
            "{what} does not suffice ({told}). In training, lower batches.batch_size, the patch (batches.patch) or the widths of \
             the network; loss.samples costs no memory on a GPU. In predictions, lower --voxels-at-once or set --tile"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_kinds_of_constructors() {
        let rule = "the U-Net needs multiples of 16 × 16 × 16";
        let full = || io::Error::other("the disk is full");
        for (error, kind, sentence) in [
            (
                NnError::size([30; 3], rule, &[[16; 3], [32; 3]]),
                ErrorKind::Usage,
                "the image size is 30 × 30 × 30 along d, h, w, but the U-Net needs multiples of 16 × 16 × 16; the nearest \
                 that fit are 16 × 16 × 16 and 32 × 32 × 32",
            ),
            (
                NnError::shape("mean", &[2, 3], "[b, c, v]"),
                ErrorKind::BadData,
                "mean has shape [2, 3], but [b, c, v] is needed",
            ),
            (
                NnError::unsaved(Path::new("a"), full()),
                ErrorKind::Io,
                "cannot write a: the disk is full; what was saved before is still there",
            ),
            (
                NnError::communicator("rank 1 has ended"),
                ErrorKind::Internal,
                "training over ranks cannot go on: rank 1 has ended",
            ),
            (
                refused::<()>("samples", 0, "at least 1").unwrap_err(),
                ErrorKind::Usage,
                "samples is 0, but it must be at least 1",
            ),
            (CudaError::NotBuilt.into(), ErrorKind::Unavailable, &CudaError::NotBuilt.to_string()),
        ] {
            let error = Error::from(error);
            assert_eq!((error.kind, error.to_string().as_str()), (kind, sentence));
        }
    }

    #[test]
    fn frames_of_libtorch_are_left_out() {
        let message = "Output 0 of CppNode is a view.\nException raised from check_inplace at VariableTypeUtils.h:73\nframe #0: c10";
        let error = NnError::from(TchError::Torch(message.to_owned()));
        assert!(error.to_string().contains("frame #0"));
        let error = Error::from(error);
        assert_eq!(error.kind, ErrorKind::Internal);
        let message = error.to_string();
        assert!(
            message.starts_with("libtorch: Output 0 of CppNode is a view. This is a defect"),
            "{message}"
        );
        assert!(!message.contains("frame"), "{message}");
    }
}
