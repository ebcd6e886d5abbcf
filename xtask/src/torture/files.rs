//! Mutated files of every format, read in one process that has little memory.

use std::process::Command;
use std::time::Instant;

use fastrand::Rng;

use super::lab::{Lab, end};
use super::{Findings, Kind};
use crate::checkout;
use crate::error::Error;

/// Address space of the process that reads.
const MEMORY: u64 = 2 << 30;
/// Seconds of a process; a new one starts with another seed.
const SECONDS: u64 = 20;

/// Lets `mutate_files` of ssn-io read what it makes of genuine and of hostile files.
pub fn mutations(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let seed = rng.u64(..).to_string();
        let seconds = left.as_secs().clamp(1, SECONDS).to_string();
        let folder = lab.cleared("mutations")?;
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY}")).arg("--").arg(lab.program("examples/mutate_files"));
        command
            .args([&seed, &seconds])
            .arg(&folder)
            .arg(checkout::root().join("crates/ssn-io/tests/attacks"));
        let ended = end(&mut command)?;
        // The file that was read when the process ended is still there.
        let what = format!("mutate_files {seed} {seconds}: {} {}", ended.stdout.trim(), ended.said());
        let inputs = ended.stdout.lines().rev().find_map(|line| line.strip_prefix("inputs ")?.parse().ok());
        findings.tried(inputs.unwrap_or(0));
        if ended.hung {
            findings.found(Kind::Hang, what);
        } else if ended.has_crashed() || ended.code != Some(0) {
            findings.found(Kind::Crash, what);
        }
    }
    Ok(())
}
