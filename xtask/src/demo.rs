//! `cargo xtask demo`: the shortest way from a fresh checkout to a figure.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{checkout, process, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in the checkout that the demonstration fills anew.
const OUTPUT: &str = "demo";

/// The kinds of file that count as a figure.
const FIGURES: [&str; 4] = ["png", "svg", "pdf", "html"];

/// Build the release binaries, run the toy experiment with one seed, and tell where its figure is.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> Result<Exit, Error> {
    let host = Host::from_env();
    setup::ensure(&host)?;
    let mut build = process::cargo(&host);
    // In one build: Cargo chooses the features of shared dependencies for both, and compiles them once.
    build.args(["build", "--release", "--package", "ssn-cli", "--package", "ssn-engine"]);
    let built = process::run(&mut build)?;
    if built != Exit::Success {
        return Ok(built);
    }
    let ssn = process::target_directory(&host)?
        .join("release")
        .join(format!("ssn{}", std::env::consts::EXE_SUFFIX));
    let mut toy = Command::new(ssn);
    toy.args(["toy", "--seeds", "1", "--out", OUTPUT, "--overwrite"]).current_dir(checkout::root());
    let ended = process::run(&mut toy)?;
    if ended == Exit::Success {
        announce(&checkout::root().join(OUTPUT))?;
    }
    Ok(ended)
}

fn announce(folder: &Path) -> Result<(), Error> {
    let figures = figures(folder)?;
    match figures.as_slice() {
        [] => eprintln!("The results are in {}.", folder.display()),
        [figure] => eprintln!("The figure is {}.", figure.display()),
        several => {
            eprintln!("The figures are:");
            several.iter().for_each(|figure| eprintln!("  {}", figure.display()));
        }
    }
    Ok(())
}

/// The figures in the folder and its subfolders, in the order of their paths.
fn figures(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
            let entry = entry.map_err(Error::io("list", &folder))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(Error::io("list", &folder))?);
            if kind.is_dir() {
                folders.push(path);
            } else if FIGURES.iter().any(|kind| path.extension().is_some_and(|extension| extension == *kind))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_subfolders_and_other_files_are_not() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("seed-0")).unwrap();
        for name in ["seed-0/samples.png", "a.svg", "metrics.json", "svg"] {
            fs::write(temp.path().join(name), "").unwrap();
        }
        let expected = [temp.path().join("a.svg"), temp.path().join("seed-0/samples.png")];
        assert_eq!(figures(temp.path()).unwrap(), expected);
    }
}
