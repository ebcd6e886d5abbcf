//! What a folder has to hold to be the libtorch that this project builds against, wherever it comes from.

use crate::error::Error;
use crate::pins::Parts;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;

/// The version of libtorch that `tch` 0.24 is made for; `torch-sys` refuses every other.
pub const VERSION: &str = "2.11.0";

/// The headers that define the version: the place since libtorch 2.9, and the one before.
const VERSION_HEADERS: [&str; 2] =
    ["include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"];

/// How a folder was chosen, which decides what an error about it says.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The subject of the sentence, such as `LIBTORCH=/opt/libtorch`.
    pub subject: String,
    /// What to do about it, as the end of the sentence.
    pub remedy: &'static str,
}

/// Checks that `folder` (the one that holds `lib` and `include`) is a libtorch of the right version, and tells
/// which parts it has.
pub fn check(folder: &Path, parts: Parts, origin: Origin) -> Result<Parts, Error> {
    let Origin { subject, remedy } = origin;
    let incomplete = |missing| Error::IncompleteLibtorch { subject: subject.clone(), missing, remedy };
    let library = |name: &str| format!("lib/{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let (cpu, cuda) = (library("torch_cpu"), library("torch_cuda"));
    if !folder.join(&cpu).is_file() {
        return Err(incomplete(cpu));
    }
    if !folder.join("include/torch").is_dir() {
        return Err(incomplete("include/torch".into()));
    }
    let found = version(folder).unwrap_or_else(|| "of an unknown version".into());
    if found != VERSION {
        return Err(Error::WrongVersion { subject, found, remedy });
    }
    match (folder.join(&cuda).is_file(), parts) {
        (true, _) => Ok(Parts::Cuda),
        (false, Parts::Cpu) => Ok(Parts::Cpu),
        (false, Parts::Cuda) => Err(incomplete(cuda)),
    }
}

/// Whether a PyTorch says that it is made for the release of CUDA whose headers are pinned.
pub fn fits_pinned_cuda(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("version.py")).unwrap_or_default();
    let release = text.lines().find(|line| line.starts_with("cuda")).and_then(quoted);
    release.is_some_and(|release| release.starts_with("13."))
}

/// The version that a libtorch folder says it is, without the local part (`2.11.0` for `2.11.0+cu130`).
///
/// A libtorch archive has a `build-version`, a Python package has a `version.py`, and both have headers.
pub fn version(folder: &Path) -> Option<String> {
    let read = |path: &str| fs::read_to_string(folder.join(path)).ok();
    let full = read("build-version")
        .or_else(|| read("version.py").and_then(|text| from_python(&text)))
        .or_else(|| VERSION_HEADERS.iter().find_map(|path| from_header(&read(path)?)))?;
    Some(full.trim().split('+').next()?.to_owned())
}

/// Reads `__version__ = '2.11.0+cpu'`.
fn from_python(text: &str) -> Option<String> {
    text.lines().find(|line| line.starts_with("__version__")).and_then(quoted).map(str::to_owned)
}

/// What stands between the first quotes.
fn quoted(line: &str) -> Option<&str> {
    line.split(['\'', '"']).nth(1)
}

/// Reads the three macros `TORCH_VERSION_MAJOR`, `_MINOR` and `_PATCH`.
fn from_header(text: &str) -> Option<String> {
    let number = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let is_it = words.next() == Some("#define") && words.next() == Some(name);
            words.next().filter(|_| is_it)?.parse::<u32>().ok()
        })
    };
    let (major, minor) = (number("TORCH_VERSION_MAJOR")?, number("TORCH_VERSION_MINOR")?);
    Some(format!("{major}.{minor}.{}", number("TORCH_VERSION_PATCH")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const HEADER: &str = "#pragma once\n#define TORCH_VERSION_MAJOR 2\n  #define TORCH_VERSION_MINOR 11\n\
                          #define TORCH_VERSION_PATCH 0\n#define TORCH_VERSION \\\n  \"2.11.0\"\n";

    fn origin() -> Origin {
        Origin { subject: "It".into(), remedy: "do this" }
    }

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = temp.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let path = temp.path().to_owned();
        (temp, path)
    }

    #[test]
    fn every_kind_of_folder_tells_its_version() {
        for (file, text) in [
            ("build-version", "2.11.0+cpu\n"),
            (
                "version.py",
                "from typing import Optional\n__all__ = ['__version__']\n__version__ = '2.11.0+cu130'\n",
            ),
            (VERSION_HEADERS[0], HEADER),
            (VERSION_HEADERS[1], HEADER),
        ] {
            let (_temp, path) = folder(&[(file, text)]);
            assert_eq!(version(&path).as_deref(), Some(VERSION), "{file}");
        }
        let (_temp, path) = folder(&[(VERSION_HEADERS[0], "#define TORCH_VERSION_MAJOR two\n")]);
        assert_eq!(version(&path), None);
    }

    #[test]
    fn the_parts_are_those_whose_libraries_are_there() {
        let (_temp, path) = folder(&[("lib/libtorch_cpu.so", ""), (VERSION_HEADERS[0], HEADER)]);
        assert_eq!(check(&path, Parts::Cpu, origin()).unwrap(), Parts::Cpu);
        let error = check(&path, Parts::Cuda, origin()).unwrap_err().to_string();
        assert!(error.contains("It has no lib/libtorch_cuda.so") && error.ends_with("do this"), "{error}");
        fs::write(path.join("lib/libtorch_cuda.so"), "").unwrap();
        assert_eq!(check(&path, Parts::Cpu, origin()).unwrap(), Parts::Cuda);
    }

    #[test]
    fn a_pytorch_for_another_cuda_does_not_fit_the_headers() {
        for (line, fits) in [
            ("cuda: Optional[str] = '13.0'", true),
            ("cuda = \"13.2\"", true),
            ("cuda: Optional[str] = '12.8'", false),
            ("cuda: Optional[str] = None", false),
            ("", false),
        ] {
            let text = format!("__all__ = ['cuda']\n__version__ = '2.11.0'\n{line}\nhip = '13.0'\n");
            let (_temp, path) = folder(&[("version.py", &text)]);
            assert_eq!(fits_pinned_cuda(&path), fits, "{line}");
        }
        assert!(!fits_pinned_cuda(Path::new("/nowhere")));
    }

    #[test]
    fn a_wrong_or_unknown_version_is_refused_with_both_versions() {
        let (_temp, path) =
            folder(&[("lib/libtorch_cpu.so", ""), ("include/torch/a.h", ""), ("build-version", "2.10.1")]);
        let error = check(&path, Parts::Cpu, origin()).unwrap_err().to_string();
        assert!(error.contains("2.10.1") && error.contains(VERSION), "{error}");
        fs::remove_file(path.join("build-version")).unwrap();
        let error = check(&path, Parts::Cpu, origin()).unwrap_err().to_string();
        assert!(error.contains("unknown version"), "{error}");
    }
}
