//! The way to the page for the browser that this program starts: a code that leads to the token, once and for two minutes.
//!
//! Other users of a machine see the arguments of every program, so a browser is started with the path of a file that leads
//! it to the code; only its owner can read what is in it.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ssn_io::{Error, Result};
use tempfile::{Builder, TempPath};

use super::guard::{same, secret};

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
        let failed = |source| Error::system("write into", folder, source);
        let file = RedirectFile::write(folder, url).map_err(failed)?;
        let path = file.path.to_path_buf();
        if let Some(open) = self.open().as_mut() {
            open.file = Some(file);
        }
        Ok(path)
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ending of the files that lead to codes.
const ENDING: &str = ".html";

/// A file that leads a browser to an address; removed when this is dropped, and then its folder.
struct RedirectFile {
    path: TempPath,
    _folder: EmptiedFolder,
}

/// A folder that is removed when this is dropped, unless files are in it.
struct EmptiedFolder(PathBuf);

impl Drop for EmptiedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl RedirectFile {
    /// Writes a file into a folder that only this user can open.
    fn write(folder: &Path, url: &str) -> io::Result<Self> {
        let create = || {
            prepare(folder)?;
            // A name that nothing has, not even a link, and a file that only this user can read.
            Builder::new().prefix("").suffix(ENDING).tempfile_in(folder)
        };
        let (mut file, path) = match create() {
            // Another server may have removed the folder in between, as it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => create(),
            file => file,
        }?
        .into_parts();
        let written = Self { path, _folder: EmptiedFolder(folder.to_owned()) };
        file.write_all(page(url).as_bytes())?;
        Ok(written)
    }
}

/// A page that goes to an address at once.
fn page(url: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>Viewer</title>\n\
         <p><a href=\"{url}\" rel=\"noreferrer\">Open the viewer</a></p>\n"
    )
}

/// Makes the folder, or takes one that is there, and removes files of servers that were killed.
fn prepare(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder"));
    }
    // Only the owner of a folder may do this, so it fails for a folder of somebody else.
    fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    for entry in fs::read_dir(folder)?.flatten() {
        let age = entry.metadata().and_then(|about| about.modified()).map(|time| time.elapsed());
        // By then no code is of use any more. A time in the future is no age.
        let is_old = matches!(age, Ok(Ok(age)) if age > OPENING_TIME);
        if is_old && entry.path().extension().is_some_and(|ending| ending == &ENDING[1..]) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_the_user_reads_it_and_nothing_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("opening");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let file = RedirectFile::write(&folder, "http://[::1]:7/open/x_-y").unwrap();
        let other = RedirectFile::write(&folder, "http://[::1]:8/open/z").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file.path)), (0o700, 0o600));
        let text = fs::read_to_string(&file.path).unwrap();
        assert!(text.contains("content=\"0; url=http://[::1]:7/open/x_-y\""), "{text}");
        drop(file);
        assert!(other.path.exists(), "that of another server stays");
        drop(other);
        assert!(!folder.exists());
    }

    #[test]
    fn what_killed_servers_left_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("opening");
        fs::create_dir(&folder).unwrap();
        let old = SystemTime::now() - 2 * OPENING_TIME;
        for (name, is_old) in [("old.html", true), ("new.html", false), ("notes.txt", true)] {
            let file = File::create(folder.join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        drop(RedirectFile::write(&folder, "http://127.0.0.1:7/open/x").unwrap());
        let left = |name: &str| folder.join(name).exists();
        assert_eq!((left("old.html"), left("new.html"), left("notes.txt")), (false, true, true));
    }

    #[test]
    fn a_link_to_a_folder_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (home.path().join("opening"), home.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &folder).unwrap();
        assert!(RedirectFile::write(&folder, "http://127.0.0.1:7/open/x").is_err());
    }
}
