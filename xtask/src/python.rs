//! The user's Python: its pip installs wheels, and its PyTorch, if it has the right one, saves fetching them.

use crate::error::Error;
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

/// Chooses wheels by their tags alone: the interpreter that runs pip may be of any version. With the platform of 2014
/// pip also takes those of 2010 and the first.
const TAGS: &str = "--only-binary=:all: --python-version=3.11 --implementation=cp --abi=cp311 \
                    --platform=manylinux_2_28_x86_64 --platform=manylinux_2_27_x86_64 \
                    --platform=manylinux_2_25_x86_64 --platform=manylinux_2_18_x86_64 \
                    --platform=manylinux2014_x86_64";

/// Prints the folder of the PyTorch package without importing it, which would take seconds.
///
/// A mere folder named `torch` in the working directory would be found as well; it has no origin.
const FIND_TORCH: &str = "\
import importlib.util, os
spec = importlib.util.find_spec('torch')
print(os.path.dirname(spec.origin) if spec and spec.origin else '')";

/// The folder of the installed PyTorch, if there is one.
pub fn torch_folder(python: &Path) -> Result<Option<PathBuf>, Error> {
    let output = process::capture(Command::new(python).args(["-c", FIND_TORCH]))?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((output.status.success() && !folder.is_empty()).then(|| folder.into()))
}

/// Refuses a platform for which no wheels are pinned, and an interpreter without pip.
pub fn check_pip(python: &Path) -> Result<(), Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Err(Error::UnsupportedPlatform);
    }
    let output = process::capture(Command::new(python).args(["-I", "-m", "pip", "--version"]))?;
    if output.status.success() { Ok(()) } else { Err(Error::NoPip { python: python.to_owned() }) }
}

/// Lets pip fetch the wheels of a requirements file with hashes, check them, and unpack them into `work/unpacked`,
/// which it returns. pip writes nothing outside the existing folder `work` but its cache.
pub fn install(python: &Path, requirements: &str, work: &Path) -> Result<PathBuf, Error> {
    let [list, unpacked, temporary] = ["requirements.txt", "unpacked", "tmp"].map(|name| work.join(name));
    fs::write(&list, requirements).map_err(Error::io("write", &list))?;
    fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
    let show = io::stderr().is_terminal();
    let mut pip = Command::new(python);
    pip.args(["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-compile"])
        .args(["--require-hashes", "--retries=2", "--progress-bar", if show { "on" } else { "off" }])
        .args(TAGS.split_whitespace())
        .arg("--target")
        .arg(&unpacked)
        .arg("-r")
        .arg(&list)
        // pip unpacks there first; the usual folder may be small, or memory.
        .env("TMPDIR", &temporary)
        // They are about other folders than `--target`.
        .envs([("PIP_USER", "0"), ("PIP_REQUIRE_VIRTUALENV", "0")])
        .stdin(Stdio::null())
        .stdout(if show { Stdio::from(io::stderr()) } else { Stdio::null() })
        .stderr(Stdio::piped());
    let cannot_run = |source| Error::Spawn { program: python.display().to_string(), source };
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
    let lines = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    if errors.contains("DO NOT MATCH THE HASHES") {
        return Err(Error::WrongHash { lines });
    }
    Err(Error::PipFailed { lines })
}
