//! The record of a complete installation, `manifest.json`.
//!
//! It is written after everything else and removed before anything is changed: an installation without one is
//! never trusted, whatever it holds.

use crate::cuda_headers;
use crate::digest::Digest;
use crate::error::Error;
use crate::libtorch::{self, Origin, VERSION};
use crate::pins::{Parts, Wheel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the manifest in the folder of the installation.
pub const FILE_NAME: &str = "manifest.json";

/// Every installed file by its path, which is relative to the folder and written with slashes.
pub type Files = BTreeMap<String, Entry>;

/// One installed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its size, which every later run compares.
    pub bytes: u64,
    /// Its hash in hexadecimal, for `sha256sum`.
    pub sha256: String,
}

impl From<Digest> for Entry {
    fn from(digest: Digest) -> Self {
        Self { bytes: digest.bytes, sha256: digest.hex() }
    }
}

/// Where an installation comes from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Unpacked from wheels.
    Downloaded {
        /// The files that came out of them.
        files: Files,
    },
    /// A link to the PyTorch of a Python installation, which may change under it.
    Linked {
        /// The `torch` folder of that installation.
        target: PathBuf,
        /// CUDA's headers, which it lacks and which lie beside the link.
        #[serde(default)]
        headers: Files,
    },
}

/// A complete installation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of libtorch.
    pub version: String,
    /// What is installed of it.
    pub parts: Parts,
    /// Where it comes from.
    pub source: Source,
}

impl Manifest {
    /// The manifest of the installation in `root`; none if there is none that can be read.
    pub fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(root.join(FILE_NAME)).ok()?).ok()
    }

    /// Writes the manifest: first into `staging`, then with one rename into `root`.
    pub fn write(&self, root: &Path, staging: &Path) -> Result<(), Error> {
        let (draft, path) = (staging.join(FILE_NAME), root.join(FILE_NAME));
        let io = Error::io("write", &path);
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(&draft, text)).and_then(|()| fs::rename(&draft, &path)).map_err(io)
    }

    /// Why the installation in `root` does not serve someone who wants these parts; none if it does.
    ///
    /// The check is quick: of downloaded files the sizes, of a linked PyTorch the version. Early installations for CUDA
    /// have no headers, and so does a PyTorch by itself.
    pub fn problem(&self, root: &Path, parts: Parts) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("it is libtorch {}", self.version));
        }
        if self.parts < parts {
            return Some(format!("it is made for the {} alone", self.parts));
        }
        let (files, of_link) = match &self.source {
            Source::Downloaded { files } => (files, None),
            Source::Linked { target, headers } => (headers, link_problem(root, target, parts)),
        };
        let of_headers = || {
            let missing = cuda_headers::missing(&root.join(cuda_headers::FOLDER))?;
            let missing = missing.strip_prefix(root).unwrap_or(&missing).display().to_string();
            Some(format!("it has no {missing}, which building the CUDA part needs"))
        };
        of_link
            .or_else(|| files.iter().find_map(|(name, entry)| entry.problem(root, name)))
            .or_else(|| (parts == Parts::Cuda).then(of_headers)?)
    }

    /// Whether it was unpacked from these wheels, in these versions: each has left its licences.
    pub fn holds(&self, wheels: &[Wheel<'_>]) -> bool {
        let Source::Downloaded { files } = &self.source else { return false };
        wheels.iter().all(|wheel| files.keys().any(|name| name.starts_with(&wheel.licences())))
    }

    /// The number of files and what they weigh together; nothing for a link.
    pub fn weight(&self) -> (usize, u64) {
        match &self.source {
            Source::Downloaded { files } => (files.len(), files.values().map(|entry| entry.bytes).sum()),
            Source::Linked { .. } => (0, 0),
        }
    }
}

fn link_problem(root: &Path, target: &Path, parts: Parts) -> Option<String> {
    let torch = root.join("torch");
    if fs::read_link(&torch).ok().as_deref() != Some(target) {
        return Some(format!("torch is not the link to {} any more", target.display()));
    }
    let origin = Origin { subject: torch.display().to_string(), remedy: "link it again" };
    match libtorch::check(&torch, parts, origin) {
        Ok(_) if parts == Parts::Cuda && !libtorch::fits_pinned_cuda(&torch) => {
            Some(format!("it links to {}, which is now for another CUDA", target.display()))
        }
        Ok(_) => None,
        Err(Error::WrongVersion { found, .. }) => {
            Some(format!("it links to {}, which is now libtorch {found}", target.display()))
        }
        Err(_) => Some(format!("it links to {}, which is gone or lacks what is needed", target.display())),
    }
}

impl Entry {
    fn problem(&self, root: &Path, name: &str) -> Option<String> {
        match fs::metadata(root.join(name)) {
            Err(_) => Some(format!("{name} is missing")),
            Ok(meta) if meta.len() != self.bytes => {
                Some(format!("{name} has {} bytes and not {}", meta.len(), self.bytes))
            }
            Ok(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(parts: Parts, source: Source) -> Manifest {
        Manifest { version: VERSION.into(), parts, source }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let entry = Entry { bytes: 3, sha256: "abc".into() };
        let files = Files::from([("torch/a".to_owned(), entry)]);
        let written = manifest(Parts::Cuda, Source::Downloaded { files });
        written.write(temp.path(), temp.path()).unwrap();
        assert_eq!(Manifest::read(temp.path()), Some(written));
        fs::write(temp.path().join(FILE_NAME), "{ \"version\": ").unwrap();
        assert_eq!(Manifest::read(temp.path()), None);
    }

    #[test]
    fn another_version_or_too_few_parts_are_a_problem() {
        let temp = tempfile::tempdir().unwrap();
        let cpu = manifest(Parts::Cpu, Source::Downloaded { files: Files::new() });
        assert_eq!(cpu.problem(temp.path(), Parts::Cpu), None);
        assert!(cpu.problem(temp.path(), Parts::Cuda).unwrap().contains("CPU alone"));
        let old = Manifest { version: "2.10.0".into(), ..cpu };
        assert_eq!(old.problem(temp.path(), Parts::Cpu).unwrap(), "it is libtorch 2.10.0");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_checked_for_its_version_every_time() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path().join("site-packages/torch");
        fs::create_dir_all(target.join("lib")).unwrap();
        fs::create_dir_all(target.join("include/torch")).unwrap();
        fs::write(target.join("lib/libtorch_cpu.so"), "").unwrap();
        fs::write(target.join("version.py"), "__version__ = '2.11.0+cpu'").unwrap();
        let linked = manifest(Parts::Cpu, Source::Linked { target: target.clone(), headers: Files::new() });
        assert!(linked.problem(temp.path(), Parts::Cpu).unwrap().contains("not the link"));
        std::os::unix::fs::symlink(&target, temp.path().join("torch")).unwrap();
        assert_eq!(linked.problem(temp.path(), Parts::Cpu), None);
        fs::write(target.join("version.py"), "__version__ = '2.12.0'").unwrap();
        assert!(linked.problem(temp.path(), Parts::Cpu).unwrap().contains("libtorch 2.12.0"));
        fs::remove_dir_all(&target).unwrap();
        assert!(linked.problem(temp.path(), Parts::Cpu).unwrap().contains("gone"));
    }

    #[test]
    fn an_installation_without_cudas_headers_serves_the_cpu_alone() {
        let temp = tempfile::tempdir().unwrap();
        let early = manifest(Parts::Cuda, Source::Downloaded { files: Files::new() });
        let headers = temp.path().join(cuda_headers::FOLDER);
        cuda_headers::fill(&headers);
        assert_eq!(early.problem(temp.path(), Parts::Cuda), None);
        fs::remove_file(headers.join("crt/host_config.h")).unwrap();
        assert_eq!(early.problem(temp.path(), Parts::Cpu), None);
        let problem = early.problem(temp.path(), Parts::Cuda).unwrap();
        assert!(problem.starts_with("it has no nvidia/cu13/include/crt/host_config.h,"), "{problem}");
    }
}
