//! The error of every subcommand: a sentence, and an exit code.

use std::path::Path;
use std::process::ExitCode;

/// How a run of `cargo xtask` ended. The codes above 2 are those of `sysexits.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The command line asks for something that cannot be done; `clap` uses the same number.
    Usage,
    /// A file or an answer does not hold what it should.
    BadData,
    /// A tool is missing.
    MissingTool,
    /// The disk, the network or the file system failed.
    Io,
    /// Another program failed with this code.
    Child(u8),
}

impl Exit {
    /// Returns the number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Usage => 2,
            Self::BadData => 65,
            Self::MissingTool => 69,
            Self::Io => 74,
            Self::Child(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub exit: Exit,
    message: String,
}

impl Error {
    /// Reports a request that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Reports a file or an answer of another program that does not hold what it should.
    pub fn data(message: impl Into<String>) -> Self {
        Self { exit: Exit::BadData, message: message.into() }
    }

    /// Reports a missing tool.
    pub fn tool(message: impl Into<String>) -> Self {
        Self { exit: Exit::MissingTool, message: message.into() }
    }

    /// Reports a failure of the disk or the network.
    pub fn system(message: impl Into<String>) -> Self {
        Self { exit: Exit::Io, message: message.into() }
    }

    /// Returns a function for `map_err` that adds the action and the path to an I/O error.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::system(format!("cannot {action} {}: {source}", path.display()))
    }

    /// Reports an answer of a program that cannot be read.
    pub fn answer(command: &str, reason: &str) -> Self {
        Self::data(format!("`{command}` gave an answer that cannot be read: {reason}"))
    }
}
