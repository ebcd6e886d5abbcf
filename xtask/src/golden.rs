//! `cargo xtask golden`: our scores and networks beside golden values, for any folder that has them.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{checkout, process};
use std::fs;
use std::path::{Path, PathBuf};

/// Compare our scores and networks with golden values: a table for every such file of a folder.
///
/// Scores are in `ged.json` and `ged.safetensors`, networks in `NAME.json`, `NAME.pt` and `NAME.safetensors`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder, or one whose folders have such files; without it, the values that come with the repository.
    dir: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let folders = match &args.dir {
        None => {
            let root = checkout::root();
            vec![root.join("crates/ssn-core/tests/golden"), root.join("crates/ssn-net/tests/golden")]
        }
        Some(dir) => {
            // The command runs in the checkout's root, and the user may be elsewhere.
            let dir = std::path::absolute(dir).map_err(Error::io("find", dir))?;
            let mut folders = vec![dir.clone()];
            for entry in fs::read_dir(&dir).map_err(Error::io("read", &dir))? {
                folders.push(entry.map_err(Error::io("read", &dir))?.path());
            }
            folders.sort();
            folders
        }
    };
    let (mut compared, mut outcome) = (false, Exit::Success);
    for folder in &folders {
        for package in packages_for(folder) {
            let mut command = process::cargo(&Host::from_env());
            command.args(["run", "--quiet", "--package", package, "--example", "golden", "--"]).arg(folder);
            let exit = process::run(&mut command)?;
            compared = true;
            if exit != Exit::Success {
                outcome = exit;
            }
        }
    }
    if !compared {
        let dir = folders[0].clone();
        return Err(Error::NoGoldenValues { dir });
    }
    Ok(outcome)
}

/// The packages that have something to compare in a folder.
fn packages_for(folder: &Path) -> Vec<&'static str> {
    let mut packages = vec![];
    if folder.join("ged.json").exists() {
        packages.push("ssn-core");
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    if entries.map(|entry| entry.path()).any(|path| {
        path.extension().is_some_and(|ending| ending == "json") && path.with_extension("pt").exists()
    }) {
        packages.push("ssn-net");
    }
    packages
}
