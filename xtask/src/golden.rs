//! `cargo xtask golden`: our scores and networks beside golden values, for any folder that has them.

use crate::error::{Error, Exit};
use crate::{checkout, process};
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
    let dirs = match &args.dir {
        None => ["ssn-core", "ssn-nn"]
            .map(|name| checkout::root().join(format!("crates/{name}/tests/golden")))
            .to_vec(),
        // The command runs in the checkout's root, and the user may be elsewhere.
        Some(dir) => vec![std::path::absolute(dir).map_err(Error::io("find", dir))?],
    };
    let (mut compared, mut outcome) = (false, Exit::Success);
    for dir in &dirs {
        let mut folders: Vec<PathBuf> = entries(dir)?.iter().map(|name| dir.join(name)).collect();
        folders.push(dir.clone());
        folders.sort();
        for folder in &folders {
            for package in packages_for(folder) {
                let mut command = process::cargo();
                let example = if package == "ssn-core" { "golden_scores" } else { "golden_network" };
                command.args(["run", "--quiet", "--package", package, "--example", example, "--"]);
                let exit = process::run(command.arg(folder))?;
                (compared, outcome) = (true, if exit == Exit::Success { outcome } else { exit });
            }
        }
    }
    if compared {
        Ok(outcome)
    } else {
        Err(Error::usage(format!(
            "{} has no golden values: they are `ged.json` with `ged.safetensors`, or `NAME.json` with `NAME.pt` and \
             `NAME.safetensors`",
            dirs[0].display()
        )))
    }
}

/// The packages that have something to compare in a folder.
fn packages_for(folder: &Path) -> Vec<&'static str> {
    let files = entries(folder).unwrap_or_default();
    let is_network =
        |name: &String| name.ends_with(".json") && folder.join(name).with_extension("pt").exists();
    let scores = files.iter().any(|name| name == "ged.json").then_some("ssn-core");
    scores.into_iter().chain(files.iter().any(is_network).then_some("ssn-nn")).collect()
}

/// Returns the names in a folder.
fn entries(folder: &Path) -> Result<Vec<String>, Error> {
    let list = std::fs::read_dir(folder).map_err(Error::io("list", folder))?.flatten();
    Ok(list.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
