//! Files that are either whole or not there.
//!
//! Bytes go to a temporary file beside the target, are flushed to the disk, and take the target's name in one
//! step. A crash, a full disk or a second writer leaves the old file, never half of a new one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Writes a file through `fill`, atomically; replaces a file of that name.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let folder = parent(path);
    let write = || -> io::Result<()> {
        if !folder.exists() {
            let reason = format!("the folder {} does not exist", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let mut temporary = tempfile::Builder::new().prefix(".partial-").tempfile_in(folder)?;
        let mut buffer = io::BufWriter::new(temporary.as_file_mut());
        fill(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        set_permissions(temporary.path(), 0o644)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        // The new name itself lives in the folder and is durable only once the folder is.
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Writes a folder through `fill`, atomically: files and folder are on the disk before the folder takes its name.
///
/// The folder must not exist yet. `fill` gets the folder to write into and must not make folders inside it.
pub fn write_folder_atomically(
    path: &Path,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), WriteError> {
    let parent = parent(path);
    let write = || -> io::Result<()> {
        if path.exists() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let temporary = tempfile::Builder::new().prefix(".partial-").tempdir_in(parent)?;
        fill(temporary.path())?;
        for entry in std::fs::read_dir(temporary.path())? {
            let path = entry?.path();
            set_permissions(&path, 0o644)?;
            File::open(path)?.sync_all()?;
        }
        set_permissions(temporary.path(), 0o755)?;
        File::open(temporary.path())?.sync_all()?;
        std::fs::rename(temporary.path(), path)?;
        // It has its name: nothing is left to be removed.
        let _ = temporary.keep();
        File::open(parent)?.sync_all()
    };
    write().map_err(|source| WriteError { path: path.to_owned(), source })
}

/// The folder that a path lies in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Temporary files and folders are private to the user; a result should be as readable as any other.
fn set_permissions(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        write_atomically(&path, |out| out.write_all(b"first")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");

        let failure = write_atomically(&path, |out| {
            out.write_all(b"sec")?;
            Err(io::Error::other("disk full"))
        });
        let message = failure.unwrap_err().to_string();
        assert!(message.contains("out.txt") && message.ends_with("disk full"), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn the_folder_is_whole_or_absent() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("generation");
        let failure = write_folder_atomically(&path, |folder| {
            std::fs::write(folder.join("a"), b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failure.unwrap_err().to_string().ends_with("disk full"));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "nothing stays");
        write_folder_atomically(&path, |folder| std::fs::write(folder.join("a"), b"whole")).unwrap();
        assert_eq!(std::fs::read(path.join("a")).unwrap(), b"whole");
        assert!(write_folder_atomically(&path, |_| Ok(())).is_err(), "it is not replaced");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = write_atomically(Path::new("no/such/folder/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("cannot write no/such/folder/file"));
    }
}
