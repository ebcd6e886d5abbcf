//! `cargo xtask bench gpu`: a training step of the paper's networks on an NVIDIA GPU, ours and in PyTorch.

use super::{built, median, peer, table, word};
use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const MEBIBYTE: f64 = 1_048_576.0;

/// A network of the benchmark.
#[derive(Debug)]
struct Network {
    name: &'static str,
    words: &'static str,
    /// Steps of each turn, after some that do not count.
    steps: &'static str,
}

const NETWORKS: [Network; 2] = [
    Network { name: "unet", words: "U-Net, 12 images of 128²", steps: "50" },
    Network { name: "deepmedic", words: "DeepMedic, 10 patches of 110³", steps: "15" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    F32,
    Bf16,
}

/// How a training step is computed.
struct Way {
    words: &'static str,
    is_ours: bool,
    precision: Precision,
    /// What the program of its side calls it.
    mode: &'static str,
}

/// In the order of the table.
const WAYS: [Way; 9] = [
    theirs("PyTorch eager", Precision::F32, "eager-f32"),
    theirs("PyTorch eager, search for convolutions", Precision::F32, "search-f32"),
    theirs("torch.compile, CUDA graph", Precision::F32, "compile-f32"),
    ours(Precision::F32, "f32"),
    theirs("PyTorch eager, channels last", Precision::Bf16, "eager-bf16"),
    theirs("PyTorch CUDA graph, channels last", Precision::Bf16, "graph-bf16"),
    theirs("torch.compile, CUDA graph", Precision::Bf16, "compile-bf16"),
    theirs("torch.compile max-autotune, CUDA graph", Precision::Bf16, "autotune-bf16"),
    ours(Precision::Bf16, "bf16"),
];

const fn theirs(words: &'static str, precision: Precision, mode: &'static str) -> Way {
    Way { words, is_ours: false, precision, mode }
}

const fn ours(precision: Precision, mode: &'static str) -> Way {
    Way { words: "ours", is_ours: true, precision, mode }
}

/// Ways that may be left out.
const OPTIONAL: [&str; 2] = ["compile-f32", "autotune-bf16"];
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

    /// Only this network.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(NETWORKS.each_ref().map(|network| network.name)))]
    network: Option<String>,

    /// Leave this way out, as its program calls it, such as `autotune-bf16`, which compiles for minutes; may be repeated.
    #[arg(long, value_name = "MODE", value_parser = clap::builder::PossibleValuesParser::new(OPTIONAL))]
    skip: Vec<String>,

    /// How often the sides take turns, so that both see the same machine.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let python = match (&args.python, &args.programs) {
        (Some(python), _) => python.clone(),
        (None, Some(_)) => "python3".into(),
        (None, None) => peer::python(peer::TORCH)?,
    };
    check_gpu(&python)?;
    let program = match &args.programs {
        Some(folder) => folder.join("bench_gpu"),
        None => built("ssn-train", "bench_gpu", &[])?,
    };
    let networks: Vec<&Network> = NETWORKS
        .iter()
        .filter(|network| args.network.as_ref().is_none_or(|name| name == network.name))
        .collect();
    let mut measured = vec![];
    for network in networks {
        let mut answers = [const { vec![] }; WAYS.len()];
        for turn in 1..=args.turns {
            for (way, answers) in WAYS.iter().zip(&mut answers) {
                if args.skip.iter().any(|mode| mode == way.mode) {
                    continue;
                }
                eprintln!(
                    "{}: turn {turn} of {}, {} {} …",
                    network.words, args.turns, way.words, way.precision
                );
                answers.push(process::answer(&mut command(way, network, &program, &python))?);
            }
        }
        measured.push((network, answers));
    }
    if let Some((_, answers)) = measured.first() {
        let [device, torch] = ["device", "torch"].map(|key| word(&answers[0][0], key));
        println!(
            "A training step, rank 10, 20 samples, on {device}; PyTorch {torch}; medians of {} turns\n",
            args.turns
        );
    }
    let rows: Vec<_> = measured.iter().flat_map(|(network, answers)| rows(network.words, answers)).collect();
    let heads = ["network", "way", "ms per step", "ratio to ours", "peak MiB", "s to the first step"];
    print!("{}", table(heads, &rows));
    Ok(Exit::Success)
}

/// The program that takes steps of the network in this way.
fn command(way: &Way, network: &Network, program: &Path, python: &Path) -> Command {
    if way.is_ours {
        let mut command = Command::new(program);
        command.args(["step", network.name, way.mode, network.steps]);
        return command;
    }
    let mut command = peer::command(python, "gpu.py");
    command.args([network.name, way.mode, network.steps]);
    command
}

/// Refuses a machine on which nothing can be measured, before anything is built.
fn check_gpu(python: &Path) -> Result<(), Error> {
    let output = process::capture(Command::new(python).args(["-c", CHECK]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::tool(format!(
        "there is nothing to measure ({}): this benchmark needs an NVIDIA GPU with its driver, and in {} a PyTorch that \
         can use it",
        process::last_line(&output),
        python.display()
    )))
}

/// Returns a row for every way that was measured, each with its ratio to ours in the same precision.
fn rows(network: &str, answers: &[Vec<Value>; WAYS.len()]) -> Vec<[String; 6]> {
    let measured: Vec<_> = WAYS.iter().zip(answers).filter(|(_, answers)| !answers.is_empty()).collect();
    let ours = |precision| {
        let mut ours = measured.iter().filter(|(way, _)| way.is_ours && way.precision == precision);
        ours.next().map_or(f64::NAN, |(_, answers)| median(answers, "seconds"))
    };
    let rows = measured.iter().map(|(way, answers)| {
        let [seconds, ready, peak_bytes] =
            ["seconds", "ready_seconds", "peak_bytes"].map(|key| median(answers, key));
        [
            network.to_owned(),
            format!("{}, {}", way.words, way.precision),
            format!("{:.2}", 1e3 * seconds),
            if way.is_ours { String::new() } else { format!("{:.2} ×", seconds / ours(way.precision)) },
            format!("{:.0}", peak_bytes / MEBIBYTE),
            format!("{ready:.1}"),
        ]
    });
    rows.collect()
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_finds_no_gpu_is_refused_with_its_last_words() {
        // A shell takes `-c` as well, and fails on Python with a message of its own.
        let error = check_gpu(Path::new("/bin/sh")).unwrap_err();
        assert!(error.to_string().contains("sh:"), "{error}");
        assert_eq!(error.exit, Exit::MissingTool);
    }

    #[test]
    fn each_way_is_a_command_of_its_side() {
        let shown = |way: &Way| {
            process::shown(&command(way, &NETWORKS[1], Path::new("a/bench_gpu"), Path::new("python")))
        };
        assert_eq!(shown(&WAYS[8]), "bench_gpu step deepmedic bf16 15");
        assert!(shown(&WAYS[0]).ends_with("benches/peer/gpu.py deepmedic eager-f32 15"));
    }

    #[test]
    fn a_ratio_compares_a_way_with_ours_in_its_precision() {
        let milliseconds = [40.0, 30.0, 26.0, 20.0, 12.0, 9.0, 6.0, f64::NAN, 3.5];
        let answer = |ms: f64| serde_json::json!({ "seconds": 1e-3 * ms, "ready_seconds": 2.5, "peak_bytes": 3.0 * MEBIBYTE });
        let answers = milliseconds.map(|ms| if ms.is_nan() { vec![] } else { vec![answer(ms)] });
        let rows = rows("U", &answers);
        assert_eq!(rows.len(), WAYS.len() - 1);
        assert_eq!(rows[0], ["U", "PyTorch eager, f32", "40.00", "2.00 ×", "3", "2.5"]);
        assert_eq!(rows[3], ["U", "ours, f32", "20.00", "", "3", "2.5"]);
        assert_eq!(rows[6], ["U", "torch.compile, CUDA graph, bf16", "6.00", "1.71 ×", "3", "2.5"]);
    }
}
