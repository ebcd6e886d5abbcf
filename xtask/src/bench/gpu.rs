//! `cargo xtask bench gpu`: a training step of the paper's networks on an NVIDIA GPU, beside PyTorch.

use super::{built, exit, median, peer, reached, word};
use crate::error::{Error, Exit};
use crate::process;
use serde_json::Value;
use std::fmt::Write;
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
    /// The milliseconds that a step in bfloat16 should take at most.
    goal: f64,
}

const NETWORKS: [Network; 2] = [
    Network { name: "unet", words: "U-Net, 12 images of 128²", steps: "50", goal: 3.6 },
    Network { name: "deepmedic", words: "DeepMedic, 10 patches of 110³", steps: "15", goal: 11.0 },
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
/// The place of how the paper's code trains.
const EAGER_F32: usize = 0;
const OURS_BF16: usize = 8;
/// Our ways, with how many times as fast as the fastest of PyTorch's in the same precision they must be.
const BARS: [(usize, f64); 2] = [(3, 1.3), (OURS_BF16, 1.5)];

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
    let is_skipped = |way: &Way| args.skip.iter().any(|mode| mode == way.mode);
    let (mut comparisons, mut peer) = (vec![], Value::Null);
    for network in
        NETWORKS.iter().filter(|network| args.network.as_ref().is_none_or(|name| name == network.name))
    {
        let mut answers = [const { vec![] }; WAYS.len()];
        for turn in 1..=args.turns {
            for (way, answers) in WAYS.iter().zip(&mut answers) {
                if is_skipped(way) {
                    continue;
                }
                eprintln!(
                    "{}: turn {turn} of {}, {} {} …",
                    network.words, args.turns, way.words, way.precision
                );
                answers.push(process::answer(&mut command(way, network, &program, &python))?);
            }
        }
        peer = answers[EAGER_F32][0].clone();
        // What was left out is beyond all others.
        let number =
            |answers: &Vec<Value>, key| if answers.is_empty() { f64::INFINITY } else { median(answers, key) };
        let [seconds, ready, peak_bytes] = ["seconds", "ready_seconds", "peak_bytes"]
            .map(|key| answers.each_ref().map(|answers| number(answers, key)));
        comparisons.push(Comparison { network, seconds, ready, peak_bytes });
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
    /// From the start of the program to the first step that counts.
    ready: [f64; WAYS.len()],
    peak_bytes: [f64; WAYS.len()],
}

impl Comparison {
    /// How many times as fast as eager PyTorch in single precision a way is.
    fn over_eager(&self, way: usize) -> f64 {
        self.seconds[EAGER_F32] / self.seconds[way]
    }

    /// How many times as fast as the fastest of PyTorch's ways in the same precision a way is.
    fn over_fastest(&self, way: usize) -> f64 {
        self.least(&self.seconds, way) / self.seconds[way]
    }

    /// The least of PyTorch's ways in the precision of this one, which is unknown if one of them is.
    fn least(&self, values: &[f64], way: usize) -> f64 {
        let peers = WAYS
            .iter()
            .zip(values)
            .filter(|(peer, _)| !peer.is_ours && peer.precision == WAYS[way].precision);
        peers
            .map(|(_, value)| *value)
            .reduce(|a, b| if a.is_nan() || a < b { a } else { b })
            .unwrap_or(f64::NAN)
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

/// A row for every network and way.
fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "{:<46} {:>12} {:>16} {:>24} {:>10} {:>9}\n",
        "", "ms per step", "over eager f32", "over PyTorch's fastest", "peak MiB", "s to start"
    );
    for comparison in comparisons {
        let _ = writeln!(text, "{}", comparison.network.words);
        for (way, Way { words, precision, .. }) in WAYS.iter().enumerate() {
            if comparison.seconds[way].is_infinite() {
                let _ = writeln!(text, "  {:<44} {:>12}", format!("{words}, {precision}"), "left out");
                continue;
            }
            let _ = writeln!(
                text,
                "  {:<44} {:>12.2} {:>14.2} × {:>22.2} × {:>10.0} {:>10.1}",
                format!("{words}, {precision}"),
                1e3 * comparison.seconds[way],
                comparison.over_eager(way),
                comparison.over_fastest(way),
                comparison.peak_bytes[way] / MEBIBYTE,
                comparison.ready[way]
            );
        }
    }
    text
}

/// A line for every aim and one for all of them; whether every bar is reached.
fn verdict(comparisons: &[Comparison]) -> (String, bool) {
    let (mut text, mut bars, mut goals) = (String::new(), true, true);
    for comparison in comparisons {
        let Network { words, goal, .. } = comparison.network;
        for (way, bar) in BARS {
            let (precision, ratio) = (WAYS[way].precision, comparison.over_fastest(way));
            let _ = writeln!(
                text,
                "{words}: ours over PyTorch's fastest in {precision} {ratio:.2} ×; the bar is {bar} ×: {}",
                reached(ratio >= bar)
            );
            let [ours, least] = [comparison.peak_bytes[way], comparison.least(&comparison.peak_bytes, way)]
                .map(|bytes| bytes / MEBIBYTE);
            let _ = writeln!(
                text,
                "{words}: our peak of memory in {precision} {ours:.0} MiB, the least of PyTorch's {least:.0} MiB, which is the bar: {}",
                reached(ours <= least)
            );
            bars &= ratio >= bar && ours <= least;
        }
        let milliseconds = 1e3 * comparison.seconds[OURS_BF16];
        let _ = writeln!(
            text,
            "{words}: ours in bf16 {milliseconds:.2} ms; the goal is {goal} ms: {}",
            reached(milliseconds <= *goal)
        );
        goals &= milliseconds <= *goal;
    }
    let left_out = |comparison: &Comparison| comparison.seconds.iter().any(|seconds| seconds.is_infinite());
    if comparisons.iter().any(left_out) {
        let _ = writeln!(text, "\nwithout the ways that were left out:");
    }
    let _ = writeln!(text, "\n{}", if bars { "every bar is reached" } else { "a bar is NOT reached" });
    let _ = writeln!(text, "{}", if goals { "every goal is reached" } else { "a goal is NOT reached" });
    (text, bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECONDS: [f64; WAYS.len()] = [40.0, 30.0, 26.0, 20.0, 12.0, 9.0, 6.0, 6.3, 3.5];

    /// A comparison in which the ways take so many milliseconds and mebibytes.
    fn comparison(milliseconds: [f64; WAYS.len()], mebibytes: [f64; WAYS.len()]) -> Comparison {
        let (seconds, peak_bytes) = (milliseconds.map(|ms| 1e-3 * ms), mebibytes.map(|mib| mib * MEBIBYTE));
        Comparison { network: &NETWORKS[0], seconds, ready: [2.5; WAYS.len()], peak_bytes }
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
        assert!(BARS.iter().all(|(way, _)| WAYS[*way].is_ours));
    }

    #[test]
    fn a_row_shows_milliseconds_ratios_memory_and_the_start() {
        let table = table(&[comparison(MILLISECONDS, [3.0; WAYS.len()])]);
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][3..], ["40.00", "1.00", "×", "0.65", "×", "3", "2.5"]);
        assert_eq!(rows[10], ["ours,", "bf16", "3.50", "11.43", "×", "1.71", "×", "3", "2.5"]);
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths[2..].iter().all(|width| *width == widths[0]), "{table}");
    }

    #[test]
    fn bars_decide_and_goals_are_told() {
        let (lines, is_reached) = verdict(&[comparison(MILLISECONDS, [3.0; WAYS.len()])]);
        assert!(
            is_reached && !lines.contains("NOT") && lines.ends_with("every goal is reached\n"),
            "{lines}"
        );

        let with = |way: usize, value: f64| {
            let mut milliseconds = MILLISECONDS;
            milliseconds[way] = value;
            verdict(&[comparison(milliseconds, [3.0; WAYS.len()])])
        };
        let (lines, is_reached) = with(OURS_BF16, 3.9);
        assert!(is_reached && lines.contains("3.90 ms; the goal is 3.6 ms: NOT reached"), "{lines}");
        assert!(lines.ends_with("every bar is reached\na goal is NOT reached\n"), "{lines}");
        let (lines, is_reached) = with(7, 4.2);
        assert!(!is_reached && lines.contains("in bf16 1.20 ×; the bar is 1.5 ×: NOT reached"), "{lines}");
        let (lines, is_reached) = with(3, 25.0);
        assert!(!is_reached && lines.contains("in f32 1.04 ×; the bar is 1.3 ×: NOT reached"), "{lines}");

        let mut mebibytes = [3.0; WAYS.len()];
        mebibytes[3] = 4.0;
        let (lines, is_reached) = verdict(&[comparison(MILLISECONDS, mebibytes)]);
        assert!(
            !is_reached
                && lines.contains("in f32 4 MiB, the least of PyTorch's 3 MiB, which is the bar: NOT"),
            "{lines}"
        );
    }

    #[test]
    fn a_missing_number_reaches_nothing() {
        for missing in [EAGER_F32, 2, OURS_BF16] {
            let mut milliseconds = MILLISECONDS;
            milliseconds[missing] = f64::NAN;
            let (lines, is_reached) = verdict(&[comparison(milliseconds, [3.0; WAYS.len()])]);
            assert!(!is_reached && lines.contains("NaN"), "{lines}");
        }
    }
}
