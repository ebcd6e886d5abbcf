//! `cargo xtask golden`: our scores beside golden values, for any folder that has them.

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{checkout, process};
use std::path::PathBuf;

/// Compare scores with golden values: a table for the files `ged.json` and `ged.safetensors` of a folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder; without it, the values that come with the repository.
    dir: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let ours = checkout::root().join("crates/ssn-core/tests/golden");
    // The command runs in the checkout's root, and the user may be elsewhere.
    let dir = args.dir.as_deref().map_or(Ok(ours), std::path::absolute);
    let dir = dir.map_err(Error::io("find", args.dir.as_deref().unwrap_or(checkout::root())))?;
    let mut command = process::cargo(&Host::from_env());
    command.args(["run", "--quiet", "--package", "ssn-core", "--example", "golden", "--"]).arg(dir);
    process::run(&mut command)
}
