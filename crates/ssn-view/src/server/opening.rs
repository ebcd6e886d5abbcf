//! The way to the page for the browser that this program starts: a code that leads to the token, once and for two minutes.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::guard::{same, secret};
use super::redirect::RedirectFile;
use crate::error::{Result, ViewError};

/// How long the code may be used.
pub(super) const OPENING_TIME: Duration = Duration::from_secs(120);

/// A code, as long as it may be used.
pub(super) struct Opening {
    code: String,
    /// Nothing once the code was used.
    open: Mutex<Option<Open>>,
}

struct Open {
    until: Instant,
    /// The file that leads to the code; it goes with this.
    file: Option<RedirectFile>,
}

impl Opening {
    /// A new code.
    pub(super) fn new() -> Result<Self> {
        let open = Open { until: Instant::now() + OPENING_TIME, file: None };
        Ok(Self { code: secret()?, open: Mutex::new(Some(open)) })
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// Whether a code is the right one and was not used before.
    pub(super) fn take(&self, code: &str) -> bool {
        let mut open = self.open();
        let may = open.as_ref().is_some_and(|open| Instant::now() <= open.until);
        let taken = may && same(self.code.as_bytes(), code.as_bytes());
        if taken {
            *open = None;
        }
        taken
    }

    /// Ends the time of the code.
    pub(super) fn close(&self) {
        *self.open() = None;
    }

    /// Writes a file into a folder that leads to an address with the code, and removes it once the code is of no use.
    pub(super) fn write_file(&self, folder: &Path, url: &str) -> Result<PathBuf> {
        let failed = |source| ViewError::OpeningFile { folder: folder.to_owned(), source };
        let file = RedirectFile::write(folder, &secret()?, url).map_err(failed)?;
        let path = file.path().to_owned();
        if let Some(open) = self.open().as_mut() {
            open.file = Some(file);
        }
        Ok(path)
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
