//! Handing a verb to `ssn-engine`, the half of the program that knows libtorch.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::{Exit, Failure};
use crate::libtorch::Libtorch;

/// The name of the other program.
pub const ENGINE: &str = "ssn-engine";

/// Where the engine is: beside this program.
pub fn engine_path() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.canonicalize().ok()?.with_file_name(ENGINE);
    path.is_file().then_some(path)
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

#[cfg(unix)]
fn become_program(engine: &Path) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    Command::new(engine).args(std::env::args_os().skip(1)).exec()
}

#[cfg(not(unix))]
fn become_program(engine: &Path) -> std::io::Error {
    match Command::new(engine).args(std::env::args_os().skip(1)).status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(Exit::Internal as i32)),
        Err(error) => error,
    }
}
