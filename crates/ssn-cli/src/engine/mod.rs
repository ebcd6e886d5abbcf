//! Handing a verb to `ssn-engine`, the half of the program that knows libtorch.

pub mod libtorch;
pub mod loader;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::engine::libtorch::Libtorch;
use crate::exit::{Exit, Failure};

/// The name of the other program.
pub const ENGINE: &str = "ssn-engine";

/// Where the engine is: beside this program, and not this program itself.
pub fn engine_path() -> Option<PathBuf> {
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

/// Becomes the engine, with the arguments of this process. Signals and exit codes are then the engine's own.
///
/// Returns only when that fails.
pub fn hand_over() -> Failure {
    let Some(engine) = engine_path() else {
        return Failure::new(
            Exit::Unavailable,
            format!(
                "this verb needs the program {ENGINE} beside ssn, and it is not there; build both with \
                 `cargo xtask setup` and `cargo build --release`"
            ),
        );
    };
    if let Some(problem) = Libtorch::of(&engine).problem() {
        return Failure::new(Exit::Unavailable, format!("{} cannot start: {problem}", engine.display()));
    }
    Failure::new(Exit::Internal, format!("cannot start {}: {}", engine.display(), become_program(&engine)))
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
    command
}

#[cfg(unix)]
fn become_program(engine: &Path) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    command(engine).exec()
}

#[cfg(not(unix))]
fn become_program(engine: &Path) -> std::io::Error {
    match command(engine).status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(Exit::Internal as i32)),
        Err(error) => error,
    }
}
