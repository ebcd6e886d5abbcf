//! A Python with the peers' packages: the active one if it has them, else an environment of our own.

use crate::error::{Error, Exit};
use crate::setup::VERSION;
use crate::{checkout, process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// PyTorch in the version of our libtorch, and NumPy.
pub const TORCH: &[&str] = &["numpy", "torch"];
pub const SCIPY: &[&str] = &["numpy", "scipy"];

/// Fails unless all requirements that follow are installed.
const CHECK: &str = "\
import sys
for name, _, version in (word.partition('==') for word in sys.argv[1:]):
    assert __import__(name).__version__.split('+')[0] == version or not version";

/// The command that runs a script of the peers: the one in the working directory, if there is one, so that a program that
/// was built in another checkout finds it too.
pub fn command(python: &Path, script: &str) -> Command {
    let here = Path::new("benches/peer").join(script);
    let mut command = Command::new(python);
    command.arg(if here.exists() { here } else { checkout::root().join(here) });
    command
}

/// The interpreter to run a peer with.
pub fn python(packages: &[&str]) -> Result<PathBuf, Error> {
    let environment = process::target_directory()?.join("peer-python");
    let own = environment.join("bin/python");
    let pinned = |name: &&str| if *name == "torch" { format!("torch=={VERSION}") } else { name.to_string() };
    let requirements: Vec<String> = packages.iter().map(pinned).collect();
    let has_packages = |python: &PathBuf| {
        let output = Command::new(python).args(["-c", CHECK]).args(&requirements).output();
        output.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = [PathBuf::from("python3"), own.clone()].into_iter().find(has_packages) {
        return Ok(python);
    }
    eprintln!(
        "The peer needs {}: installing into {} (about {} to fetch, once).",
        requirements.join(" and "),
        environment.display(),
        if packages == TORCH { "2.5 GB" } else { "60 MB" }
    );
    for command in [
        Command::new("python3").args(["-I", "-m", "venv"]).arg(&environment),
        Command::new(&own)
            .args(["-I", "-m", "pip", "install", "--quiet", "--no-cache-dir"])
            .args(&requirements),
    ] {
        if process::run(command)? != Exit::Success {
            let reason = "the peer's Python environment could not be made".to_owned();
            return Err(Error::answer(&process::shown(command), &reason));
        }
    }
    Ok(own)
}
