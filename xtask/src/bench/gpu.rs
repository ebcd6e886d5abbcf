//! `cargo xtask bench gpu`: a training step of the paper's networks on an NVIDIA GPU, beside PyTorch.

use super::{built, exit, median, peer, reached, word};
use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const MEBIBYTE: f64 = 1_048_576.0;

/// How many times as fast we must be, and want to be.
#[derive(Debug, Clone, Copy)]
struct Aim {
    bar: f64,
    goal: f64,
}

/// A network of the benchmark.
#[derive(Debug)]
struct Network {
    name: &'static str,
    words: &'static str,
    /// Steps of each turn, after some that do not count.
    steps: &'static str,
    /// What our bfloat16 aims at over eager PyTorch in single precision, in which the paper's code trains.
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
/// What it aims at over the fastest of PyTorch's ways.
const OVER_BEST: Aim = Aim { bar: 1.0, goal: 1.5 };

/// How a training step is computed.
struct Way {
    words: &'static str,
    is_ours: bool,
    /// What the program of its side calls it.
    mode: &'static str,
}

/// In the order of the table.
const WAYS: [Way; 5] = [
    Way { words: "PyTorch eager, f32", is_ours: false, mode: "eager-f32" },
    Way { words: "PyTorch eager, channels last, bf16", is_ours: false, mode: "eager-bf16" },
    Way { words: "PyTorch CUDA graph, bf16", is_ours: false, mode: "graph-bf16" },
    Way { words: "ours, f32", is_ours: true, mode: "f32" },
    Way { words: "ours, bf16", is_ours: true, mode: "bf16" },
];
/// The places of the two ways that aims are about.
const EAGER_F32: usize = 0;
const OURS_BF16: usize = 4;

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
    let (mut comparisons, mut peer) = (vec![], Value::Null);
    for network in &NETWORKS {
        let mut answers = [const { vec![] }; WAYS.len()];
        for turn in 1..=args.turns {
            eprintln!("{}: turn {turn} of {} …", network.words, args.turns);
            for (way, answers) in WAYS.iter().zip(&mut answers) {
                answers.push(process::answer(&mut command(way, network, &program, &python))?);
            }
        }
        peer = answers[EAGER_F32][0].clone();
        let [seconds, peak_bytes] =
            ["seconds", "peak_bytes"].map(|key| answers.each_ref().map(|answers| median(answers, key)));
        comparisons.push(Comparison { network, seconds, peak_bytes });
    }
    println!(
        "A training step, rank 10, M = 20, on {}; PyTorch {}; medians of {} turns\n",
        word(&peer, "device"),
        word(&peer, "torch"),
        args.turns
    );
    let (lines, is_reached) = verdict(&comparisons);
    print!("{}\n{lines}", table(&comparisons));
    Ok(exit(is_reached))
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
    Err(Error::NoGpu { python: python.to_owned(), reason: process::last_line(&output) })
}

/// What was measured of one network, in the order of [`WAYS`]; what is missing is NaN, which shows and reaches nothing.
#[derive(Debug)]
struct Comparison {
    network: &'static Network,
    seconds: [f64; WAYS.len()],
    peak_bytes: [f64; WAYS.len()],
}

impl Comparison {
    /// How many times as fast as eager PyTorch in single precision a way is.
    fn over_eager(&self, way: usize) -> f64 {
        self.seconds[EAGER_F32] / self.seconds[way]
    }

    /// How many times as fast as the fastest of PyTorch's ways a way is, which is unknown if one of them is.
    fn over_best(&self, way: usize) -> f64 {
        let peers = WAYS.iter().zip(self.seconds).filter(|(way, _)| !way.is_ours).map(|(_, seconds)| seconds);
        let best = peers.reduce(|a, b| if a.is_nan() || a < b { a } else { b });
        best.unwrap_or(f64::NAN) / self.seconds[way]
    }
}

/// A row for every network and way.
fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "{:<36} {:>12} {:>16} {:>20} {:>10}\n",
        "", "ms per step", "over eager f32", "over PyTorch's best", "peak MiB"
    );
    for comparison in comparisons {
        let _ = writeln!(text, "{}", comparison.network.words);
        for (way, Way { words, .. }) in WAYS.iter().enumerate() {
            let _ = writeln!(
                text,
                "  {words:<34} {:>12.2} {:>14.2} × {:>18.2} × {:>10.0}",
                1e3 * comparison.seconds[way],
                comparison.over_eager(way),
                comparison.over_best(way),
                comparison.peak_bytes[way] / MEBIBYTE
            );
        }
    }
    text
}

/// A line for every aim and one for all of them; whether every bar is reached.
fn verdict(comparisons: &[Comparison]) -> (String, bool) {
    let (mut text, mut bars, mut goals) = (String::new(), true, true);
    for comparison in comparisons {
        for (peer, ratio, Aim { bar, goal }) in [
            ("PyTorch eager f32", comparison.over_eager(OURS_BF16), comparison.network.over_eager),
            ("PyTorch's best", comparison.over_best(OURS_BF16), OVER_BEST),
        ] {
            let _ = writeln!(
                text,
                "{}: ours bf16 over {peer} {ratio:.2} ×; the bar is {bar} ×: {}; the goal is {goal} ×: {}",
                comparison.network.words,
                reached(ratio >= bar),
                reached(ratio >= goal)
            );
            bars &= ratio >= bar;
            goals &= ratio >= goal;
        }
    }
    let _ = writeln!(text, "\n{}", if bars { "every bar is reached" } else { "a bar is NOT reached" });
    let _ = writeln!(text, "{}", if goals { "every goal is reached" } else { "a goal is NOT reached" });
    (text, bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comparison in which the ways take so many milliseconds.
    fn comparison(milliseconds: [f64; 5]) -> Comparison {
        let seconds = milliseconds.map(|ms| 1e-3 * ms);
        Comparison { network: &NETWORKS[0], seconds, peak_bytes: [3.0 * MEBIBYTE; 5] }
    }

    #[test]
    fn a_python_that_finds_no_gpu_is_refused_with_its_last_words() {
        // A shell takes `-c` as well, and fails on Python with a message of its own.
        let error = check_gpu(Path::new("/bin/sh")).unwrap_err();
        assert!(matches!(&error, Error::NoGpu { reason, .. } if reason.contains("sh:")), "{error}");
        assert_eq!(error.exit(), Exit::MissingTool);
    }

    #[test]
    fn each_way_is_a_command_of_its_side() {
        let shown = |way: usize| {
            process::shown(&command(&WAYS[way], &NETWORKS[1], Path::new("a/bench_gpu"), Path::new("python")))
        };
        assert_eq!(shown(OURS_BF16), "bench_gpu step deepmedic bf16 15");
        assert!(shown(EAGER_F32).ends_with("benches/peer/gpu.py deepmedic eager-f32 15"));
    }

    #[test]
    fn a_row_shows_milliseconds_ratios_and_memory() {
        let table = table(&[comparison([40.0, 25.0, 20.0, 30.0, 10.0])]);
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][3..], ["40.00", "1.00", "×", "0.50", "×", "3"]);
        assert_eq!(rows[6], ["ours,", "bf16", "10.00", "4.00", "×", "2.00", "×", "3"]);
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths[2..].iter().all(|width| *width == widths[0]), "{table}");
    }

    #[test]
    fn bars_decide_and_goals_are_told() {
        let (lines, is_reached) = verdict(&[comparison([40.0, 25.0, 20.0, 30.0, 10.0])]);
        assert!(
            is_reached && !lines.contains("NOT") && lines.ends_with("every goal is reached\n"),
            "{lines}"
        );

        let (lines, is_reached) = verdict(&[comparison([30.0, 12.0, 15.0, 30.0, 10.0])]);
        assert!(
            is_reached && lines.contains("bar is 2.5 ×: reached; the goal is 4 ×: NOT reached"),
            "{lines}"
        );
        assert!(lines.ends_with("every bar is reached\na goal is NOT reached\n"), "{lines}");

        let (lines, is_reached) = verdict(&[comparison([30.0, 15.0, 9.0, 30.0, 10.0])]);
        assert!(
            !is_reached && lines.contains("PyTorch's best 0.90 ×; the bar is 1 ×: NOT reached"),
            "{lines}"
        );
    }

    #[test]
    fn a_missing_number_reaches_nothing() {
        for missing in [EAGER_F32, 2, OURS_BF16] {
            let mut milliseconds = [40.0, 25.0, 20.0, 30.0, 1.0];
            milliseconds[missing] = f64::NAN;
            let (lines, is_reached) = verdict(&[comparison(milliseconds)]);
            assert!(!is_reached && lines.contains("NaN"), "{lines}");
        }
    }
}
