//! Fills a folder from pinned wheels so that an interruption at any moment leaves either what was there before or a
//! folder that the next run recognizes as incomplete.
//!
//! pip unpacks into `.partial-*` in the folder, and what is kept is renamed into place. The manifest is removed before
//! anything in place changes and written last: a folder without one is never trusted, whatever it holds.

use crate::error::Error;
use crate::libtorch::{Parts, VERSION};
use crate::python::Python;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";
const LOCK: &str = ".lock";
const STAGING: &str = ".partial-";

/// Wheels, and what a folder keeps of them beside their licenses.
#[derive(Debug)]
pub struct WheelSet {
    /// A requirements file with hashes.
    requirements: &'static str,
    /// Files and folders; the rest of the wheels is deleted.
    kept: &'static [&'static str],
    /// How much is fetched, needed meanwhile, and kept.
    pub sizes: &'static str,
}

/// For a linked PyTorch on the CPU, which lacks nothing.
const NOTHING: WheelSet = WheelSet { requirements: "", kept: &[], sizes: "nothing" };

/// The headers of CUDA beside a linked PyTorch.
const CUDA_HEADERS: WheelSet = WheelSet {
    requirements: include_str!("../requirements/cuda-headers.txt"),
    kept: &["nvidia/cu13/include"],
    sizes: "2 MB",
};

/// What `cargo xtask check-cuda` compiles with.
pub const CUDA_COMPILER: WheelSet = WheelSet {
    requirements: include_str!("../requirements/cuda-compiler.txt"),
    kept: &[
        "nvidia/cu13/include",
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
    ],
    sizes: "93 MB",
};

const LIBTORCH_CPU: WheelSet = WheelSet {
    requirements: include_str!("../requirements/libtorch-cpu.txt"),
    kept: &[
        "torch/include",
        "torch/lib/libc10.so",
        "torch/lib/libgomp.so.1",
        // Needs libtorch_cuda.so to be loaded, but nothing loads it: the linker wants it for `-ltorch` alone.
        "torch/lib/libtorch.so",
        "torch/lib/libtorch_cpu.so",
        "nvidia/cu13/lib/libcudart.so.13",
        "nvidia/cu13/lib/libcupti.so.13",
    ],
    sizes: "0.54 GB, needs 1.8 GB meanwhile, and keeps 0.50 GB",
};

const LIBTORCH_CUDA: WheelSet = WheelSet {
    requirements: include_str!("../requirements/libtorch-cuda.txt"),
    kept: &["torch/include", "torch/lib", "nvidia"],
    sizes: "2.5 GB, needs 7 GB meanwhile, and keeps 4 GB",
};

impl WheelSet {
    /// What a folder with these parts is made of, with its `torch` from the wheels or linked.
    pub fn of(parts: Parts, linked: bool) -> &'static Self {
        match (parts, linked) {
            (Parts::Cpu, false) => &LIBTORCH_CPU,
            (Parts::Cuda, false) => &LIBTORCH_CUDA,
            (Parts::Cpu, true) => &NOTHING,
            (Parts::Cuda, true) => &CUDA_HEADERS,
        }
    }

    /// Whether there is nothing to fetch.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The pins without comments.
    fn pins(&self) -> Vec<String> {
        self.requirements.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }
}

/// The record of a complete folder. The build script of `ssn-cuda` watches the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The `torch` folder of a Python installation, if `torch` is a link to it.
    pub linked: Option<PathBuf>,
    /// The wheels that the rest comes from, as lines of a requirements file.
    wheels: Vec<String>,
}

impl Manifest {
    /// The manifest of a folder; none if there is none that can be read.
    pub fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(root.join(MANIFEST)).ok()?).ok()
    }

    /// Whether the folder was made from these wheels, with these hashes.
    pub fn fits(&self, set: &WheelSet) -> bool {
        self.wheels == set.pins()
    }
}

/// Whether the folder is one that may be filled: a new or empty one, or one that was filled before.
pub fn is_usable(root: &Path) -> Result<bool, Error> {
    Ok(!root.exists() || root.join(LOCK).exists() || entries(root)?.is_empty())
}

/// Makes the folder if it does not exist, and waits until nobody else changes it. The operating system takes the lock
/// back when the file is closed, however the process ends.
pub fn lock(root: &Path) -> Result<File, Error> {
    fs::create_dir_all(root).map_err(Error::io("create", root))?;
    let path = root.join(LOCK);
    let file = File::options().create(true).append(true).open(&path).map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("Another `cargo xtask` works in {}: waiting for it.", root.display());
            file.lock().map_err(Error::io("lock", &path))?;
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
    }
    Ok(file)
}

/// Fills a folder, of which the caller holds the [`lock`], with what is kept of the wheels, and with a link to a PyTorch
/// if there is one. What was there before stays until all of it has arrived.
pub fn fill(root: &Path, set: &WheelSet, linked: Option<PathBuf>, python: &Python) -> Result<(), Error> {
    for leftover in entries(root)?.iter().filter(|name| name.starts_with(STAGING)) {
        // A pip whose parent was killed may still write there: what cannot be removed now is removed next time.
        let _ = fs::remove_dir_all(root.join(leftover));
    }
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(root);
    let staging = staging.map_err(Error::io("create a folder in", root))?;
    let tree = staging.path().join("tree");
    fs::create_dir(&tree).map_err(Error::io("create", &tree))?;
    if !set.is_empty() {
        keep(set, &python.install(set.requirements, staging.path())?, &tree)?;
    }
    let torch = tree.join("torch");
    if let Some(target) = &linked {
        std::os::unix::fs::symlink(target, &torch).map_err(Error::io("link", &torch))?;
    } else if torch.is_dir() {
        // `torch-sys` reads this file, which the archives of libtorch have and the wheels do not.
        let path = torch.join("build-version");
        fs::write(&path, format!("{VERSION}\n")).map_err(Error::io("write", &path))?;
    }
    let manifest = root.join(MANIFEST);
    remove(&manifest)?;
    for name in entries(root)?.iter().filter(|name| is_owned(name)) {
        remove(&root.join(name))?;
    }
    for name in entries(&tree)? {
        rename(&tree.join(&name), &root.join(&name))?;
    }
    staging.close().map_err(Error::io("tidy", root))?;
    let text = serde_json::to_vec_pretty(&Manifest { linked, wheels: set.pins() }).map_err(io::Error::from);
    text.and_then(|text| fs::write(&manifest, text)).map_err(Error::io("write", &manifest))
}

/// The error of a pip that says that it succeeded.
pub fn not_believed(reason: &str) -> Error {
    Error::BadAnswer { command: "pip install".into(), reason: reason.into() }
}

/// Moves what is kept, and the licenses, from the unpacked wheels to the tree.
fn keep(set: &WheelSet, unpacked: &Path, tree: &Path) -> Result<(), Error> {
    if let Some(missing) = set.kept.iter().find(|path| !unpacked.join(path).exists()) {
        return Err(not_believed(&format!("it succeeded and left no {missing}")));
    }
    let licenses = entries(unpacked)?.into_iter().filter(|name| name.ends_with(".dist-info"));
    for path in set.kept.iter().map(|path| path.to_string()).chain(licenses) {
        let to = tree.join(&path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        rename(&unpacked.join(&path), &to)?;
    }
    Ok(())
}

/// Whether this entry of the folder comes from wheels or a link; anything else there is not touched.
fn is_owned(name: &str) -> bool {
    matches!(name, "torch" | "nvidia") || name.ends_with(".dist-info")
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(Error::io("move", from))
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
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_wheel_has_one_pin_in_all_files() {
        let mut pins = BTreeMap::new();
        for set in [&LIBTORCH_CUDA, &LIBTORCH_CPU, &CUDA_COMPILER, &CUDA_HEADERS] {
            for line in set.pins() {
                let (name, hash) = line.split_once(" --hash=sha256:").unwrap();
                assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
                let package = name.split("==").next().unwrap().to_owned();
                assert_eq!(pins.entry(package).or_insert_with(|| line.clone()), &line);
            }
        }
        assert_eq!(pins.len(), 17);
        assert!(pins["torch"].starts_with(&format!("torch=={VERSION} ")));
    }
}
