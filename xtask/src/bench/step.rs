//! `cargo xtask bench step`: a training step of the paper's networks on the CPU, beside PyTorch.

use super::{built, exit, median, peer, word};
use crate::error::{Error, Exit};
use crate::process;
use std::path::Path;
use std::process::{Child, Command};

/// Precisions, and how many times as fast as PyTorch in the same one we must be.
const BARS: [(&str, f64); 2] = [("f32", 1.1), ("bf16", 1.1)];
/// The same beside other programs.
const BAR_BESIDE_LOAD: f64 = 1.0;
/// What the stochastic head and loss may cost, as a share of forward and backward of the deterministic network.
const OVERHEAD_BAR: f64 = 0.10;
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
    let mut reached = true;
    for (network, words) in [("unet", "U-Net, 4 images of 128²"), ("deepmedic", "DeepMedic, a patch of 110³")]
    {
        reached &= compare(network, words, &program, &python, args)?;
    }
    println!("\n{}", if reached { "every bar is reached" } else { "a bar is NOT reached" });
    Ok(exit(reached))
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

fn compare(
    network: &str,
    words: &str,
    program: &Path,
    python: &Path,
    &Args { beside_load, turns }: &Args,
) -> Result<bool, Error> {
    let bfloat16 = has_bfloat16();
    let bars: Vec<_> = BARS.iter().filter(|(precision, _)| *precision != "bf16" || bfloat16).collect();
    let mut answers = vec![[vec![], vec![], vec![]]; bars.len()];
    for turn in 1..=turns {
        eprintln!("{words}: turn {turn} of {turns} …");
        for ((precision, _), [first, last, ours]) in bars.iter().zip(&mut answers) {
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
    println!(
        "\n{words}, rank 10, M = 20; {} threads{}; medians of {turns} turns of {STEPS} steps",
        answers[0][0][0]["threads"],
        if beside_load {
            ", beside as many processes that compute without end (ours with OMP_WAIT_POLICY=passive, as `ssn` sets it then)"
        } else {
            ""
        }
    );
    let mut reached = true;
    for ((precision, bar), [first, last, ours]) in bars.iter().zip(&answers) {
        let bar = if beside_load { BAR_BESIDE_LOAD } else { *bar };
        let [peer, peer_last, step] = [first, last, ours].map(|side| median(side, "seconds"));
        let overhead = median(ours, "overhead");
        let [forward, loss, backward, update] =
            ["forward", "loss", "backward", "update"].map(|part| median(ours, part));
        let ratio = peer / step;
        let torch = format!("PyTorch {} eager", word(&first[0], "torch"));
        println!("  {:<44}{peer:>8.3} s", format!("{torch}, {precision}"));
        println!("  {:<44}{peer_last:>8.3} s", format!("{torch}, channels last, {precision}"));
        println!(
            "  {:<44}{step:>8.3} s   {ratio:>6.2} × (bar {bar}), {:.2} × channels last",
            format!("ssn-train, {precision}"),
            peer_last / step
        );
        println!(
            "    forward {forward:.3}, loss {loss:.3}, backward {backward:.3}, update {update:.3}; stochastic over \
             deterministic {:+.1} % (bar {:.0} %)",
            100.0 * overhead,
            100.0 * OVERHEAD_BAR
        );
        // A missing number must not count as reached. Beside load, parts of a step say little.
        reached &= ratio >= bar && (*precision != "f32" || beside_load || overhead <= OVERHEAD_BAR);
    }
    if !bfloat16 {
        println!("  this CPU has neither AMX nor AVX-512 instructions for bfloat16: not measured");
    }
    Ok(reached)
}

fn has_bfloat16() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.contains("amx_bf16") || flags.contains("avx512_bf16")
}
