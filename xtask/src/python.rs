//! The user's Python: its pip installs wheels, and its PyTorch, if it has the right one, saves fetching them.

use crate::error::Error;
use crate::host::Host;
use crate::process;
use signal_hook::{consts::SIGINT, flag};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many of pip's last lines are shown when it fails.
const SHOWN_LINES: usize = 6;

/// The platform tags of the pinned wheels, which pip takes literally.
const PLATFORMS: [&str; 7] = [
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_25_x86_64",
    "manylinux_2_18_x86_64",
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
];

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
        let output = process::capture(Command::new(&self.program).args(["-c", FIND_TORCH]))?;
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !folder.is_empty()).then(|| folder.into()))
    }

    /// Refuses an interpreter without pip.
    pub fn check_pip(&self) -> Result<(), Error> {
        let output = process::capture(Command::new(&self.program).args(["-m", "pip", "--version"]))?;
        if output.status.success() { Ok(()) } else { Err(Error::NoPip { python: self.program.clone() }) }
    }

    /// Lets pip fetch the wheels of a requirements file with hashes, check them, and unpack them into `work/unpacked`,
    /// which it returns. Nothing is written outside the existing folder `work` but to pip's cache.
    pub fn install(&self, requirements: &str, work: &Path) -> Result<PathBuf, Error> {
        let [list, unpacked, temporary] = ["requirements.txt", "unpacked", "tmp"].map(|name| work.join(name));
        fs::write(&list, requirements).map_err(Error::io("write", &list))?;
        fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
        let show = io::stderr().is_terminal();
        let mut pip = Command::new(&self.program);
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-compile"])
            .args(["--require-hashes", "--retries", "2", "--progress-bar", if show { "on" } else { "off" }])
            // Wheels are chosen by their tags alone: the interpreter that runs pip may be of any version.
            .args([
                "--only-binary=:all:",
                "--python-version",
                "3.11",
                "--implementation",
                "cp",
                "--abi",
                "cp311",
            ])
            .args(PLATFORMS.iter().flat_map(|platform| ["--platform", platform]))
            .arg("--target")
            .arg(&unpacked)
            .arg("-r")
            .arg(&list)
            // pip unpacks there first; the usual folder may be small, or memory.
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .stdout(if show { Stdio::from(io::stderr()) } else { Stdio::null() })
            .stderr(Stdio::piped());
        let cannot_run = |source| Error::Spawn { program: self.program.display().to_string(), source };
        // Ctrl-C reaches pip as well: until pip has ended it does not end this process, which then says what happened.
        let (interrupted, released) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        flag::register_conditional_default(SIGINT, Arc::clone(&released)).map_err(cannot_run)?;
        flag::register(SIGINT, Arc::clone(&interrupted)).map_err(cannot_run)?;
        let output = pip.spawn().and_then(|child| child.wait_with_output()).map_err(cannot_run)?;
        released.store(true, Ordering::SeqCst);
        if output.status.success() {
            return Ok(unpacked);
        }
        if interrupted.load(Ordering::SeqCst) {
            return Err(Error::Interrupted);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
        let last_lines = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        if errors.contains("DO NOT MATCH THE HASHES") {
            return Err(Error::WrongHash { last_lines });
        }
        Err(Error::PipFailed { last_lines })
    }
}
