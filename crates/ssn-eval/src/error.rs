//! What can go wrong in this crate.

use std::path::{Path, PathBuf};

use ssn_core::CoreError;
use ssn_data::DataError;
use ssn_io::{FileError, Problem, WriteError};
use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = EvalError> = std::result::Result<T, E>;

/// What kind of error it is, here and in the crates above, up to `ssn`, which has it as its own. Its number is the exit code of
/// programs that end with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// A check of a dataset found problems.
    ProblemsFound = 1,
    /// Settings that make no sense.
    Usage = 2,
    /// A file or dataset that cannot be used.
    BadData = 65,
    /// Something that is needed is not installed, such as libtorch or CUDA.
    Unavailable = 69,
    /// A defect of the program.
    Internal = 70,
    /// Reading or writing failed, the disk is full, or the GPU stopped working.
    Io = 74,
    /// Stopped on request; the same call goes on, and a training with `resume`.
    Stopped = 75,
    /// The computation met values that are not finite.
    NonFinite = 76,
    /// The machine or the device has too little memory.
    OutOfMemory = 77,
}

/// A file, a folder or values that cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum EvalError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file or folder that is not what it should be.
    #[error("{}: {reason}; {advice}", path.display())]
    Unusable { path: PathBuf, reason: String, advice: &'static str },
    /// Parts that do not make a distribution of an image together.
    #[error("{0}")]
    Parts(String),
    /// More samples than a network that draws them itself left in the file of a case.
    #[error(
        "case {case} holds {} that its network drew, but {needed} are needed; predict it again with \
         --samples {needed}, or ask for fewer",
        ssn_data::text::counted(*stored, "sample")
    )]
    TooFewSamples { case: String, stored: usize, needed: u64 },
    /// Values that cannot be sampled or scored.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A dataset or a case that cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Settings that contradict each other or what they are for.
    #[error("{0}")]
    Settings(String),
    /// Predictions and a dataset that do not belong together.
    #[error("{0}")]
    Mismatch(String),
    /// A file or folder that the system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    System { action: &'static str, path: PathBuf, source: std::io::Error },
    /// More memory than there is.
    #[error(
        "{what} needs {} MiB of memory, which this machine or its limits do not give now; end other programs, or use a machine \
         with more memory",
        bytes >> 20
    )]
    Memory { what: String, bytes: u64 },
    /// A defect of the program.
    #[error("{0}")]
    Internal(String),
}

impl EvalError {
    /// The kind, which programs can act on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) | Self::Data(DataError::File(error)) => match error.problem {
                Problem::Io(_) => ErrorKind::Io,
                Problem::Memory { .. } => ErrorKind::OutOfMemory,
                _ => ErrorKind::BadData,
            },
            Self::Write(_) | Self::Data(DataError::Write(_)) | Self::System { .. } => ErrorKind::Io,
            Self::TooFewSamples { .. } | Self::Settings(_) | Self::Data(DataError::Setting { .. }) => {
                ErrorKind::Usage
            }
            Self::Memory { .. } => ErrorKind::OutOfMemory,
            Self::Internal(_) => ErrorKind::Internal,
            Self::Unusable { .. } | Self::Parts(_) | Self::Core(_) | Self::Data(_) | Self::Mismatch(_) => {
                ErrorKind::BadData
            }
        }
    }

    /// Returns an error of settings.
    pub fn settings(message: impl ToString) -> Self {
        Self::Settings(message.to_string())
    }

    /// Returns an error of files that do not belong together.
    pub fn mismatch(message: impl ToString) -> Self {
        Self::Mismatch(message.to_string())
    }

    /// Returns a defect.
    pub fn internal(message: impl ToString) -> Self {
        Self::Internal(message.to_string())
    }

    /// Refuses a file or folder, with what to do next.
    pub fn unusable(path: &Path, reason: String, advice: &'static str) -> Self {
        Self::Unusable { path: path.to_owned(), reason, advice }
    }

    /// Returns the refusal of the system to do something with a file or folder.
    pub fn system(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::System { action, path: path.to_owned(), source }
    }

    /// Returns an error of the system about a path.
    pub fn io(path: &Path, error: std::io::Error) -> Self {
        Self::File(Problem::Io(error).in_file(path))
    }
}
