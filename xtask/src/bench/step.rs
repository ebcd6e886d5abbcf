//! `cargo xtask bench step`: a training step of the paper's networks on the CPU, beside PyTorch.

use super::{built, exit, median, peer, word};
use crate::error::{Error, Exit};
use crate::process;
use std::path::Path;
use std::process::Command;

/// How many times as fast as PyTorch in single precision we must be, in single precision and in bfloat16.
const BARS: [(&str, f64); 2] = [("f32", 1.0), ("bf16", 1.7)];
/// What the stochastic head and loss may cost, as a share of forward and backward of the deterministic network.
const OVERHEAD_BAR: f64 = 0.10;
/// The two sides take turns so often, so that both see the same machine.
const ROUNDS: usize = 3;
/// Steps of each turn, after two that do not count.
const STEPS: &str = "4";
/// What `ssn` sets for its engine.
const ENVIRONMENT: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");

/// Runs the command.
pub fn run() -> Result<Exit, Error> {
    let python = peer::python(peer::TORCH)?;
    let program = built("ssn-train", "bench_step", &[])?;
    let mut reached = true;
    for (network, words) in [("unet", "U-Net, 4 images of 128²"), ("deepmedic", "DeepMedic, a patch of 110³")]
    {
        reached &= compare(network, words, &program, &python)?;
    }
    println!("\n{}", if reached { "every bar is reached" } else { "a bar is NOT reached" });
    Ok(exit(reached))
}

fn compare(network: &str, words: &str, program: &Path, python: &Path) -> Result<bool, Error> {
    let bfloat16 = has_bfloat16();
    let bars: Vec<_> = BARS.iter().filter(|(precision, _)| *precision != "bf16" || bfloat16).collect();
    let (mut theirs, mut ours) = (vec![], vec![vec![]; bars.len()]);
    for round in 1..=ROUNDS {
        eprintln!("{words}: round {round} of {ROUNDS} …");
        theirs.push(process::answer(peer::command(python, "step.py").args([network, "f32", STEPS]))?);
        for ((precision, _), answers) in bars.iter().zip(&mut ours) {
            let mut command = Command::new(program);
            command.args([network, precision, "first", STEPS]).env(ENVIRONMENT.0, ENVIRONMENT.1);
            answers.push(process::answer(&mut command)?);
        }
    }
    let peer = median(&theirs, "seconds");
    println!(
        "\n{words}, rank 10, M = 20; {} threads; medians of {ROUNDS} turns of {STEPS} steps",
        theirs[0]["threads"]
    );
    println!("  PyTorch {} eager, f32     {peer:>8.3} s", word(&theirs[0], "torch"));
    let mut reached = true;
    for ((precision, bar), answers) in bars.iter().zip(&ours) {
        let (step, overhead) = (median(answers, "seconds"), median(answers, "overhead"));
        let [forward, loss, backward, update] =
            ["forward", "loss", "backward", "update"].map(|part| median(answers, part));
        let ratio = peer / step;
        println!(
            "  ssn-train, {precision:<4}                      {step:>8.3} s   {ratio:>6.2} × (bar {bar})"
        );
        println!(
            "    forward {forward:.3}, loss {loss:.3}, backward {backward:.3}, update {update:.3}; stochastic over \
             deterministic {:+.1} % (bar {:.0} %)",
            100.0 * overhead,
            100.0 * OVERHEAD_BAR
        );
        // A missing number must not count as reached.
        reached &= ratio >= *bar && (*precision != "f32" || overhead <= OVERHEAD_BAR);
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
