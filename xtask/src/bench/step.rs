//! `cargo xtask bench step`: a training step of the paper's networks on the CPU, ours and in PyTorch.

use super::{built, median, peer, table, word};
use crate::error::{Error, Exit};
use crate::process;
use std::path::Path;
use std::process::{Child, Command};

/// Steps of each turn, after two that do not count.
const STEPS: &str = "4";
/// What `ssn` sets for its engine.
const ENVIRONMENT: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
/// What it sets as well when it finds half of the cores busy.
const BESIDE_LOAD: (&str, &str) = ("OMP_WAIT_POLICY", "passive");

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Beside as many processes that compute without end as there are cores.
    #[arg(long)]
    beside_load: bool,

    /// How often the sides take turns, so that both see the same machine.
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let python = peer::python(peer::TORCH)?;
    let program = built("ssn-train", "bench_step", &[])?;
    let _load = args.beside_load.then(Load::begin).transpose()?;
    let (mut steps, mut parts, mut about) = (vec![], vec![], String::new());
    for (network, words) in [("unet", "U-Net, 4 images of 128²"), ("deepmedic", "DeepMedic, a patch of 110³")]
    {
        for (precision, [first, last, ours]) in measure(network, words, &program, &python, args)? {
            let [peer, peer_last, step] = [&first, &last, &ours].map(|side| median(side, "seconds"));
            about = format!("PyTorch {} eager; {} threads", word(&first[0], "torch"), first[0]["threads"]);
            let [words, precision] = [words, precision].map(str::to_owned);
            steps.push([
                words.clone(),
                precision.clone(),
                format!("{peer:.3} s"),
                format!("{peer_last:.3} s"),
                format!("{step:.3} s"),
                format!("{:.2} ×", peer / step),
                format!("{:.2} ×", peer_last / step),
            ]);
            let [forward, loss, backward, update] =
                ["forward", "loss", "backward", "update"].map(|part| format!("{:.3}", median(&ours, part)));
            let overhead = format!("{:+.1} %", 100.0 * median(&ours, "overhead"));
            parts.push([words, precision, forward, loss, backward, update, overhead]);
        }
    }
    println!(
        "A training step, rank 10, 20 samples; {about}; medians of {} turns of {STEPS} steps",
        args.turns
    );
    if args.beside_load {
        println!(
            "Next to as many processes that compute without end as there are cores; ours with OMP_WAIT_POLICY=passive"
        );
    }
    let heads = [
        "network",
        "precision",
        "PyTorch",
        "PyTorch, channels last",
        "ours",
        "ratio",
        "ratio, channels last",
    ];
    println!("\n{}", table(heads, &steps));
    let heads =
        ["network", "precision", "forward", "loss", "backward", "update", "stochastic over deterministic"];
    println!("Seconds of the parts of a step of ours:\n\n{}", table(heads, &parts));
    if !has_bfloat16() {
        println!("bf16 is not measured: this CPU has neither AMX nor AVX-512 instructions for it");
    }
    Ok(Exit::Success)
}

/// Computes as long as the process that started it lives.
const BUSY: &str =
    "while kill -0 $PPID 2> /dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done";

/// Processes that compute until this is dropped.
struct Load(Vec<Child>);

impl Load {
    fn begin() -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut load = Self(vec![]);
        for _ in 0..cores {
            let busy = Command::new("sh").args(["-c", BUSY]).spawn();
            load.0.push(busy.map_err(Error::io("run", Path::new("sh")))?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// The answers of PyTorch with channels first and last, and ours.
type Answers = [Vec<serde_json::Value>; 3];

/// Runs the three sides in turn, for every precision of this CPU.
fn measure(
    network: &str,
    words: &str,
    program: &Path,
    python: &Path,
    &Args { beside_load, turns }: &Args,
) -> Result<Vec<(&'static str, Answers)>, Error> {
    let precisions: &[&str] = if has_bfloat16() { &["f32", "bf16"] } else { &["f32"] };
    let mut answers: Vec<(&str, Answers)> =
        precisions.iter().map(|precision| (*precision, Answers::default())).collect();
    for turn in 1..=turns {
        eprintln!("{words}: turn {turn} of {turns} …");
        for (precision, [first, last, ours]) in &mut answers {
            for (theirs, order) in [(first, "first"), (last, "last")] {
                let mut command = peer::command(python, "step.py");
                theirs.push(process::answer(command.args([network, precision, order, STEPS]))?);
            }
            let mut command = Command::new(program);
            command.args([network, precision, STEPS]).env(ENVIRONMENT.0, ENVIRONMENT.1);
            if beside_load {
                command.env(BESIDE_LOAD.0, BESIDE_LOAD.1);
            }
            ours.push(process::answer(&mut command)?);
        }
    }
    Ok(answers)
}

fn has_bfloat16() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.contains("amx_bf16") || flags.contains("avx512_bf16")
}
