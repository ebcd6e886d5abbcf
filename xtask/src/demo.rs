//! `cargo xtask demo`: the shortest way from a fresh checkout to a figure.

use crate::error::{Error, Exit};
use crate::{checkout, process, setup};
use std::process::Command;
use std::time::Instant;

/// The folder in the checkout that the demonstration fills.
const OUTPUT: &str = "demo";

/// Build the programs, run `ssn demo`, and print where its figure is.
///
/// The build is that of the tests, so that `cargo xtask test` builds only the rest. Crates with inner loops are optimized in it.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> Result<Exit, Error> {
    let start = Instant::now();
    setup::ensure()?;
    let libtorch = start.elapsed();
    let mut build = process::cargo();
    // In one build: Cargo chooses the features of shared dependencies for both, and compiles them once.
    build.args(["build", "--package", "ssn-cli", "--package", "ssn-engine"]);
    let built = process::run(&mut build)?;
    if built != Exit::Success {
        return Ok(built);
    }
    let building = start.elapsed() - libtorch;
    let ssn = process::target_directory()?.join("debug").join(format!("ssn{}", std::env::consts::EXE_SUFFIX));
    let mut demo = Command::new(ssn);
    // Once it has run, the same command shows the same again at once; remove the folder to begin anew.
    demo.args(["demo", "--out", OUTPUT]).current_dir(checkout::root());
    let shown = process::run(&mut demo)?;
    let seconds = [libtorch, building, start.elapsed() - libtorch - building].map(|time| time.as_secs());
    println!(
        "\nlibtorch took {} s, building {} s, the demonstration {} s",
        seconds[0], seconds[1], seconds[2]
    );
    Ok(shown)
}
