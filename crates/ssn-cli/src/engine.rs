//! Handing a verb to `ssn-engine`, the half of the program that knows libtorch, and what the dynamic loader says of it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use ssn_eval::ErrorKind;

/// The name of the other program.
pub const ENGINE: &str = "ssn-engine";

static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder of the programs, for a process that is none of them.
pub fn set_programs(folder: PathBuf) {
    // It stays what it was at first.
    let _ = PROGRAMS.set(folder);
}

/// Where the engine is: beside this program, and not this program itself.
pub fn engine_path() -> Option<PathBuf> {
    if let Some(folder) = PROGRAMS.get() {
        return Some(folder.join(ENGINE)).filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    let path = program.with_file_name(ENGINE);
    (path != program && path.is_file()).then_some(path)
}

/// What only the engine knows of itself: its answer to `info`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EngineInfo {
    /// Whether it was built with its CUDA part.
    pub cuda_part: bool,
}

impl EngineInfo {
    /// Asks an engine, which loads libtorch for that; nothing if it does not answer.
    pub fn of(engine: &Path) -> Option<Self> {
        let output = Command::new(engine).args(["info", "--json"]).stdin(Stdio::null()).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }
}

/// What the engine says of the sections of a config that only it knows; `None` where there is no engine that answers.
pub fn check_config(config: &Path) -> Option<Result<(), String>> {
    let engine = engine_path().filter(|engine| Libtorch::of(engine).problem().is_none())?;
    let output = Command::new(engine).arg("check").arg(config).stdin(Stdio::null()).output().ok()?;
    if output.status.success() {
        return Some(Ok(()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().strip_prefix("error: ").unwrap_or(said.trim());
    (!said.is_empty()).then(|| Err(said.to_owned()))
}

/// Becomes the engine, with the arguments of this process. Signals and exit codes are then the engine's own.
///
/// Returns only when that fails.
pub fn hand_over() -> Failure {
    let Some(engine) = engine_path() else {
        return Failure::new(
            ErrorKind::Unavailable,
            format!(
                "this verb needs the program {ENGINE} beside ssn, and it is not there; build both with \
                 `cargo xtask setup` and `cargo build --release`"
            ),
        );
    };
    if let Some(problem) = Libtorch::of(&engine).problem() {
        return Failure::new(ErrorKind::Unavailable, format!("{} cannot start: {problem}", engine.display()));
    }
    Failure::new(
        ErrorKind::Internal,
        format!("cannot start {}: {}", engine.display(), command(&engine).exec()),
    )
}

/// The variable by which glibc's allocator is tuned.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Keep memory once it is there. By default glibc takes every large tensor from the system and gives it back a moment
/// later, and the system clears its pages each time: up to a quarter of a training step on CPUs.
const KEEP_MEMORY: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184";

/// The command that starts the engine, with the arguments of this process.
fn command(engine: &Path) -> Command {
    let mut command = Command::new(engine);
    command.args(std::env::args_os().skip(1));
    if std::env::var_os(TUNABLES).is_none() {
        command.env(TUNABLES, KEEP_MEMORY);
    }
    let chosen = WAITING.iter().any(|name| std::env::var_os(name).is_some());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if !chosen && is_busy(&load, cores) {
        command.env(WAITING[0], "passive");
    }
    command
}

/// Variables by which users choose how threads wait for each other.
const WAITING: [&str; 2] = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"];

/// Whether other programs compute on at least half of the cores, by the text of `/proc/loadavg`.
///
/// Threads that wait for each other spin by default, which is fastest on cores of their own and takes the time of those that they
/// wait for on others' (`docs/performance.md`, beside other programs).
fn is_busy(load: &str, cores: usize) -> bool {
    let last_minute = load.split(' ').next().and_then(|value| value.parse::<f64>().ok());
    last_minute.is_some_and(|load| 2.0 * load >= cores as f64)
}

/// The version that the engine is built for.
pub const LIBTORCH_VERSION: &str = "2.11.0";

/// The library that every computation needs.
const LIBTORCH: &str = "libtorch_cpu.so";

/// What is known of the engine's libtorch.
#[derive(Debug, Default, Serialize)]
pub struct Libtorch {
    /// The folder of its libraries.
    pub folder: Option<PathBuf>,
    /// The version that the folder states.
    pub version: Option<String>,
    /// Names of libraries that the engine needs and that are not found.
    pub missing: Vec<String>,
    /// What the loader says of a library that is too old for the engine.
    pub too_old: Option<String>,
}

impl Libtorch {
    /// Asks the dynamic loader for the libraries of `engine`.
    pub fn of(engine: &Path) -> Self {
        let libraries = libraries_of(engine, &[]);
        let path = libraries.found.iter().find(|path| path.ends_with(LIBTORCH));
        let folder = path.and_then(|path| Some(path.parent()?.to_owned()));
        let version = folder.as_deref().and_then(stated_version);
        Self { folder, version, missing: libraries.missing, too_old: libraries.too_old }
    }

    /// Why the engine cannot run with it, with what to do; nothing if it can.
    pub fn problem(&self) -> Option<String> {
        let remedy = "run `cargo xtask setup` in the checkout that the engine was built in, or name the folder of \
                      the right libraries in LD_LIBRARY_PATH";
        if !self.missing.is_empty() {
            let verb = if self.missing.len() == 1 { "is" } else { "are" };
            return Some(format!("{} {verb} not found; {remedy}", self.missing.join(", ")));
        }
        if let Some(said) = &self.too_old {
            return Some(format!("{said}; build it again on this machine"));
        }
        match (&self.version, &self.folder) {
            (Some(found), Some(folder)) if found.split('+').next() != Some(LIBTORCH_VERSION) => {
                let folder = folder.display();
                Some(format!("{folder} holds libtorch {found}, and {LIBTORCH_VERSION} is needed; {remedy}"))
            }
            _ => None,
        }
    }
}

/// The version that a folder of libraries states beside it: `build-version`, or `version.py` of a PyTorch.
fn stated_version(lib: &Path) -> Option<String> {
    let root = lib.parent()?;
    if let Ok(text) = std::fs::read_to_string(root.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = std::fs::read_to_string(root.join("version.py")).ok()?;
    let quoted = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
    Some(quoted.trim_matches(['\'', '"']).to_owned())
}

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
    fn a_machine_is_busy_when_half_of_its_cores_are() {
        assert!(is_busy("1.02 0.50 0.20 2/300 4711\n", 2) && is_busy("8.0 1 1 1/1 1", 16));
        assert!(!is_busy("0.98 4 4 1/1 1", 2) && !is_busy("", 2));
    }

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
