//! Files that are either whole or not there.
//!
//! Bytes go to a temporary file beside the target, are flushed to the disk, and take the target's name in one
//! step. A crash, a full disk or a second writer leaves the old file, never half of a new one. What a process that was killed
//! left of its temporary files is removed by the next one that writes to the folder.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Advice, OFlags, fadvise};
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

/// What the names of files and folders begin with while they are written.
pub const UNFINISHED: &str = ".ssn-partial-";

/// What a file is written through.
pub trait WriteSeek: Write + Seek {}

impl<T: Write + Seek> WriteSeek for T {}

/// Writes a file through `fill`, atomically; replaces a file of that name.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn WriteSeek) -> io::Result<()>,
) -> Result<(), WriteError> {
    let folder = parent(path);
    let write = || -> io::Result<()> {
        if !folder.exists() {
            let reason = format!("the folder {} does not exist", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let mut temporary = begin(path, folder, |builder| {
            let file = builder.tempfile_in(folder)?;
            Ok(lock(file.as_file(), file.path())?.then_some(file))
        })?;
        let mut buffer = io::BufWriter::new(Flushing { file: temporary.as_file_mut(), since: 0 });
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

/// A file whose bytes begin their way to the disk while more are written, so that waiting for the disk at the end is short.
struct Flushing<'a> {
    file: &'a mut File,
    /// Bytes written since the last ones were sent on their way.
    since: u64,
}

/// Bytes that are sent to the disk together.
const FLUSHED: u64 = 32 << 20;

impl Write for Flushing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.since += count as u64;
        if self.since >= FLUSHED {
            begin_flush(self.file, self.since);
            self.since = 0;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Flushing<'_> {
    fn seek(&mut self, place: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(place)
    }
}

/// Asks the system to write the last `count` bytes before the present place, without waiting. Linux does that with pages that
/// are said not to be needed; it may refuse.
fn begin_flush(file: &mut File, count: u64) {
    if let Ok(end) = file.stream_position() {
        let _ = fadvise(&*file, end.saturating_sub(count), NonZeroU64::new(count), Advice::DontNeed);
    }
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
        let (temporary, _lock) = begin(path, parent, |builder| {
            let temporary = builder.tempdir_in(parent)?;
            let handle = match File::open(temporary.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                handle => handle?,
            };
            Ok(lock(&handle, temporary.path())?.then_some((temporary, handle)))
        })?;
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

/// Letters of the target's name in that of its temporary file: names have an end.
const NAMED: usize = 64;

/// Makes a temporary file or folder for a path, whose lock says that somebody is writing it. `make` gives none if another process
/// took it for a leftover before it was locked.
fn begin<T>(
    path: &Path,
    folder: &Path,
    make: impl Fn(&mut tempfile::Builder<'_, '_>) -> io::Result<Option<T>>,
) -> io::Result<T> {
    static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut cleared = CLEARED.lock().unwrap_or_else(PoisonError::into_inner);
    if !cleared.contains(folder) {
        // What cannot be removed is in nobody's way.
        let _ = remove_unfinished(folder);
        cleared.insert(folder.to_owned());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{UNFINISHED}{}-", name.chars().take(NAMED).collect::<String>());
    for _ in 0..ATTEMPTS {
        if let Some(made) = make(tempfile::Builder::new().prefix(&prefix))? {
            return Ok(made);
        }
    }
    Err(io::Error::other("other processes remove every temporary file"))
}

/// How often a temporary file is made anew that another process took for a leftover.
const ATTEMPTS: usize = 100;

/// Locks what was just made; false if it has been removed in between. File systems without locks have none, and nothing is
/// removed there.
fn lock(file: &File, path: &Path) -> io::Result<bool> {
    // A process that clears the folder holds the lock while it removes what it found.
    let _ = file.lock();
    path.try_exists()
}

/// Removes from a folder what processes that are gone began to write. What is being written is locked, and stays.
///
/// # Errors
/// A folder that cannot be listed, and something in it that cannot be removed.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type()?);
        if !kind.is_dir() && !kind.is_file() {
            continue;
        }
        match remove_if_unlocked(&path, kind.is_dir()) {
            // It took its name in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

fn remove_if_unlocked(path: &Path, is_folder: bool) -> io::Result<()> {
    // Network file systems lock only what is open for writing; a folder cannot be.
    let file = OpenOptions::new().read(true).write(!is_folder).open(path)?;
    if file.try_lock().is_err() {
        return Ok(());
    }
    // The lock is held until it is gone: its maker may be waiting for it.
    if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Opens a file of ours to write to, and makes it if it is not there; what it holds stays. A link is refused, which leads to what is
/// somebody else's, and what is no file, such as a pipe.
///
/// # Errors
/// What the system says.
pub fn open_own(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(append).write(!append);
    if !append {
        options.truncate(false);
    }
    // A pipe would wait for somebody who reads it.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}

/// The folder that a path lies in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Temporary files and folders are private to the user; a result should be as readable as any other.
fn set_permissions(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
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
    fn what_a_killed_process_left_is_removed_and_what_is_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let name = |end: &str| folder.path().join(format!("{UNFINISHED}{end}"));
        std::fs::write(name("left"), b"half").unwrap();
        std::fs::create_dir(name("folder")).unwrap();
        std::fs::write(name("folder").join("a"), b"half").unwrap();
        std::fs::write(name("used"), b"half").unwrap();
        let used = File::open(name("used")).unwrap();
        used.lock().unwrap();
        write_atomically(&folder.path().join("out.txt"), |out| out.write_all(b"whole")).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        assert_eq!(names, [name("used"), folder.path().join("out.txt")]);
    }

    #[test]
    fn writers_and_those_who_clear_the_folder_are_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_unfinished(folder.path()).unwrap();
                }
            });
            let written = (0..500).try_for_each(|index| {
                write_atomically(&folder.path().join("file"), |out| out.write_all(b"whole"))?;
                let path = folder.path().join(format!("folder-{index}"));
                write_folder_atomically(&path, |folder| std::fs::write(folder.join("a"), b"whole"))
            });
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            written.unwrap();
        });
    }

    #[test]
    fn files_of_ours_are_no_links() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, b"somebody's").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(open_own(&link, false).is_err() && open_own(&link, true).is_err());
        open_own(&target, true).unwrap().write_all(b" file").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's file");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = write_atomically(Path::new("no/such/folder/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("cannot write no/such/folder/file"));
    }
}
