//! Fills a folder from pinned wheels so that an interruption at any moment leaves either what was there before or a
//! folder that the next run recognizes as incomplete.
//!
//! pip unpacks into `.partial-*` in the folder, and what is kept is renamed into place. The manifest is removed before
//! anything in place changes and written last: a folder without one is never trusted, whatever it holds.

use crate::error::Error;
use crate::libtorch::VERSION;
use crate::python;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;

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
    sizes: "0.54 GB, needs 1.8 GB meanwhile and keeps 0.5 GB",
};

const LIBTORCH_CUDA: WheelSet = WheelSet {
    requirements: include_str!("../requirements/libtorch-cuda.txt"),
    kept: &["torch/include", "torch/lib", "nvidia"],
    sizes: "2.5 GB, needs 7 GB meanwhile and keeps 4 GB",
};

/// What a linked PyTorch lacks for the CPU.
const NOTHING: WheelSet = WheelSet { requirements: "", kept: &[], sizes: "nothing" };

/// What a linked PyTorch lacks for CUDA.
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

impl WheelSet {
    /// What a libtorch is made of, with its `torch` from the wheels or linked.
    pub fn of_libtorch(cuda: bool, linked: bool) -> &'static Self {
        match (linked, cuda) {
            (false, false) => &LIBTORCH_CPU,
            (false, true) => &LIBTORCH_CUDA,
            (true, false) => &NOTHING,
            (true, true) => &CUDA_HEADERS,
        }
    }

    /// Whether there is nothing to fetch.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The first kept file or folder that is not there.
    pub fn missing(&self, folder: &Path) -> Option<&'static str> {
        self.kept.iter().copied().find(|path| !folder.join(path).exists())
    }

    /// The pins without comments.
    fn pins(&self) -> Vec<String> {
        self.requirements.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }
}

/// The record of a complete folder. The build script of `ssn-cuda` watches the file.
#[derive(Debug)]
pub struct Manifest(Value);

impl Manifest {
    /// The manifest of a folder; none if there is none that can be read.
    pub fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(root.join(MANIFEST)).ok()?).ok().map(Self)
    }

    /// The `torch` folder of a Python installation, if `torch` is a link to it.
    pub fn linked(&self) -> Option<&Path> {
        self.0["linked"].as_str().map(Path::new)
    }

    /// Whether the folder was made from these wheels, with these hashes.
    pub fn fits(&self, set: &WheelSet) -> bool {
        self.0["wheels"] == json!(set.pins())
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
    if file.try_lock().is_err() {
        eprintln!("Another `cargo xtask` works in {}: waiting for it.", root.display());
        file.lock().map_err(Error::io("lock", &path))?;
    }
    Ok(file)
}

/// Fills a folder, of which the caller holds the [`lock`], with what is kept of the wheels, and with a link to a PyTorch
/// if there is one. What was there before stays until all of it has arrived.
pub fn fill(root: &Path, set: &WheelSet, linked: Option<&Path>, python: &Path) -> Result<(), Error> {
    clear_staging(root)?;
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(root);
    let staging = staging.map_err(Error::io("create a folder in", root))?;
    let [tree, old] = ["tree", "old"].map(|name| staging.path().join(name));
    fs::create_dir(&tree).and_then(|()| fs::create_dir(&old)).map_err(Error::io("fill", staging.path()))?;
    if !set.is_empty() {
        keep(set, &python::install(python, set.requirements, staging.path())?, &tree)?;
    }
    let torch = tree.join("torch");
    if let Some(target) = linked {
        std::os::unix::fs::symlink(target, &torch).map_err(Error::io("link", &torch))?;
    } else if torch.is_dir() {
        // `torch-sys` reads this file, which the archives of libtorch have and the wheels do not.
        let path = torch.join("build-version");
        fs::write(&path, format!("{VERSION}\n")).map_err(Error::io("write", &path))?;
    }
    let manifest = root.join(MANIFEST);
    if manifest.exists() {
        rename(root, &old, MANIFEST)?;
    }
    // Anything else in the folder is not touched.
    let is_ours = |name: &String| matches!(name.as_str(), "torch" | "nvidia") || name.ends_with(".dist-info");
    for name in entries(root)?.iter().filter(|name| is_ours(name)) {
        rename(root, &old, name)?;
    }
    for name in entries(&tree)? {
        rename(&tree, root, &name)?;
    }
    clear_staging(root)?;
    let record = json!({ "linked": linked, "wheels": set.pins() });
    fs::write(&manifest, format!("{record:#}\n")).map_err(Error::io("write", &manifest))
}

/// Removes the folders of this run and of interrupted ones.
fn clear_staging(root: &Path) -> Result<(), Error> {
    for name in entries(root)?.iter().filter(|name| name.starts_with(STAGING)) {
        // A pip whose parent was killed may still write there: what cannot be removed now is removed next time.
        let _ = fs::remove_dir_all(root.join(name));
    }
    Ok(())
}

/// Moves what is kept, and the licenses, from the unpacked wheels to the tree.
fn keep(set: &WheelSet, unpacked: &Path, tree: &Path) -> Result<(), Error> {
    if let Some(missing) = set.missing(unpacked) {
        let reason = format!("it succeeded and left no {missing}");
        return Err(Error::BadAnswer { command: "pip install".into(), reason });
    }
    let licenses = entries(unpacked)?.into_iter().filter(|name| name.ends_with(".dist-info"));
    for path in set.kept.iter().map(ToString::to_string).chain(licenses) {
        if let Some(parent) = tree.join(&path).parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        rename(unpacked, tree, &path)?;
    }
    Ok(())
}

fn rename(from: &Path, to: &Path, name: &str) -> Result<(), Error> {
    let (from, to) = (from.join(name), to.join(name));
    fs::rename(&from, &to).map_err(Error::io("move", &from))
}

/// The names of what is in a folder.
pub fn entries(folder: &Path) -> Result<Vec<String>, Error> {
    let list = fs::read_dir(folder).and_then(|list| list.collect::<Result<Vec<_>, _>>());
    let list = list.map_err(Error::io("list", folder))?;
    Ok(list.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_wheel_has_one_pin_in_all_files() {
        let mut pins = BTreeMap::new();
        for line in [LIBTORCH_CUDA, LIBTORCH_CPU, CUDA_COMPILER, CUDA_HEADERS].iter().flat_map(WheelSet::pins)
        {
            let (package, pin) = line.split_once("==").unwrap();
            let (_, hash) = pin.split_once(" --hash=sha256:").unwrap();
            assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            assert_eq!(pins.entry(package.to_owned()).or_insert(pin.to_owned()), pin);
        }
        assert_eq!(pins.len(), 17);
        assert!(pins["torch"].starts_with(&format!("{VERSION} ")));
    }
}
