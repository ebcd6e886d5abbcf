//! Runs other programs: Cargo in this checkout, and whatever it built.

use crate::checkout;
use crate::error::{Error, Exit};
use crate::host;
use serde_json::Value;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The code of a child that a signal ended, which has none of its own.
const ENDED_BY_SIGNAL: u8 = 1;

/// A Cargo command in this checkout, with the environment that a Cargo started by hand would have.
pub fn cargo() -> Command {
    in_checkout(&env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program that may call Cargo, in the same way.
pub fn in_checkout(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.current_dir(checkout::root());
    // The outer Cargo has set the checkout's LIBTORCH for this process. Passed on, it would make `torch-sys`
    // see a changed environment and compile for minutes at every change between `cargo` and `cargo xtask`.
    if host::libtorch().is_none() {
        command.env_remove("LIBTORCH");
    }
    command
}

/// Shows the command, runs it on this terminal, and tells how it ended.
pub fn run(command: &mut Command) -> Result<Exit, Error> {
    eprintln!("$ {}", shown(command));
    let status = command.status().map_err(|source| not_run(command, &source))?;
    if status.success() {
        return Ok(Exit::Success);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(ENDED_BY_SIGNAL);
    Ok(Exit::Child(code))
}

fn not_run(command: &Command, source: &std::io::Error) -> Error {
    Error::tool(format!("cannot run `{}`: {source}", shown(command)))
}

/// Runs the command without showing anything and keeps what it printed.
pub fn capture(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| not_run(command, &source))
}

/// The command as one would type it: the program by its name, the arguments as they are.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

/// The last line of what a program printed as errors, which is where a traceback says what happened.
pub fn last_line(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed").to_owned()
}

/// Runs the command and reads the JSON that it prints.
pub fn answer(command: &mut Command) -> Result<Value, Error> {
    let output = capture(command)?;
    let failed = |reason: String| Error::answer(&shown(command), &reason);
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Where Cargo puts what it builds, whatever the configuration and the environment say.
pub fn target_directory() -> Result<PathBuf, Error> {
    let metadata = answer(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or_else(|| Error::answer("cargo metadata", "it names no target directory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_child_passes_its_code_on() {
        assert_eq!(run(Command::new("sh").args(["-c", "exit 7"])).unwrap(), Exit::Child(7));
        assert_eq!(run(Command::new("sh").args(["-c", "kill -9 $$"])).unwrap(), Exit::Child(ENDED_BY_SIGNAL));
        assert_eq!(run(Command::new("sh").args(["-c", ":"])).unwrap(), Exit::Success);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(Command::new("/nowhere/tool").arg("--flag")).unwrap_err();
        assert!(error.to_string().contains("`tool --flag`"), "{error}");
    }
}
