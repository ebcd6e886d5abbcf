//! A file that leads a browser to an address. Other users of a machine see the arguments of every program, so a browser
//! is started with the path of this file; only its owner can read what is in it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::opening::OPENING_TIME;

const ENDING: &str = "html";

/// The file; it is removed when this is dropped, and its folder with it unless other files are in it.
pub(super) struct RedirectFile {
    path: PathBuf,
}

impl RedirectFile {
    /// Writes a file with a name into a folder that only this user can open.
    pub(super) fn write(folder: &Path, name: &str, url: &str) -> io::Result<Self> {
        let path = folder.join(name).with_extension(ENDING);
        // Another server may remove the folder in between, as it is empty.
        let file = prepare(folder).and_then(|()| create(&path));
        let mut file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                prepare(folder).and_then(|()| create(&path))
            }
            file => file,
        }?;
        let written = Self { path };
        file.write_all(page(url).as_bytes())?;
        Ok(written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RedirectFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = self.path.parent() {
            let _ = fs::remove_dir(folder);
        }
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
        if is_old && entry.path().extension().is_some_and(|ending| ending == ENDING) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Makes a file that was not there, which excludes links.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_the_user_reads_it_and_nothing_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("opening");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let file = RedirectFile::write(&folder, "a", "http://[::1]:7/open/x_-y").unwrap();
        let other = RedirectFile::write(&folder, "b", "http://[::1]:8/open/z").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(file.path())), (0o700, 0o600));
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("content=\"0; url=http://[::1]:7/open/x_-y\""), "{text}");
        drop(file);
        assert!(other.path().exists(), "that of another server stays");
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
        drop(RedirectFile::write(&folder, "a", "http://127.0.0.1:7/open/x").unwrap());
        let left = |name: &str| folder.join(name).exists();
        assert_eq!((left("old.html"), left("new.html"), left("notes.txt")), (false, true, true));
    }

    #[test]
    fn links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (home.path().join("opening"), home.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &folder).unwrap();
        assert!(RedirectFile::write(&folder, "a", "http://127.0.0.1:7/open/x").is_err());
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        symlink(home.path().join("target"), folder.join("a.html")).unwrap();
        assert!(RedirectFile::write(&folder, "a", "http://127.0.0.1:7/open/x").is_err());
        assert!(!home.path().join("target").exists());
    }
}
