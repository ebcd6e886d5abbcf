//! What a folder has to hold to be the libtorch that this project builds against, wherever it comes from.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of libtorch that `tch` 0.24 is made for; `torch-sys` refuses every other.
pub const VERSION: &str = "2.11.0";

/// The folder of CUDA's headers beside that of libtorch. Without them `ssn-cuda` is built without its C++ part; its
/// build script looks there and in CUDA_HOME.
pub const CUDA_HEADERS: &str = "nvidia/cu13/include";

/// Two headers that tell a complete folder: each comes in a wheel of its own.
const NEEDED_HEADERS: [&str; 2] = ["cuda_runtime_api.h", "crt/host_config.h"];

/// The headers that define the version: the place since libtorch 2.9, and the one before.
const VERSION_HEADERS: [&str; 2] =
    ["include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"];

/// How much of libtorch there is; the greater one contains the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parts {
    /// What building and running on the CPU needs.
    Cpu,
    /// The above and everything that an NVIDIA GPU needs beside its driver.
    Cuda,
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "CPU",
            Self::Cuda => "CPU and CUDA",
        })
    }
}

/// The parts of the libtorch in `folder` (the one that holds `lib` and `include`); if it is not of the right version or
/// lacks what is wanted, the predicate of a sentence that says so.
pub fn check(folder: &Path, wanted: Parts) -> Result<Parts, String> {
    let incomplete = |missing: &str| format!("has no {missing}, so it is not a usable libtorch {VERSION}");
    let library = |name: &str| format!("lib/{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let (cpu, cuda) = (library("torch_cpu"), library("torch_cuda"));
    if let Some(missing) = [cpu.as_str(), "include/torch"].iter().find(|path| !folder.join(path).exists()) {
        return Err(incomplete(missing));
    }
    let found = version(folder).unwrap_or_else(|| "of an unknown version".into());
    if found != VERSION {
        return Err(format!("holds libtorch {found}, and {VERSION} is needed"));
    }
    match (folder.join(&cuda).is_file(), wanted) {
        (true, _) => Ok(Parts::Cuda),
        (false, Parts::Cpu) => Ok(Parts::Cpu),
        (false, Parts::Cuda) => Err(incomplete(&cuda)),
    }
}

/// The first of CUDA's headers that a folder lacks; none if it is complete.
pub fn missing_header(folder: &Path) -> Option<PathBuf> {
    NEEDED_HEADERS.iter().map(|name| folder.join(name)).find(|path| !path.is_file())
}

/// Whether a PyTorch says that it is made for the release of CUDA whose headers are pinned.
pub fn fits_pinned_cuda(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("version.py")).unwrap_or_default();
    quoted(&text, "cuda").is_some_and(|release| release.starts_with("13."))
}

/// The version that a libtorch folder says it is, without the local part (`2.11.0` for `2.11.0+cu130`).
///
/// A libtorch archive has a `build-version`, a Python package has a `version.py`, and both have headers.
fn version(folder: &Path) -> Option<String> {
    let read = |path: &str| fs::read_to_string(folder.join(path)).ok();
    let full = read("build-version")
        .or_else(|| quoted(&read("version.py")?, "__version__").map(str::to_owned))
        .or_else(|| VERSION_HEADERS.iter().find_map(|path| from_header(&read(path)?)))?;
    Some(full.trim().split('+').next()?.to_owned())
}

/// What stands between the first quotes of the line that begins with a name, as in `__version__ = '2.11.0+cpu'`.
fn quoted<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find(|line| line.starts_with(name))?.split(['\'', '"']).nth(1)
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

    const HEADER: &str = "#pragma once\n#define TORCH_VERSION_MAJOR 2\n  #define TORCH_VERSION_MINOR 11\n\
                          #define TORCH_VERSION_PATCH 0\n#define TORCH_VERSION \\\n  \"2.11.0\"\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = temp.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        temp
    }

    #[test]
    fn every_kind_of_folder_tells_its_version() {
        let python = "from typing import Optional\n__all__ = ['__version__']\n__version__ = '2.11.0+cu130'\n";
        for (file, text) in [
            ("build-version", "2.11.0+cpu\n"),
            ("version.py", python),
            (VERSION_HEADERS[0], HEADER),
            (VERSION_HEADERS[1], HEADER),
        ] {
            assert_eq!(version(folder(&[(file, text)]).path()).as_deref(), Some(VERSION), "{file}");
        }
        let damaged = folder(&[(VERSION_HEADERS[0], "#define TORCH_VERSION_MAJOR two\n")]);
        assert_eq!(version(damaged.path()), None);
    }

    #[test]
    fn the_parts_are_those_whose_libraries_are_there() {
        let torch = folder(&[("lib/libtorch_cpu.so", ""), (VERSION_HEADERS[0], HEADER)]);
        assert_eq!(check(torch.path(), Parts::Cpu), Ok(Parts::Cpu));
        assert!(check(torch.path(), Parts::Cuda).unwrap_err().starts_with("has no lib/libtorch_cuda.so,"));
        fs::write(torch.path().join("lib/libtorch_cuda.so"), "").unwrap();
        assert_eq!(check(torch.path(), Parts::Cpu), Ok(Parts::Cuda));
        fs::write(torch.path().join("build-version"), "2.10.1").unwrap();
        let fault = check(torch.path(), Parts::Cpu).unwrap_err();
        assert_eq!(fault, "holds libtorch 2.10.1, and 2.11.0 is needed");
    }

    #[test]
    fn a_pytorch_for_another_cuda_does_not_fit_the_headers() {
        for (line, fits) in [
            ("cuda: Optional[str] = '13.0'", true),
            ("cuda = \"13.2\"", true),
            ("cuda: Optional[str] = '12.8'", false),
            ("cuda: Optional[str] = None", false),
        ] {
            let text = format!("__all__ = ['cuda']\n__version__ = '2.11.0'\n{line}\nhip = '13.0'\n");
            assert_eq!(fits_pinned_cuda(folder(&[("version.py", &text)]).path()), fits, "{line}");
        }
        assert!(!fits_pinned_cuda(Path::new("/nowhere")));
    }
}
