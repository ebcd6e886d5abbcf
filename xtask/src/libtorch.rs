//! What a folder has to hold to be the libtorch that this project builds against, wherever it comes from.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;

/// The version of libtorch that `tch` 0.24 is made for; `torch-sys` refuses every other.
pub const VERSION: &str = "2.11.0";

/// The folder of CUDA's headers beside that of libtorch. Without them `ssn-cuda` is built without its C++ part; its
/// build script looks there and in CUDA_HOME.
pub const CUDA_HEADERS: &str = "nvidia/cu13/include";

/// Two headers that tell a complete folder: each comes in a wheel of its own.
const NEEDED_HEADERS: [&str; 2] = ["cuda_runtime_api.h", "crt/host_config.h"];

/// Where a PyTorch and the headers of a libtorch, since 2.9 and before, say their version, and what stands before it.
const VERSION_FILES: [(&str, &str); 3] = [
    ("version.py", "\n__version__ = "),
    ("include/torch/headeronly/version.h", "\n#define TORCH_VERSION "),
    ("include/torch/csrc/api/include/torch/version.h", "\n#define TORCH_VERSION "),
];

/// Checks that `folder` (the one that holds `lib` and `include`) is a libtorch of the right version, and with CUDA if
/// that is asked for. An error is the predicate of a sentence about the folder.
pub fn check(folder: &Path, cuda: bool) -> Result<(), String> {
    let library = |name: &str| format!("lib/{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let needed =
        [Some(library("torch_cpu")), Some("include/torch".into()), cuda.then(|| library("torch_cuda"))];
    if let Some(missing) = needed.into_iter().flatten().find(|path| !folder.join(path).exists()) {
        return Err(format!("has no {missing}, so it is not a usable libtorch {VERSION}"));
    }
    match version(folder) {
        Some(found) if found == VERSION => Ok(()),
        Some(found) => Err(format!("holds libtorch {found}, and {VERSION} is needed")),
        None => Err(format!("holds libtorch of an unknown version, and {VERSION} is needed")),
    }
}

/// Whether a folder has CUDA's headers.
pub fn has_cuda_headers(folder: &Path) -> bool {
    NEEDED_HEADERS.iter().all(|name| folder.join(name).is_file())
}

/// Whether a PyTorch says that it is made for the release of CUDA whose headers are pinned.
pub fn fits_pinned_cuda(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("version.py")).unwrap_or_default();
    text.lines().any(|line| line.starts_with("cuda") && line.contains("= '13."))
}

/// The version that a libtorch folder says it is, without the local part (`2.11.0` for `2.11.0+cu130`).
fn version(folder: &Path) -> Option<String> {
    let read = |path: &str| fs::read_to_string(folder.join(path)).ok();
    let quoted = |(path, before): &(&str, &str)| {
        let text = format!("\n{}", read(path)?);
        Some(text.split_once(before)?.1.split(['\'', '"']).nth(1)?.to_owned())
    };
    // The archives of libtorch, and what `setup` installs, have this file.
    let full = read("build-version").or_else(|| VERSION_FILES.iter().find_map(quoted))?;
    Some(full.trim().split('+').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_folder_tells_its_version() {
        let header =
            "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION \\\n  \"2.11.0\"\n#define OTHER \"1.0\"\n";
        let python = "__all__ = ['__version__', 'cuda']\n__version__ = '2.11.0+cu130'\ncuda = '13.0'\n";
        let files = ["build-version", VERSION_FILES[0].0, VERSION_FILES[1].0, VERSION_FILES[2].0];
        for (file, text) in files.into_iter().zip(["2.11.0+cpu\n", python, header, header]) {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            assert_eq!(version(temp.path()).as_deref(), Some(VERSION), "{file}");
            fs::write(&path, "").unwrap();
            assert_ne!(version(temp.path()).as_deref(), Some(VERSION), "{file}");
        }
    }
}
