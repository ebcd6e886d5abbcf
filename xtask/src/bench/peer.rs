//! A Python with the peers' packages: the active one if it has them, else an environment of our own.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{libtorch, process};
use std::path::PathBuf;
use std::process::Command;

/// What a peer needs.
#[derive(Debug, Clone, Copy)]
pub enum Packages {
    /// PyTorch in the version of our libtorch, and NumPy.
    Torch,
    /// SciPy and NumPy.
    Scipy,
}

impl Packages {
    /// Python that fails without them.
    fn check(self) -> String {
        match self {
            Self::Torch => {
                let version = libtorch::VERSION;
                format!("import numpy, torch; assert torch.__version__.split('+')[0] == '{version}'")
            }
            Self::Scipy => "import numpy, scipy".to_owned(),
        }
    }

    /// Their names for pip.
    fn names(self) -> Vec<String> {
        match self {
            Self::Torch => vec!["numpy".to_owned(), format!("torch=={}", libtorch::VERSION)],
            Self::Scipy => vec!["numpy".to_owned(), "scipy".to_owned()],
        }
    }

    fn size(self) -> &'static str {
        match self {
            Self::Torch => "2.5 GB",
            Self::Scipy => "60 MB",
        }
    }
}

/// The interpreter to run a peer with.
pub fn python(host: &Host, packages: Packages) -> Result<PathBuf, Error> {
    let environment = process::target_directory(host)?.join("peer-python");
    let own = environment.join("bin/python");
    for candidate in [PathBuf::from("python3"), own.clone()] {
        if has_packages(&candidate, packages) {
            return Ok(candidate);
        }
    }
    let names = packages.names();
    eprintln!(
        "The peer needs {}: installing into {} (about {} to fetch, once).",
        names.join(" and "),
        environment.display(),
        packages.size()
    );
    for command in [
        Command::new("python3").args(["-m", "venv"]).arg(&environment),
        Command::new(&own).args(["-m", "pip", "install", "--quiet", "--no-cache-dir"]).args(&names),
    ] {
        if process::run(command)? != Exit::Success {
            let reason = "the peer's Python environment could not be made".to_owned();
            return Err(Error::BadAnswer { command: process::shown(command), reason });
        }
    }
    Ok(own)
}

fn has_packages(python: &PathBuf, packages: Packages) -> bool {
    let check = packages.check();
    Command::new(python).args(["-c", &check]).output().is_ok_and(|output| output.status.success())
}
