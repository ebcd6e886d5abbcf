//! The error type of this crate.

use std::path::PathBuf;

use ssn_io::{FileError, WriteError};
use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// A dataset, a case or a setting that cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DataError {
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A config file that cannot be used.
    #[error("{}: {reason}", path.display())]
    Config {
        path: PathBuf,
        /// What is wrong with it, where, and what to write instead.
        reason: String,
    },
    /// A case that cannot be used.
    #[error("case {id}: {reason}; {advice}")]
    Case { id: String, reason: String, advice: &'static str },
    /// A case that cannot be loaded.
    #[error("case {id}: {source}")]
    Load { id: String, source: Box<DataError> },
    /// A case on which the program itself fails.
    #[error("case {id}: the program failed: {message}; please report this with the case")]
    Panic { id: String, message: String },
    /// A folder or index that is no dataset, or not a complete one.
    #[error("{}: {reason}; {advice}", path.display())]
    Dataset { path: PathBuf, reason: String, advice: &'static str },
    /// A setting outside its range.
    #[error("{field} is {value}, but it must be {expected}")]
    Setting {
        /// The setting, as the config file names it.
        field: &'static str,
        value: String,
        expected: String,
    },
}

impl DataError {
    pub(crate) fn dataset(path: impl Into<PathBuf>, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::Dataset { path: path.into(), reason: reason.into(), advice }
    }

    pub(crate) fn case(id: impl Into<String>, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::Case { id: id.into(), reason: reason.into(), advice }
    }

    pub(crate) fn setting(field: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::Setting { field, value: value.to_string(), expected: expected.into() }
    }
}
