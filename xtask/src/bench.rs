//! `cargo xtask bench`: measures our programs and their peers in one run and prints both sides of every ratio.

mod gpu;
mod peer;
mod ranks;
mod sides;
mod step;

use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::path::PathBuf;

/// Measure this project and its peers on this machine, and print a table in Markdown.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// 100 label maps of an 80³, 4-class, rank-10 distribution, ours and in PyTorch in float64
    Sampling,
    /// GED² of 20 samples on 80³ voxels and 4 classes, ours and in NumPy on one-hot maps
    Ged,
    /// Augmented patches per second, 4 × 110³ and 128², ours and in SciPy, two cores on both sides
    Augment,
    /// A training step of the paper's networks on the CPU, ours and in PyTorch
    Step(step::Args),
    /// A training step of two ranks of MPI and of one process
    Ranks,
    /// A training step of the paper's networks on an NVIDIA GPU, ours and in PyTorch
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

/// Builds an example of a package with features and returns its program.
fn built(package: &str, example: &str, features: &[&str]) -> Result<PathBuf, Error> {
    let mut build = process::cargo();
    build.args(["build", "--release", "--package", package, "--example", example]);
    build.args(features.iter().flat_map(|feature| ["--features", feature]));
    if process::run(&mut build)? != Exit::Success {
        return Err(Error::answer(&process::shown(&build), "it failed"));
    }
    Ok(process::target_directory()?.join("release/examples").join(example))
}

/// Returns a number of an answer, NaN if it is missing.
fn number(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().unwrap_or(f64::NAN)
}

fn word<'a>(answer: &'a Value, key: &str) -> &'a str {
    answer[key].as_str().unwrap_or("?")
}

/// Returns the median of a number over answers, NaN if there are none.
fn median(answers: &[Value], key: &str) -> f64 {
    let mut values: Vec<f64> = answers.iter().map(|answer| number(answer, key)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats a table in Markdown, as `cargo xtask docs` copies it from the records.
fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(N));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    line(&heads.map(str::to_owned)) + &rule + &rows
}
