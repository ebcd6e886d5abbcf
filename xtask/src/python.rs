//! The user's Python: its pip fetches wheels, and its PyTorch, if it has the right one, saves fetching them.

use crate::error::Error;
use crate::host::Host;
use crate::pins::Wheel;
use crate::process;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many of pip's last lines are shown when it fails.
const SHOWN_LINES: usize = 6;

/// Prints the folder of the PyTorch package without importing it, which would take seconds.
///
/// A mere folder named `torch` in the working directory would be found as well; it has no origin.
const FIND_TORCH: &str = "\
import importlib.util, os
spec = importlib.util.find_spec('torch')
print(os.path.dirname(spec.origin) if spec and spec.origin else '')";

/// A Python interpreter.
#[derive(Debug)]
pub struct Python {
    /// The path of the interpreter.
    pub program: PathBuf,
}

impl Python {
    /// The active interpreter, chosen as `torch-sys` chooses it.
    pub fn find(host: &Host) -> Result<Self, Error> {
        let program = if host.virtual_env { "python" } else { "python3" };
        match host.find(program) {
            Some(program) => Ok(Self { program }),
            None => Err(Error::NoPython { program: program.into() }),
        }
    }

    /// The folder of the installed PyTorch, if there is one.
    pub fn torch_folder(&self) -> Result<Option<PathBuf>, Error> {
        let output = process::capture(self.command().args(["-c", FIND_TORCH]))?;
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !folder.is_empty()).then(|| folder.into()))
    }

    /// Refuses an interpreter without pip.
    pub fn check_pip(&self) -> Result<(), Error> {
        let output = process::capture(self.command().args(["-m", "pip", "--version"]))?;
        if output.status.success() { Ok(()) } else { Err(Error::NoPip { python: self.program.clone() }) }
    }

    /// Fetches a wheel into `folder`, which has to be empty, and tells its path there.
    pub fn download(&self, wheel: &Wheel<'_>, folder: &Path) -> Result<PathBuf, Error> {
        let show = io::stderr().is_terminal();
        let temporary = folder.join("tmp");
        fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
        let output = self
            .command()
            .args(["-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"])
            .args(["--retries", "2", "--progress-bar", if show { "on" } else { "off" }])
            // The wheel is chosen by its tags alone: the interpreter that runs pip may be of any version.
            .args([
                "--only-binary=:all:",
                "--python-version",
                "3.11",
                "--implementation",
                "cp",
                "--abi",
                "cp311",
            ])
            .args(["--platform", wheel.platform, "--dest"])
            .arg(folder)
            .arg(format!("{}=={}", wheel.package, wheel.version))
            // pip writes there first; the usual folder may be small, or memory.
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .stdout(if show { Stdio::from(io::stderr()) } else { Stdio::null() })
            .stderr(Stdio::piped())
            .spawn()
            .and_then(|child| child.wait_with_output())
            .map_err(Error::io("run", &self.program))?;
        if !output.status.success() {
            return Err(Error::PipFailed {
                package: wheel.package.into(),
                version: wheel.version.into(),
                last_lines: last_lines(&String::from_utf8_lossy(&output.stderr)),
            });
        }
        fetched_wheel(folder)?.ok_or_else(|| Error::BadAnswer {
            command: format!("pip download {}=={}", wheel.package, wheel.version),
            reason: "it succeeded and left no wheel".into(),
        })
    }

    fn command(&self) -> Command {
        Command::new(&self.program)
    }
}

fn fetched_wheel(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io("list", folder))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.find(|path| path.extension().is_some_and(|extension| extension == "whl")))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// Interpreters that are small shell scripts, kept in `xtask/tests/python`.
#[cfg(test)]
pub mod fixtures {
    use crate::host::Host;
    use std::path::Path;

    /// A host on whose PATH there is only the fake interpreter of this name.
    pub fn host(name: &str) -> Host {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name);
        Host { path: folder.into(), cxx: Some("/bin/sh".into()), ..Host::default() }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::fixtures::host;
    use super::*;
    use crate::pins::WHEELS;

    #[test]
    fn no_interpreter_is_told_with_the_name_that_was_looked_for() {
        let message = Python::find(&Host::default()).unwrap_err().to_string();
        assert!(message.starts_with("`python3` is not on the PATH"), "{message}");
        let active = Host { virtual_env: true, ..Host::default() };
        assert!(Python::find(&active).unwrap_err().to_string().starts_with("`python` is"));
    }

    #[test]
    fn an_interpreter_without_pip_is_refused() {
        let error = Python::find(&host("no-pip")).unwrap().check_pip().unwrap_err();
        assert!(matches!(error, Error::NoPip { .. }), "{error}");
        Python::find(&host("offline")).unwrap().check_pip().unwrap();
    }

    #[test]
    fn the_last_lines_of_a_failing_pip_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let error = Python::find(&host("offline")).unwrap().download(&WHEELS[0], folder.path()).unwrap_err();
        let details = error.details().unwrap();
        assert!(details.ends_with("ERROR: No matching distribution found for torch==2.11.0"), "{details}");
        assert_eq!(details.lines().count(), SHOWN_LINES);
    }

    #[test]
    fn a_pip_that_leaves_nothing_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let python = Python::find(&host("idle-pip")).unwrap();
        let error = python.download(&WHEELS[0], folder.path()).unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{error}");
    }

    #[test]
    fn the_folder_of_pytorch_is_asked_for() {
        let folder = Python::find(&host("old-torch")).unwrap().torch_folder().unwrap().unwrap();
        assert!(folder.ends_with("old-torch/torch"), "{}", folder.display());
        assert_eq!(Python::find(&host("no-pip")).unwrap().torch_folder().unwrap(), None);
    }
}
