//! What can go wrong, one sentence each: what happened, and what to do about it.

use crate::exit::Exit;
use crate::libtorch::VERSION;
use crate::pins;
use crate::units::size;
use std::path::{Path, PathBuf};

/// An error of any subcommand; each one has an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{program}` is not on the PATH, and `pip` is what fetches libtorch: install Python 3 (Debian: \
         `apt install python3 python3-pip`, Fedora: `dnf install python3 python3-pip`) and run this again"
    )]
    NoPython { program: String },

    #[error(
        "{} has no pip, which fetches libtorch: install it (Debian: `apt install python3-pip`, Fedora: \
         `dnf install python3-pip`, elsewhere: `python3 -m ensurepip`) and run this again", python.display()
    )]
    NoPip { python: PathBuf },

    #[error(
        "pip could not fetch {package} {version} (its last lines are above): check the network, pip's \
         index settings and the free disk space, and run this again; what is already fetched is kept"
    )]
    PipFailed { package: String, version: String, last_lines: String },

    #[error(
        "no C++ compiler found ({}), and building `tch` needs one: install it (Debian: `apt install g++`, \
         Fedora: `dnf install gcc-c++`) or set CXX, and run this again", tried.join(", ")
    )]
    NoCompiler { tried: Vec<String> },

    #[error(
        "libtorch {VERSION} is pinned for Linux on x86-64 with glibc only: here, install PyTorch with \
         `pip install torch=={VERSION}` and set LIBTORCH_USE_PYTORCH=1"
    )]
    UnsupportedPlatform,

    #[error(
        "{} has {} free and the installation needs {}: make room, or choose another folder with `--dir` and \
         set LIBTORCH to its `torch` folder", folder.display(), size(*free), size(*needed)
    )]
    NoSpace { folder: PathBuf, free: u64, needed: u64 },

    #[error("{subject} holds libtorch {found}, and {VERSION} is needed: {remedy}")]
    WrongVersion { subject: String, found: String, remedy: &'static str },

    #[error("{subject} has no {missing}, so it is not a usable libtorch {VERSION}: {remedy}")]
    IncompleteLibtorch { subject: String, missing: String, remedy: &'static str },

    #[error(
        "{subject} can serve a GPU, but CUDA's headers are not with it ({} is missing), and without them the CUDA part is \
         not built: `pip install {}` there, or set CUDA_HOME to a CUDA toolkit of the same release, or {remedy}",
        missing.display(), pins::requirements(pins::CUDA_HEADERS)
    )]
    NoCudaHeaders { subject: String, missing: PathBuf, remedy: &'static str },

    #[error(
        "LIBTORCH_USE_PYTORCH is set, but {} finds no PyTorch: install it with `pip install torch=={VERSION}`, \
         or unset LIBTORCH_USE_PYTORCH and run `cargo xtask setup`", python.display()
    )]
    NoPytorch { python: PathBuf },

    #[error(
        "pip brought a {package} {version} whose sha256 is {found} and not the pinned {expected}; it is \
         deleted: check which index pip uses, and run this again"
    )]
    WrongWheel { package: String, version: String, found: String, expected: String },

    #[error("the wheel {} is damaged ({reason}): run this again to fetch a new one", wheel.display())]
    DamagedWheel { wheel: PathBuf, reason: String },

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
    DoesNotCompile { what: &'static str, message: String },

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
            Self::PipFailed { last_lines: lines, .. } | Self::DoesNotCompile { message: lines, .. } => {
                Some(lines).filter(|lines| !lines.is_empty())
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
            Self::WrongVersion { .. }
            | Self::IncompleteLibtorch { .. }
            | Self::NoCudaHeaders { .. }
            | Self::WrongWheel { .. }
            | Self::DamagedWheel { .. }
            | Self::DoesNotCompile { .. }
            | Self::BadAnswer { .. } => Exit::BadData,
            Self::PipFailed { .. } | Self::NoSpace { .. } | Self::Io { .. } => Exit::Io,
        }
    }
}
