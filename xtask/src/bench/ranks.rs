//! `cargo xtask bench ranks`: a training step of two ranks of MPI beside one process, sums over ranks, and what both say
//! about more ranks.

use super::{built, median, number};
use crate::error::{Error, Exit};
use crate::process::answer;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Each side takes turns so often.
const ROUNDS: usize = 3;
const STEPS: &str = "5";
/// The statistics of a batch norm: an exchange of about this size forward, and one backward.
const NORM_BYTES: f64 = 1024.0;
/// How many ranks the table is for.
const COUNTS: [u32; 6] = [2, 4, 16, 64, 128, 256];
/// Networks that are not here: gigabits per second, and seconds of a message.
const ASSUMED: [(&str, f64, f64); 3] =
    [("1 Gbit/s, 50 µs", 1.0, 50e-6), ("10 Gbit/s, 25 µs", 10.0, 25e-6), ("100 Gbit/s, 3 µs", 100.0, 3e-6)];

/// Runs the command.
pub fn run() -> Result<Exit, Error> {
    let program = built("ssn-engine", "bench_ranks", &["mpi"])?;
    let (mut two_threads, mut one_thread, mut ranks) = (vec![], vec![], vec![]);
    for round in 1..=ROUNDS {
        eprintln!("Round {round} of {ROUNDS} …");
        two_threads.push(answer(Command::new(&program).args([STEPS, "2"]))?);
        one_thread.push(answer(Command::new(&program).args([STEPS, "1"]))?);
        ranks.push(answer(&mut mpirun(&program, &[]))?);
    }
    eprintln!("Over TCP …");
    let tcp = answer(&mut mpirun(&program, &["--mca", "btl", "tcp,self", "--mca", "pml", "ob1"]))?;
    let alone = median(&one_thread, "seconds");
    let [parameters, norms] = ["parameters", "norms"].map(|key| median(&one_thread, key));
    println!(
        "A training step of the U-Net for LIDC ({:.1} M parameters, {norms} batch norms), 4 images of 128²; medians of \
         {ROUNDS} turns of {STEPS} steps",
        parameters / 1e6
    );
    println!("  one process, two threads        {:>8.3} s", median(&two_threads, "seconds"));
    println!("  one process, one thread         {alone:>8.3} s");
    println!("  two ranks of one thread each    {:>8.3} s", median(&ranks, "seconds"));
    println!("  the same over TCP               {:>8.3} s", number(&tcp, "seconds"));
    println!("\nA sum over two ranks");
    println!("  {:>10} {:>15} {:>15}", "KiB", "shared memory", "TCP, loopback");
    let measured = ranks.last().map(sums).unwrap_or_default();
    for ((bytes, here), (_, over_tcp)) in measured.iter().zip(sums(&tcp)) {
        let [here, over_tcp] = [*here, over_tcp].map(|seconds| format!("{:.0} µs", 1e6 * seconds));
        println!("  {:>10.0} {here:>15} {over_tcp:>15}", bytes / 1024.0);
    }
    table(
        Work { step: alone, parameters, norms },
        [("measured, shared memory", link(&measured)), ("measured, TCP", link(&sums(&tcp)))],
    );
    Ok(Exit::Success)
}

fn mpirun(program: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-n", "2", "--oversubscribe"]).args(options).arg(program).args([STEPS, "1"]);
    command.env("OMP_NUM_THREADS", "1");
    // Whoever asks for a benchmark may be anybody.
    command.envs(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1")));
    command
}

/// Bytes and seconds of every size.
fn sums(answer: &Value) -> Vec<(f64, f64)> {
    let rows = answer["sums"].as_array().into_iter().flatten();
    rows.map(|row| (number(row, "bytes"), number(row, "seconds"))).collect()
}

/// What a rank does in a step: seconds of its own, parameters, and batch norms.
#[derive(Debug, Clone, Copy)]
struct Work {
    step: f64,
    parameters: f64,
    norms: f64,
}

/// How fast ranks are connected: bytes per second, and seconds of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Link {
    bandwidth: f64,
    latency: f64,
}

/// From sums over two ranks: each sends and receives as many bytes as there are, in two messages.
fn link(sums: &[(f64, f64)]) -> Link {
    let (Some(&(small, quick)), Some(&(large, slow))) = (sums.first(), sums.last()) else {
        return Link { bandwidth: f64::NAN, latency: f64::NAN };
    };
    let bandwidth = (large - small) / (slow - quick);
    Link { bandwidth, latency: ((quick - small / bandwidth) / 2.0).max(0.0) }
}

impl Link {
    /// Seconds of a sum of so many bytes over ranks.
    fn sum(self, bytes: f64, ranks: u32) -> f64 {
        let ranks = f64::from(ranks);
        2.0 * ranks.log2() * self.latency + 2.0 * (ranks - 1.0) / ranks * bytes / self.bandwidth
    }

    /// The share of the time in which ranks compute, if nothing overlaps.
    fn efficiency(self, Work { step, parameters, norms }: Work, ranks: u32) -> f64 {
        let exchanged = self.sum(4.0 * parameters, ranks) + 2.0 * norms * self.sum(NORM_BYTES, ranks);
        step / (step + exchanged)
    }
}

fn table(work: Work, measured: [(&str, Link); 2]) {
    println!(
        "\nWhat that makes of N ranks with 4 images each and a step of {:.2} s: the share of the time in \
         which they compute",
        work.step
    );
    let counts: Vec<String> = COUNTS.iter().map(|count| format!("{count:>6}")).collect();
    println!("  {:<26}{}", "", counts.join(""));
    let assumed =
        ASSUMED.map(|(name, gigabits, latency)| (name, Link { bandwidth: gigabits / 8.0 * 1e9, latency }));
    for (name, link) in measured.into_iter().chain(assumed) {
        let shares = COUNTS.iter().map(|&count| format!("{:>4.0} %", 100.0 * link.efficiency(work, count)));
        println!("  {name:<26}{}", shares.collect::<Vec<_>>().join(""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_again_from_its_sums() {
        let known = Link { bandwidth: 2e9, latency: 10e-6 };
        let found = link(&[1e3, 1e8].map(|bytes| (bytes, known.sum(bytes, 2))));
        assert!(
            (found.bandwidth / 2e9 - 1.0).abs() < 1e-3 && (found.latency / 10e-6 - 1.0).abs() < 1e-3,
            "{found:?}"
        );
        // More ranks wait longer, and no sum costs nothing.
        let work = Work { step: 1.0, parameters: 1e7, norms: 40.0 };
        let [few, many] = [2, 256].map(|ranks| known.efficiency(work, ranks));
        assert!(many < few && few < 1.0, "{many} {few}");
    }
}
