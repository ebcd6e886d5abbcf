//! Puts a libtorch into its folder so that an interruption at any moment leaves either the old installation
//! or one that the next run recognises as incomplete.
//!
//! Everything is made in `.partial-PID` inside the folder and then renamed into place; the manifest goes
//! first on the way out and comes last on the way in. Wheels that arrived whole wait in `.downloads` until
//! the installation is complete, so that a second attempt does not fetch them again.

use crate::digest;
use crate::error::Error;
use crate::libtorch::VERSION;
use crate::manifest::{self, Files, Manifest, Source};
use crate::pins::{Parts, Wheel};
use crate::units::size;
use crate::wheel;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const DOWNLOADS: &str = ".downloads";
const STAGING_PREFIX: &str = ".partial-";
const LOCK: &str = ".lock";

/// The right to change an installation; the operating system takes it back when the process ends.
#[derive(Debug)]
pub struct Lock {
    root: PathBuf,
    _file: File,
}

impl Lock {
    /// Makes the folder if it does not exist, and waits until nobody else changes it.
    pub fn acquire(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(Error::io("create", root))?;
        let path = root.join(LOCK);
        let file = File::options().create(true).append(true).open(&path).map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("Another `cargo xtask setup` works in {}: waiting for it.", root.display());
                file.lock().map_err(Error::io("lock", &path))?;
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
        }
        Ok(Self { root: root.to_owned(), _file: file })
    }

    /// Removes what interrupted runs left behind, except wheels that a new attempt can use.
    fn clear_staging(&self) -> Result<(), Error> {
        for name in entries(&self.root)?.iter().filter(|name| name.starts_with(STAGING_PREFIX)) {
            remove(&self.root.join(name))?;
        }
        Ok(())
    }
}

/// Whether the folder is one that `setup` may fill: a new or empty one, or one that it has filled before.
pub fn is_usable(root: &Path) -> Result<bool, Error> {
    Ok(!root.exists() || root.join(LOCK).exists() || entries(root)?.is_empty())
}

/// The wheel in `.downloads`, if it seems whole; its hash is checked before it is used.
pub fn fetched(root: &Path, wheel: &Wheel<'_>) -> Option<PathBuf> {
    let path = root.join(DOWNLOADS).join(wheel.file_name());
    path.metadata().is_ok_and(|meta| meta.len() == wheel.bytes).then_some(path)
}

/// Removes what an interrupted run left behind after it had completed its installation.
pub fn tidy(root: &Path) -> Result<(), Error> {
    let leftover = |name: &String| name == DOWNLOADS || name.starts_with(STAGING_PREFIX);
    if entries(root)?.iter().any(leftover) {
        let lock = Lock::acquire(root)?;
        lock.clear_staging()?;
        remove(&root.join(DOWNLOADS))?;
    }
    Ok(())
}

/// Installs these parts from these wheels; `fetch` brings one into the empty folder that it is given.
pub fn download(
    lock: &Lock,
    wheels: &[Wheel<'_>],
    parts: Parts,
    fetch: impl FnMut(&Wheel<'_>, &Path) -> Result<PathBuf, Error>,
) -> Result<Manifest, Error> {
    let staging = Staging::create(lock)?;
    let mut files = staging.fill(wheels, parts, fetch)?;
    // `torch-sys` reads this file, which the archives of libtorch have and the wheels do not.
    let version_file = "torch/build-version";
    let path = staging.tree().join(version_file);
    let text = format!("{VERSION}\n");
    fs::write(&path, &text).map_err(Error::io("write", &path))?;
    let digest = digest::copy(text.as_bytes(), std::io::sink()).map_err(Error::io("read", &path))?;
    files.insert(version_file.into(), digest.into());
    let manifest = Manifest { version: VERSION.into(), parts, source: Source::Downloaded { files } };
    staging.place(&manifest)?;
    Ok(manifest)
}

/// Unpacks what the CUDA part keeps of these wheels, and nothing else.
pub fn unpack(
    lock: &Lock,
    wheels: &[Wheel<'_>],
    fetch: impl FnMut(&Wheel<'_>, &Path) -> Result<PathBuf, Error>,
) -> Result<Manifest, Error> {
    let staging = Staging::create(lock)?;
    let (parts, files) = (Parts::Cuda, staging.fill(wheels, Parts::Cuda, fetch)?);
    let manifest = Manifest { version: VERSION.into(), parts, source: Source::Downloaded { files } };
    staging.place(&manifest)?;
    Ok(manifest)
}

/// Makes `torch` a link to the PyTorch of a Python installation, which has been checked, and puts beside it what these
/// parts need of these wheels.
#[cfg(unix)]
pub fn link(
    lock: &Lock,
    target: &Path,
    wheels: &[Wheel<'_>],
    parts: Parts,
    fetch: impl FnMut(&Wheel<'_>, &Path) -> Result<PathBuf, Error>,
) -> Result<Manifest, Error> {
    let staging = Staging::create(lock)?;
    let headers = staging.fill(wheels, parts, fetch)?;
    let (tree, torch) = (staging.tree(), staging.tree().join("torch"));
    fs::create_dir_all(&tree).map_err(Error::io("create", &tree))?;
    std::os::unix::fs::symlink(target, &torch).map_err(Error::io("link", &torch))?;
    let source = Source::Linked { target: target.to_owned(), headers };
    let manifest = Manifest { version: VERSION.into(), parts, source };
    staging.place(&manifest)?;
    Ok(manifest)
}

/// The verified wheel: one that an earlier attempt left, or a new one.
fn obtain(
    root: &Path,
    wheel: &Wheel<'_>,
    staging: &Staging<'_>,
    fetch: &mut impl FnMut(&Wheel<'_>, &Path) -> Result<PathBuf, Error>,
) -> Result<PathBuf, Error> {
    if let Some(path) = fetched(root, wheel).filter(|path| wheel::verify(path, wheel).is_ok()) {
        eprintln!("  {} {} is already here", wheel.package, wheel.version);
        return Ok(path);
    }
    eprintln!("  fetching {} {} ({})", wheel.package, wheel.version, size(wheel.bytes));
    let folder = staging.folder.join(wheel.package);
    fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
    let arrived = fetch(wheel, &folder)?;
    // Verified before it is moved, and its folder goes with the staging folder if it is the wrong one.
    wheel::verify(&arrived, wheel)?;
    let path = root.join(DOWNLOADS).join(wheel.file_name());
    fs::rename(&arrived, &path).map_err(Error::io("move", &arrived))?;
    remove(&folder)?;
    Ok(path)
}

/// The folder in which an installation is made; it is removed when the attempt ends, however it ends.
struct Staging<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Staging<'a> {
    fn create(lock: &'a Lock) -> Result<Self, Error> {
        lock.clear_staging()?;
        // With the number of the process: a pip that outlived its killed parent may still write to the old one.
        let folder = lock.root.join(format!("{STAGING_PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        Ok(Self { root: &lock.root, folder })
    }

    /// What will be renamed into place.
    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Unpacks what these parts keep of the wheels into the tree.
    fn fill(
        &self,
        wheels: &[Wheel<'_>],
        parts: Parts,
        mut fetch: impl FnMut(&Wheel<'_>, &Path) -> Result<PathBuf, Error>,
    ) -> Result<Files, Error> {
        let downloads = self.root.join(DOWNLOADS);
        fs::create_dir_all(&downloads).map_err(Error::io("create", &downloads))?;
        let wheels: Vec<_> = wheels.iter().filter(|wheel| wheel.serves(parts)).collect();
        let mut paths = Vec::new();
        for wheel in &wheels {
            paths.push(obtain(self.root, wheel, self, &mut fetch)?);
        }
        let mut files = Files::new();
        for (wheel, path) in wheels.iter().zip(&paths) {
            eprintln!("  unpacking {} ({})", wheel.package, size(wheel.unpacked(parts)));
            let unpacked = wheel::unpack(path, wheel, parts, &self.tree()).inspect_err(|error| {
                if matches!(error, Error::DamagedWheel { .. }) {
                    // Kept, it would be found damaged again; that it cannot be removed changes nothing.
                    let _ = fs::remove_file(path);
                }
            })?;
            files.extend(unpacked);
        }
        Ok(files)
    }

    /// Exchanges the old installation for the new one, vouches for it, and removes the wheels.
    fn place(&self, manifest: &Manifest) -> Result<(), Error> {
        remove(&self.root.join(manifest::FILE_NAME))?;
        let old = self.folder.join("old");
        fs::create_dir(&old).map_err(Error::io("create", &old))?;
        for name in entries(self.root)?.iter().filter(|name| is_owned(name)) {
            rename(self.root, &old, name)?;
        }
        for name in entries(&self.tree())? {
            rename(&self.tree(), self.root, &name)?;
        }
        manifest.write(self.root, &self.folder)?;
        remove(&self.root.join(DOWNLOADS))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // A failure is harmless: the next run clears the folder before it does anything else.
        let _ = fs::remove_dir_all(&self.folder);
        // Removes an empty folder only: wheels in it are for the next attempt.
        let _ = fs::remove_dir(self.root.join(DOWNLOADS));
    }
}

/// Whether this entry of the folder belongs to an installation; anything else there is not touched.
fn is_owned(name: &str) -> bool {
    matches!(name, "torch" | "nvidia") || name.ends_with(".dist-info")
}

fn rename(from: &Path, to: &Path, name: &str) -> Result<(), Error> {
    let (from, to) = (from.join(name), to.join(name));
    fs::rename(&from, &to).map_err(Error::io("move", &from))
}

fn entries(folder: &Path) -> Result<Vec<String>, Error> {
    let list = fs::read_dir(folder).and_then(|list| list.collect::<Result<Vec<_>, _>>());
    let list = list.map_err(Error::io("list", folder))?;
    Ok(list.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Removes a file, a link (not what it points to) or a folder; that there is none is fine.
fn remove(path: &Path) -> Result<(), Error> {
    let result = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
