//! How a run ends: exit codes, and what can go wrong, one sentence each: what happened, and what to do about it.

use crate::libtorch::VERSION;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a run of `cargo xtask` ended. The codes above 2 are those of `sysexits.h`, so that a script can tell a machine
/// that lacks a tool from one that lost its network.
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

/// An error of any subcommand; each one has an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{program}` is not on the PATH, and `pip` is what fetches libtorch: install Python 3 (Debian: \
         `apt install python3 python3-pip`, Fedora: `dnf install python3 python3-pip`) and run this again"
    )]
    NoPython { program: &'static str },

    #[error(
        "{} has no pip, which fetches libtorch: install it (Debian: `apt install python3-pip`, Fedora: \
         `dnf install python3-pip`, elsewhere: `python3 -m ensurepip`) and run this again", python.display()
    )]
    NoPip { python: PathBuf },

    #[error(
        "pip could not fetch and unpack the wheels (its last lines are above): check the network, pip's index settings \
         and the free disk space, and run this again; what was there before is unchanged"
    )]
    PipFailed { lines: String },

    #[error(
        "pip fetched a wheel whose hash is not the pinned one (its last lines are above), and nothing is installed: \
         check which index pip uses, and run this again"
    )]
    WrongHash { lines: String },

    #[error("interrupted, and what was there before is unchanged: run this again")]
    Interrupted,

    #[error(
        "no C++ compiler found ({tried}), and building `tch` needs one: install it (Debian: `apt install g++`, \
         Fedora: `dnf install gcc-c++`) or set CXX, and run this again"
    )]
    NoCompiler { tried: String },

    #[error(
        "libtorch {VERSION} is pinned for Linux on x86-64 with glibc only: here, install PyTorch with \
         `pip install torch=={VERSION}` and set LIBTORCH_USE_PYTORCH=1"
    )]
    UnsupportedPlatform,

    #[error("{subject} {fault}: install that version there, or unset {variable} and run `cargo xtask setup`")]
    WrongLibtorch { subject: String, fault: String, variable: &'static str },

    #[error(
        "{subject} can serve a GPU, but CUDA's headers are not in {}, and without them the CUDA part is not built: `pip \
         install -r xtask/requirements/cuda-headers.txt` there, or set CUDA_HOME to a CUDA toolkit of the same release, \
         or unset the variable and run `cargo xtask setup --cuda`", folder.display()
    )]
    NoCudaHeaders { subject: String, folder: PathBuf },

    #[error(
        "LIBTORCH_USE_PYTORCH is set, but {} finds no PyTorch: install it with `pip install torch=={VERSION}`, \
         or unset LIBTORCH_USE_PYTORCH and run `cargo xtask setup`", python.display()
    )]
    NoPytorch { python: PathBuf },

    #[error(
        "{} is not empty and was not made by `cargo xtask setup`: give `--dir` an empty or a new folder",
        folder.display()
    )]
    NotOurs { folder: PathBuf },

    #[error(
        "{} has no golden values: they are `ged.json` with `ged.safetensors`, or `NAME.json` with `NAME.pt` and \
         `NAME.safetensors`", dir.display()
    )]
    NoGoldenValues { dir: PathBuf },

    #[error(
        "there is nothing to measure ({reason}): this benchmark needs an NVIDIA GPU with its driver, and in {} a \
         PyTorch that can use it", python.display()
    )]
    NoGpu { python: PathBuf, reason: String },

    #[error("{what} not compile: the compiler's message is above")]
    DoesNotCompile { what: &'static str, lines: String },

    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    #[error("cannot run `{program}`: {source}")]
    Spawn { program: String, source: std::io::Error },

    #[error("`{command}` gave an answer that cannot be read: {reason}")]
    BadAnswer { command: String, reason: String },
}

impl Error {
    /// For `map_err`: an I/O error together with what was being done to which path.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Lines of another program that explain the error; they are printed before it.
    pub fn details(&self) -> Option<&String> {
        match self {
            Self::PipFailed { lines } | Self::WrongHash { lines } | Self::DoesNotCompile { lines, .. } => {
                Some(lines)
            }
            _ => None,
        }
    }

    /// The exit code that this error leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotOurs { .. } | Self::NoGoldenValues { .. } => Exit::Usage,
            Self::NoPython { .. }
            | Self::NoPip { .. }
            | Self::NoCompiler { .. }
            | Self::UnsupportedPlatform
            | Self::NoPytorch { .. }
            | Self::NoGpu { .. }
            | Self::Spawn { .. } => Exit::MissingTool,
            Self::WrongLibtorch { .. }
            | Self::NoCudaHeaders { .. }
            | Self::WrongHash { .. }
            | Self::DoesNotCompile { .. }
            | Self::BadAnswer { .. } => Exit::BadData,
            Self::PipFailed { .. } | Self::Io { .. } => Exit::Io,
            // As a shell says it: 128 and the number of the signal.
            Self::Interrupted => Exit::Child(130),
        }
    }
}
