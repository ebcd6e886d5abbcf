//! `cargo xtask bench`: our programs and their peers in one run, with both sides of every ratio.

mod gpu;
mod peer;
mod ranks;
mod step;
mod table;

use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{checkout, process};
use peer::Packages;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// How many times faster than PyTorch in float64 sampling must be.
const SAMPLING_BAR: f64 = 20.0;
/// How many times faster than NumPy on one-hot maps GED² must be.
const GED_BAR: f64 = 300.0;
/// How many times as many augmented patches per second as SciPy there must be, for every kind of patch.
const AUGMENT_BAR: f64 = 3.0;
/// How long the peer augments patches of each kind.
const AUGMENT_SECONDS: &str = "20";

/// Measure this project beside its peers; both sides run one after the other on this machine.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// 100 label maps of an 80³, 4-class, rank-10 distribution, beside PyTorch in float64
    Sampling,
    /// GED² of 20 samples on 80³ voxels and 4 classes, beside NumPy on one-hot maps
    Ged,
    /// Augmented patches per second, 4 × 110³ and 128², beside SciPy, two cores on both sides
    Augment,
    /// A training step of the paper's networks on the processor, beside PyTorch
    Step,
    /// A training step of two ranks of MPI, beside one process; and what that makes of up to 256
    Ranks,
    /// A training step of the paper's networks on an NVIDIA GPU, beside PyTorch
    Gpu(gpu::Args),
    /// Time and memory of 100 samples and all scores of a 240 × 240 × 155 case
    Memory,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let host = Host::from_env();
    match &args.what {
        What::Step => step::run(&host),
        What::Ranks => ranks::run(&host),
        What::Gpu(args) => gpu::run(&host, args),
        What::Memory => {
            let mut command = process::cargo(&host);
            command.args(["run", "--release", "--package", "ssn-core", "--example", "bench_memory"]);
            process::run(&mut command)
        }
        What::Augment => {
            let program = Program { package: "ssn-data", example: "bench_augment", script: "augment.py" };
            let (ours, theirs) = both_sides(&host, program, Packages::Scipy, |_, folder| {
                vec![folder.to_owned(), AUGMENT_SECONDS.to_owned()]
            })?;
            let ratio = table::augment(&ours, &theirs);
            Ok(verdict(ratio, AUGMENT_BAR))
        }
        What::Sampling => {
            let program = Program { package: "ssn-core", example: "bench_sampling", script: "sampling.py" };
            let (ours, theirs) = both_sides(&host, program, Packages::Torch, |ours, folder| {
                let sizes = ["voxels", "classes", "rank", "samples"].map(|key| ours[key].to_string());
                [vec![folder.to_owned()], sizes.to_vec()].concat()
            })?;
            table::sampling(&ours, &theirs);
            Ok(verdict(seconds_ratio(&ours, &theirs), SAMPLING_BAR))
        }
        What::Ged => {
            let program = Program { package: "ssn-core", example: "bench_ged", script: "ged.py" };
            let (ours, theirs) = both_sides(&host, program, Packages::Torch, |ours, folder| {
                let sizes = ["voxels", "classes", "samples"].map(|key| ours[key].to_string());
                [vec![folder.to_owned()], sizes.to_vec()].concat()
            })?;
            table::ged(&ours, &theirs);
            Ok(verdict(seconds_ratio(&ours, &theirs), GED_BAR))
        }
    }
}

/// How many times as long as we do the peer takes.
fn seconds_ratio(ours: &Value, theirs: &Value) -> f64 {
    let seconds = |side: &Value| side["seconds"].as_f64().unwrap_or(f64::NAN);
    seconds(theirs) / seconds(ours)
}

/// Success if we are at least `bar` times as fast as the peer.
fn verdict(ratio: f64, bar: f64) -> Exit {
    println!("\nthe bar is {bar} ×: {}", if ratio >= bar { "reached" } else { "NOT reached" });
    if ratio >= bar { Exit::Success } else { Exit::Child(1) }
}

/// The two sides of a benchmark: an example of a package of ours, and the peer's script.
#[derive(Debug, Clone, Copy)]
struct Program {
    package: &'static str,
    example: &'static str,
    script: &'static str,
}

/// Runs our program, which leaves its input in a folder, and then the peer on the same input.
fn both_sides(
    host: &Host,
    Program { package, example, script }: Program,
    packages: Packages,
    peer_arguments: impl Fn(&Value, &str) -> Vec<String>,
) -> Result<(Value, Value), Error> {
    // The peer first makes sure that it can run at all, so that nothing is measured in vain.
    let python = peer::python(host, packages)?;
    let program = built(host, package, example, &[])?;
    let target = process::target_directory(host)?;
    let folder = target.join("bench").join(example);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;

    eprintln!("Measuring ours …");
    let mut ours = std::process::Command::new(program);
    let ours = answer(ours.arg(&folder))?;
    eprintln!("Measuring the peer …");
    let script = checkout::peers().join(script);
    let mut theirs = std::process::Command::new(python);
    let theirs = answer(theirs.arg(script).args(peer_arguments(&ours, &folder.to_string_lossy())))?;
    remove(&folder)?;
    Ok((ours, theirs))
}

/// Builds an example of a package with features, and gives its program.
fn built(host: &Host, package: &str, example: &str, features: &[&str]) -> Result<PathBuf, Error> {
    let mut build = process::cargo(host);
    build.args(["build", "--release", "--package", package, "--example", example]);
    for feature in features {
        build.args(["--features", feature]);
    }
    if process::run(&mut build)? != Exit::Success {
        return Err(Error::BadAnswer { command: process::shown(&build), reason: "it failed".to_owned() });
    }
    Ok(process::target_directory(host)?.join("release/examples").join(example))
}

/// The JSON that a program prints.
fn answer(command: &mut std::process::Command) -> Result<Value, Error> {
    let output = process::capture(command)?;
    let failed = |reason: String| Error::BadAnswer { command: process::shown(command), reason };
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// The median of a number of the answers, or NaN.
fn median(answers: &[Value], key: &str) -> f64 {
    let mut values: Vec<f64> =
        answers.iter().map(|answer| answer[key].as_f64().unwrap_or(f64::NAN)).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn remove(folder: &Path) -> Result<(), Error> {
    fs::remove_dir_all(folder).map_err(Error::io("remove", folder))
}
