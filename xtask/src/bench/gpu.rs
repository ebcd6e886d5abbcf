//! `cargo xtask bench gpu`: a training step of the paper's networks on an NVIDIA GPU, beside PyTorch.

mod report;

use super::{answer, built, median, peer, peer::Packages};
use crate::error::Error;
use crate::exit::Exit;
use crate::host::Host;
use crate::{checkout, process};
use report::{Aim, Comparison, Figures, Way};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A network of the benchmark and what we aim at over the way in which the paper's code trains it.
struct Network {
    name: &'static str,
    words: &'static str,
    /// Steps of each turn, after some that do not count.
    steps: &'static str,
    over_eager: Aim,
}

const NETWORKS: [Network; 2] = [
    Network {
        name: "unet",
        words: "U-Net, 12 images of 128²",
        steps: "50",
        over_eager: Aim { bar: 2.5, goal: 4.0 },
    },
    Network {
        name: "deepmedic",
        words: "DeepMedic, 10 patches of 110³",
        steps: "15",
        over_eager: Aim { bar: 2.2, goal: 4.0 },
    },
];
/// What we aim at over the fastest of PyTorch's ways.
const OVER_BEST: Aim = Aim { bar: 1.0, goal: 1.5 };
/// Python that ends with a sentence where PyTorch has no GPU.
const CHECK: &str = "\
import sys, torch
torch.cuda.is_available() or sys.exit(f'PyTorch {torch.__version__} finds no NVIDIA GPU that it can use')";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run the `bench_gpu` of this folder instead of building it, for machines without Cargo.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,

    /// The Python with PyTorch to compare with; with `--programs`, `python3` unless it is given.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    /// The two sides take turns so often, so that both see the same machine.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
}

/// Runs the command.
pub fn run(host: &Host, args: &Args) -> Result<Exit, Error> {
    let python = match (&args.python, &args.programs) {
        (Some(python), _) => python.clone(),
        (None, Some(_)) => "python3".into(),
        (None, None) => peer::python(host, Packages::Torch)?,
    };
    check_gpu(&python)?;
    let program = match &args.programs {
        Some(folder) => folder.join("bench_gpu"),
        None => built(host, "ssn-net", "bench_gpu", &[])?,
    };
    let mut comparisons = vec![];
    let mut peer = Value::Null;
    for network in &NETWORKS {
        let answers = measure(network, &program, &python, args.turns)?;
        peer = answers[0][0].clone();
        comparisons.push(Comparison {
            words: network.words,
            figures: answers.map(|answers| Figures {
                seconds: median(&answers, "seconds"),
                peak_bytes: median(&answers, "peak_bytes"),
            }),
            eager_aim: network.over_eager,
            best_aim: OVER_BEST,
        });
    }
    let word = |key: &str| peer[key].as_str().unwrap_or("?");
    println!(
        "A training step, rank 10, M = 20, on {}; PyTorch {}; medians of {} turns\n",
        word("device"),
        word("torch"),
        args.turns
    );
    print!("{}", report::table(&comparisons));
    let (lines, reached) = report::verdict(&comparisons);
    print!("\n{lines}");
    Ok(if reached { Exit::Success } else { Exit::Child(1) })
}

/// The answers of every way, in the order of [`Way::ALL`], one per turn.
fn measure(
    network: &Network,
    program: &Path,
    python: &Path,
    turns: u32,
) -> Result<[Vec<Value>; Way::ALL.len()], Error> {
    let mut answers = [const { vec![] }; Way::ALL.len()];
    for turn in 1..=turns {
        eprintln!("{}: turn {turn} of {turns} …", network.words);
        for (way, answers) in Way::ALL.into_iter().zip(&mut answers) {
            answers.push(answer(&mut command(way, network, program, python))?);
        }
    }
    Ok(answers)
}

/// The program that takes steps of the network in this way.
fn command(way: Way, network: &Network, program: &Path, python: &Path) -> Command {
    let peer = |mode| {
        let mut command = Command::new(python);
        command.arg(checkout::peers().join("gpu.py")).args([network.name, mode, network.steps]);
        command
    };
    let ours = |precision| {
        let mut command = Command::new(program);
        command.args(["step", network.name, precision, network.steps]);
        command
    };
    match way {
        Way::EagerF32 => peer("eager-f32"),
        Way::EagerBf16 => peer("eager-bf16"),
        Way::GraphBf16 => peer("graph-bf16"),
        Way::OursF32 => ours("f32"),
        Way::OursBf16 => ours("bf16"),
    }
}

/// Refuses a machine on which nothing can be measured, before anything is built.
fn check_gpu(python: &Path) -> Result<(), Error> {
    let output = process::capture(Command::new(python).args(["-c", CHECK]))?;
    if output.status.success() {
        return Ok(());
    }
    // A traceback ends with what happened.
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("Python failed");
    Err(Error::NoGpu { python: python.to_owned(), reason: reason.to_owned() })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_finds_no_gpu_is_refused_with_its_last_words() {
        // A shell takes `-c` as well, and fails on Python with a message of its own.
        let error = check_gpu(Path::new("/bin/sh")).unwrap_err();
        assert!(matches!(&error, Error::NoGpu { reason, .. } if reason.contains("sh:")), "{error}");
        assert_eq!(error.exit(), Exit::MissingTool);
    }

    #[test]
    fn each_way_is_a_command_of_its_side() {
        let shown =
            |way| process::shown(&command(way, &NETWORKS[1], Path::new("a/bench_gpu"), Path::new("python")));
        assert_eq!(shown(Way::OursBf16), "bench_gpu step deepmedic bf16 15");
        assert!(shown(Way::GraphBf16).ends_with("benches/peer/gpu.py deepmedic graph-bf16 15"));
    }
}
