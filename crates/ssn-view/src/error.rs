//! What can go wrong in this crate.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use ssn_core::CoreError;
use ssn_eval::EvalError;
use ssn_io::WriteError;
use thiserror::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = ViewError> = std::result::Result<T, E>;

/// A case that cannot be shown, or a server that cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ViewError {
    /// Parts that are not of one case.
    #[error("case {case}: {reason}")]
    Parts { case: String, reason: String },
    /// A distribution that cannot be used.
    #[error(transparent)]
    Prediction(#[from] EvalError),
    /// Values that cannot be sampled.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// More than a browser can hold.
    #[error(
        "case {case} takes {} MiB in the browser, but {} MiB are the most that browsers hold; predict it on the box of \
         a mask, or in half precision",
        bytes >> 20,
        most >> 20
    )]
    TooLarge { case: String, bytes: u64, most: u64 },
    /// A file that would be too large to be opened.
    #[error(
        "the file would have more than {} MiB, which browsers open slowly or not at all; choose fewer cases with --case, \
         leave out what lies around with --crop, or look at the cases with `ssn view` without --export",
        most >> 20
    )]
    ExportTooLarge { most: u64 },
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An address that is taken.
    #[error("port {} of {} is in use; choose another with --port, or leave it out for any free one", address.port(), address.ip())]
    PortInUse { address: SocketAddr },
    /// An address that cannot be used for another reason.
    #[error("cannot serve at {address}: {source}; choose another address with --host or --port")]
    Listen { address: SocketAddr, source: io::Error },
    /// The system gave no random bytes, or no place to run.
    #[error("cannot start the server: {0}")]
    Start(String),
    /// The file that leads a browser to the page cannot be written.
    #[error("cannot write into {}: {source}", folder.display())]
    OpeningFile { folder: PathBuf, source: io::Error },
    /// The page that is part of the program is not what it should be.
    #[error("the page of the viewer is damaged: {0}; build it again (docs/reference/viewer.md)")]
    Page(&'static str),
}
