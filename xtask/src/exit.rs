//! The exit codes of `cargo xtask`, in one place.
//!
//! The numbers above 2 are those of `sysexits.h`, so that a script can tell a machine that lacks a tool from
//! one that lost its network.

use std::process::ExitCode;

/// How a run of `cargo xtask` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for is done.
    Success,
    /// The command line asks for something that cannot be done; `clap` uses the same number.
    Usage,
    /// A libtorch of the wrong version, or a file that does not hold what it should.
    BadData,
    /// A tool that the task needs is missing, or the platform is one for which nothing is pinned.
    MissingTool,
    /// The disk, the network or the file system failed.
    Io,
    /// A program that was run on the user's behalf failed; its code is passed on unchanged.
    Child(u8),
}

impl Exit {
    /// The number that the shell sees.
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
