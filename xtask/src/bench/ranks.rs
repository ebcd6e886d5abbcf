//! `cargo xtask bench ranks`: a training step of two ranks of MPI and of one process, and the time of a sum over ranks.

use super::{built, median, number, table};
use crate::error::{Error, Exit};
use crate::process::answer;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 3;
const STEPS: &str = "5";

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
    let [parameters, norms] = ["parameters", "norms"].map(|key| median(&one_thread, key));
    println!(
        "A training step of the U-Net for LIDC ({:.1} M parameters, {norms} batch norms), 4 images of 128²; medians of \
         {ROUNDS} turns of {STEPS} steps\n",
        parameters / 1e6
    );
    let row = |side: &str, seconds: f64| [side.to_owned(), format!("{seconds:.3} s")];
    let rows = [
        row("one process, two threads", median(&two_threads, "seconds")),
        row("one process, one thread", median(&one_thread, "seconds")),
        row("two ranks of one thread each", median(&ranks, "seconds")),
        row("the same over TCP", number(&tcp, "seconds")),
    ];
    println!("{}", table(["", "a step"], &rows));
    let here = ranks.last().map(sums).unwrap_or_default();
    let rows: Vec<_> = here
        .iter()
        .zip(sums(&tcp))
        .map(|(&(bytes, here), (_, tcp))| {
            let [here, tcp] = [here, tcp].map(|seconds| format!("{:.0} µs", 1e6 * seconds));
            [format!("{:.0}", bytes / 1024.0), here, tcp]
        })
        .collect();
    print!("{}", table(["a sum over two ranks, KiB", "shared memory", "TCP, loopback"], &rows));
    Ok(Exit::Success)
}

fn mpirun(program: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-n", "2", "--oversubscribe"]).args(options).arg(program).args([STEPS, "1"]);
    command.env("OMP_NUM_THREADS", "1");
    command.envs(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1")));
    command
}

/// Returns bytes and seconds of every size.
fn sums(answer: &Value) -> Vec<(f64, f64)> {
    let rows = answer["sums"].as_array().into_iter().flatten();
    rows.map(|row| (number(row, "bytes"), number(row, "seconds"))).collect()
}
