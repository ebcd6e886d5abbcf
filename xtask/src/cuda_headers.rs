//! The headers of CUDA, without which `ssn-cuda` is built without its C++ part: where its build script looks for them.

use crate::host::Host;
use std::path::{Path, PathBuf};

/// Their folder beside that of libtorch.
pub const FOLDER: &str = "nvidia/cu13/include";

/// The two of them that tell a complete folder: each comes in a wheel of its own.
const NEEDED: [&str; 2] = ["cuda_runtime_api.h", "crt/host_config.h"];

/// The first header that a folder lacks; none if it is complete.
pub fn missing(folder: &Path) -> Option<PathBuf> {
    NEEDED.iter().map(|name| folder.join(name)).find(|path| !path.is_file())
}

/// The folder that a build against this libtorch takes: the one beside it, or that of CUDA_HOME.
pub fn find(host: &Host, torch: &Path) -> Option<PathBuf> {
    let beside = torch.parent().map(|root| root.join(FOLDER));
    let named = host.cuda_home.as_ref().map(|home| home.join("include"));
    beside.into_iter().chain(named).find(|folder| missing(folder).is_none())
}

/// Makes a folder look complete, for tests.
#[cfg(test)]
pub fn fill(folder: &Path) {
    for name in NEEDED {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).unwrap();
        std::fs::write(path, "").unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_one_of_them_is_passed_over_for_cuda_home() {
        let temp = tempfile::tempdir().unwrap();
        let (torch, beside) = (temp.path().join("torch"), temp.path().join(FOLDER));
        let home = temp.path().join("cuda");
        let host = Host { cuda_home: Some(home.clone()), ..Host::default() };
        assert_eq!(find(&host, &torch), None);
        fill(&home.join("include"));
        fill(&beside);
        assert_eq!(find(&host, &torch), Some(beside.clone()));
        std::fs::remove_file(beside.join("crt/host_config.h")).unwrap();
        assert_eq!(missing(&beside), Some(beside.join("crt/host_config.h")));
        assert_eq!(find(&host, &torch), Some(home.join("include")));
        assert_eq!(find(&Host::default(), &torch), None);
    }
}
