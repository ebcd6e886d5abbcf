//! Why a file is refused: what was found, what is allowed, and what to do next.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use thiserror::Error;

/// A file that cannot be used, with the reason.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub problem: Problem,
}

/// The reason why a file, or bytes that claim to be one, cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Problem {
    /// The system refused to read or write.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A field has a value that is not allowed.
    #[error("{field} is {found}, but it must be {allowed}; {advice}")]
    Field {
        /// The field, as the format's documents name it.
        field: &'static str,
        found: String,
        allowed: &'static str,
        advice: &'static str,
    },
    /// The file ends early.
    #[error("{part} needs {needed} bytes, but only {found} are there; the file is cut off: copy it again")]
    Truncated { part: &'static str, needed: u64, found: u64 },
    /// A checksum or the structure of compressed data is wrong.
    #[error("{part} is damaged ({reason}): copy the file again from where it came")]
    Damaged {
        part: &'static str,
        /// What the decoder said.
        reason: String,
    },
    /// A size beyond the limits.
    #[error(
        "{what} is {found}, above the limit of {limit}; if the file is genuine, raise the limit `{name}`"
    )]
    Limit {
        what: &'static str,
        found: u64,
        limit: u64,
        /// The field of [`Limits`](crate::Limits) to raise.
        name: &'static str,
    },
    /// More memory than there is.
    #[error(
        "it takes about {} MB of memory, but {} MB are left; close other programs, or use a machine with more memory",
        needed.div_ceil(1_000_000),
        left / 1_000_000
    )]
    Memory {
        /// Bytes that the file takes in memory.
        needed: u64,
        left: u64,
    },
    /// A feature of the format that this reader does not know.
    #[error("{what} is not supported; {advice}")]
    Unsupported { what: String, advice: &'static str },
}

impl Problem {
    /// The problem of a file with a name.
    pub fn in_file(self, path: impl Into<PathBuf>) -> FileError {
        FileError { path: path.into(), problem: self }
    }
}

/// The problem of a field whose value, as `found` describes it, is not allowed.
pub(crate) fn refused(
    field: &'static str,
    found: impl ToString,
    allowed: &'static str,
    advice: &'static str,
) -> Problem {
    Problem::Field { field, found: found.to_string(), allowed, advice }
}

/// What `decode` returns; a panic in it is damage of `part`. The message of the panic is still printed.
///
/// Every call of a foreign decoder goes through here. `decode` owns what it changes, so nothing half-done is seen
/// after a panic.
pub(crate) fn catch_panic<T>(
    part: &'static str,
    decode: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let reason = format!("its decoder stopped: {}", text.unwrap_or("no reason given"));
        Err(Problem::Damaged { part, reason })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_damage() {
        let message = catch_panic::<()>("the file", || panic!("index {}", 7)).unwrap_err().to_string();
        assert!(message.starts_with("the file is damaged (its decoder stopped: index 7)"), "{message}");
        assert_eq!(catch_panic("the file", || Ok(3)).unwrap(), 3);
    }
}
