//! The command `ssn`: answers without libtorch what needs no network, and hands the rest to `ssn-engine`.

use std::process::ExitCode;

use clap::Parser;
use ssn_cli::exit::{Failure, exit_where_memory_ends};
use ssn_cli::{Cli, threads, verbs};
use ssn_eval::check_memory;

fn main() -> ExitCode {
    exit_where_memory_ends();
    let cli = Cli::parse();
    match begin().and_then(|()| verbs::run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Memory without which nothing can be done: below, the program could not even say so later.
const LEAST_MEMORY: u64 = 128 << 20;

/// Makes sure of what every verb needs.
fn begin() -> Result<(), Failure> {
    let has_memory = || check_memory("this program", LEAST_MEMORY);
    has_memory()?;
    threads::start()?;
    Ok(has_memory()?)
}
