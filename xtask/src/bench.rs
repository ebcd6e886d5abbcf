//! `cargo xtask bench`: our programs and their peers in one run, with both sides of every ratio.

mod gpu;
mod peer;
mod ranks;
mod sides;
mod step;

use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::path::PathBuf;

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
    /// A training step of the paper's networks on the CPU, beside PyTorch
    Step(step::Args),
    /// A training step of two ranks of MPI, beside one process; and what that makes of up to 256
    Ranks,
    /// A training step of the paper's networks on an NVIDIA GPU, beside PyTorch
    Gpu(gpu::Args),
    /// Time and memory of 100 samples and all scores of a 240 × 240 × 155 case
    Memory,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    match &args.what {
        What::Sampling => sides::sampling(),
        What::Ged => sides::ged(),
        What::Augment => sides::augment(),
        What::Step(args) => step::run(args),
        What::Ranks => ranks::run(),
        What::Gpu(args) => gpu::run(args),
        What::Memory => {
            let example = ["run", "--release", "--package", "ssn-core", "--example", "bench_memory"];
            process::run(process::cargo().args(example))
        }
    }
}

/// Builds an example of a package with features, and gives its program.
fn built(package: &str, example: &str, features: &[&str]) -> Result<PathBuf, Error> {
    let mut build = process::cargo();
    build.args(["build", "--release", "--package", package, "--example", example]);
    build.args(features.iter().flat_map(|feature| ["--features", feature]));
    if process::run(&mut build)? != Exit::Success {
        return Err(Error::BadAnswer { command: process::shown(&build), reason: "it failed".to_owned() });
    }
    Ok(process::target_directory()?.join("release/examples").join(example))
}

/// A number of an answer, or NaN, which shows and reaches nothing.
fn number(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().unwrap_or(f64::NAN)
}

fn word<'a>(answer: &'a Value, key: &str) -> &'a str {
    answer[key].as_str().unwrap_or("?")
}

/// The median of a number of the answers, or NaN.
fn median(answers: &[Value], key: &str) -> f64 {
    let mut values: Vec<f64> = answers.iter().map(|answer| number(answer, key)).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn reached(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "NOT reached" }
}

/// Success if every bar is reached.
fn exit(is_reached: bool) -> Exit {
    if is_reached { Exit::Success } else { Exit::Child(1) }
}
