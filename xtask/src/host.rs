//! Tools and libtorch of the user's environment.

use crate::checkout;
use crate::error::Error;
use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names under which systems keep their C++ compiler.
const COMPILERS: [&str; 3] = ["c++", "g++", "clang++"];

/// LIBTORCH, if it is the user's own and not the one that this checkout sets.
pub fn libtorch() -> Option<PathBuf> {
    env::var_os("LIBTORCH").map(PathBuf::from).filter(|value| !is_ours(value))
}

/// Whether this LIBTORCH is the checkout's own, which Cargo sets for every process that it runs.
fn is_ours(libtorch: &Path) -> bool {
    // Compared by components: Cargo may join the folders with another separator or a trailing one.
    libtorch.components().eq(checkout::libtorch().join("torch").components())
}

/// The active Python interpreter, chosen as `torch-sys` chooses it.
pub fn python() -> Result<PathBuf, Error> {
    let program = if env::var_os("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
    find(program).ok_or_else(|| {
        Error::tool(format!(
            "`{program}` is not on the PATH: install Python 3 with pip (Debian: `apt install python3 python3-pip`)"
        ))
    })
}

/// The C++ compiler that the build of `tch` will find: CXX with its arguments if it is set, or else the usual names.
pub fn compiler() -> Result<Command, Error> {
    let cxx = env::var("CXX").unwrap_or_default();
    // CXX may carry arguments or a wrapper, as in `ccache g++`; the first word is the program.
    let mut words = cxx.split_whitespace();
    let tried = words.next().map_or(COMPILERS.to_vec(), |program| vec![program]);
    let Some(program) = tried.iter().find_map(|name| find(name)) else {
        return Err(Error::tool(format!(
            "no C++ compiler found ({}), and building `tch` needs one: install it (Debian: `apt install g++`) or set CXX",
            tried.join(", ")
        )));
    };
    let mut command = Command::new(program);
    command.args(words);
    Ok(command)
}

/// The first executable file of this name on the PATH; a name with a folder in it is taken as it is.
fn find(program: &str) -> Option<PathBuf> {
    let is_executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(program.into()).filter(is_executable);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkouts_own_libtorch_is_not_the_users() {
        assert!(is_ours(&checkout::libtorch().join("torch/")));
        assert!(!is_ours(Path::new("/opt/libtorch")) && !is_ours(Path::new("")));
    }
}
