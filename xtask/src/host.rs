//! What the environment says, read once: no other module looks at environment variables.

use crate::checkout;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variables that decide where libtorch and its tools come from.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// PATH, in which tools are looked for.
    pub path: OsString,
    /// CXX, the C++ compiler that the user prefers.
    pub cxx: Option<String>,
    /// Whether a virtual environment is active; `torch-sys` then asks `python` and not `python3`.
    pub virtual_env: bool,
    /// Whether LIBTORCH_USE_PYTORCH is set; to `torch-sys` any value means yes.
    pub use_pytorch: bool,
    /// LIBTORCH, if it is the user's own and not the one that this checkout sets.
    pub libtorch: Option<PathBuf>,
    /// CUDA_HOME, whose headers serve a libtorch that comes without.
    pub cuda_home: Option<PathBuf>,
}

impl Host {
    /// Reads the environment of this process.
    pub fn from_env() -> Self {
        Self {
            path: env::var_os("PATH").unwrap_or_default(),
            cxx: env::var("CXX").ok().filter(|value| !value.trim().is_empty()),
            virtual_env: env::var_os("VIRTUAL_ENV").is_some(),
            use_pytorch: env::var_os("LIBTORCH_USE_PYTORCH").is_some(),
            libtorch: env::var_os("LIBTORCH").map(PathBuf::from).filter(|value| !is_ours(value)),
            cuda_home: env::var_os("CUDA_HOME").map(PathBuf::from),
        }
    }

    /// The first executable file of this name on the PATH; a name with a folder in it is taken as it is.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let name =
            format!("{}{}", program.trim_end_matches(env::consts::EXE_SUFFIX), env::consts::EXE_SUFFIX);
        if Path::new(program).components().count() > 1 {
            return is_executable(Path::new(program)).then(|| program.into());
        }
        env::split_paths(&self.path).map(|folder| folder.join(&name)).find(|file| is_executable(file))
    }
}

/// Whether this LIBTORCH is the checkout's own, which Cargo sets for every process that it runs.
fn is_ours(libtorch: &Path) -> bool {
    // Compared by components: Cargo may join the folders with another separator or a trailing one.
    libtorch.components().eq(checkout::libtorch().join("torch").components())
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkouts_own_libtorch_is_not_the_users() {
        assert!(is_ours(&checkout::libtorch().join("torch")));
        assert!(is_ours(&checkout::libtorch().join("torch/")));
        assert!(!is_ours(Path::new("/opt/libtorch")));
        assert!(!is_ours(Path::new("")));
    }

    #[test]
    fn only_executable_files_on_the_path_are_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "not executable").unwrap();
        let host = Host { path: folder.path().into(), ..Host::default() };
        assert_eq!(host.find("tool"), None);
        assert_eq!(host.find("absent"), None);
        assert_eq!(host.find("/bin/sh"), Some("/bin/sh".into()));
    }
}
