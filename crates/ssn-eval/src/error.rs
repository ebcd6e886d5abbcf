//! What can go wrong in this crate.

use std::path::{Path, PathBuf};

use ssn_core::CoreError;
use ssn_io::{FileError, Problem, WriteError};
use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = PredictionError> = std::result::Result<T, E>;

/// A file, a folder or values that cannot be used.
#[derive(Debug, Error)]
pub enum PredictionError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file or folder that is not what it should be.
    #[error("{}: {reason}; {advice}", path.display())]
    Unusable {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do next.
        advice: &'static str,
    },
    /// Parts that do not make a distribution of an image together.
    #[error("{0}")]
    Parts(String),
    /// More samples than a network that draws them itself left in the file of a case.
    #[error(
        "case {case} holds {stored} sample{} that its network drew, but {needed} are needed; predict it again with \
         --samples {needed}, or ask for fewer",
        if *stored == 1 { "" } else { "s" }
    )]
    TooFewSamples {
        /// The id of the case.
        case: String,
        /// The samples in its file.
        stored: usize,
        /// The samples that would have to be there, counted from the first.
        needed: u64,
    },
    /// Values that cannot be sampled or scored.
    #[error(transparent)]
    Core(#[from] CoreError),
}

impl PredictionError {
    /// What the system said about a path.
    pub(crate) fn io(path: &Path, error: std::io::Error) -> Self {
        Self::File(Problem::Io(error).in_file(path))
    }
}
