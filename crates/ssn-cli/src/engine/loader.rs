//! What the dynamic loader says of a program's libraries, asked without running the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// With this variable the loader lists the libraries of a program and ends before the program begins, as for `ldd`.
const TRACE: &str = "LD_TRACE_LOADED_OBJECTS";

/// The libraries that a program needs, directly or through others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The files of those that are there.
    pub found: Vec<PathBuf>,
    /// The names of those that are not.
    pub missing: Vec<String>,
    /// What the loader says where a library is there, but too old for the program.
    pub too_old: Option<String>,
}

/// The libraries of `program`, together with those of some libraries that it loads on demand. Nothing for a file that
/// cannot be run.
pub fn libraries_of(program: &Path, on_demand: &[PathBuf]) -> Libraries {
    let mut command = Command::new(program);
    command.env(TRACE, "1").stdin(Stdio::null());
    if !on_demand.is_empty() {
        let paths: Vec<_> = on_demand.iter().map(|path| path.to_string_lossy()).collect();
        command.env("LD_PRELOAD", paths.join(":"));
    }
    let Ok(output) = command.output() else { return Libraries::default() };
    let [listed, said] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let mut libraries = Libraries::default();
    // `NAME => FILE (ADDRESS)`, or `NAME => not found`
    for (name, place) in listed.lines().filter_map(|line| line.trim().split_once(" => ")) {
        match place.rsplit_once(" (") {
            Some((file, _)) => libraries.found.push(file.into()),
            None => libraries.missing.push(name.to_owned()),
        }
    }
    // `FILE: LIBRARY: version `VERSION' not found (required by FILE)`
    libraries.too_old =
        said.lines().find(|line| line.contains("' not found (required by ")).map(str::to_owned);
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_finds_its_own_libraries() {
        let libraries = libraries_of(&std::env::current_exe().unwrap(), &[]);
        let is_libc = |path: &PathBuf| path.ends_with("libc.so.6") && path.is_file();
        assert!(libraries.found.iter().any(is_libc), "{libraries:?}");
        assert!(libraries.missing.is_empty() && libraries.too_old.is_none(), "{libraries:?}");
    }

    #[test]
    fn a_file_that_is_no_program_needs_nothing() {
        assert_eq!(libraries_of(Path::new("Cargo.toml"), &[]), Libraries::default());
        assert_eq!(libraries_of(Path::new("no/such/file"), &[]), Libraries::default());
    }
}
