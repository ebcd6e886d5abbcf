//! The command `ssn`: answers without libtorch what needs no network, and hands the rest to `ssn-engine`.

use std::process::ExitCode;

use clap::Parser;
use ssn_cli::exit::{Failure, exit_where_memory_ends};
use ssn_cli::verbs::{check, evaluate, info, init, prepare, report, sample, view};
use ssn_cli::{Cli, Verb, engine, threads};
use ssn_eval::check_memory;

fn main() -> ExitCode {
    exit_where_memory_ends();
    let cli = Cli::parse();
    match begin().and_then(|()| run(&cli)) {
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

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.verb {
        Verb::Info => info::run(cli.global.json),
        Verb::Init(args) => init::run(args, &cli.global),
        Verb::Check(args) => check::run(args, &cli.global),
        Verb::Prepare(args) => prepare::run(args, &cli.global),
        Verb::Sample(args) => sample::run(args, &cli.global),
        Verb::Evaluate(args) => evaluate::run(args, &cli.global),
        Verb::Report(args) => report::run(args, &cli.global),
        Verb::View(args) => view::run(args, &cli.global),
        Verb::Demo(_)
        | Verb::Toy(_)
        | Verb::Train(_)
        | Verb::Predict(_)
        | Verb::RunExperiment(_)
        | Verb::Export(_)
        | Verb::Import(_) => Err(engine::hand_over()),
    }
}
