//! A Python with the peers' packages: the active one if it has them, else an environment of our own.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{libtorch, process};
use std::path::PathBuf;
use std::process::Command;

/// The interpreter to run peers with.
pub fn python(host: &Host) -> Result<PathBuf, Error> {
    let environment = process::target_directory(host)?.join("peer-python");
    let own = environment.join("bin/python");
    for candidate in [PathBuf::from("python3"), own.clone()] {
        if has_packages(&candidate) {
            return Ok(candidate);
        }
    }
    eprintln!(
        "The peer needs PyTorch {} and NumPy: installing them into {} (about 2.5 GB to fetch, once).",
        libtorch::VERSION,
        environment.display()
    );
    let torch = format!("torch=={}", libtorch::VERSION);
    for command in [
        Command::new("python3").args(["-m", "venv"]).arg(&environment),
        Command::new(&own).args(["-m", "pip", "install", "--quiet", "--no-cache-dir", "numpy", &torch]),
    ] {
        if process::run(command)? != Exit::Success {
            let reason = "the peer's Python environment could not be made".to_owned();
            return Err(Error::BadAnswer { command: process::shown(command), reason });
        }
    }
    Ok(own)
}

fn has_packages(python: &PathBuf) -> bool {
    let check =
        format!("import numpy, torch; assert torch.__version__.split('+')[0] == '{}'", libtorch::VERSION);
    Command::new(python).args(["-c", &check]).output().is_ok_and(|output| output.status.success())
}
