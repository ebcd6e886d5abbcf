//! The program `ssn-engine`: the verbs of `ssn` that need libtorch. Users call `ssn`, which becomes this.

mod progress;
mod toy;

use std::process::ExitCode;

use clap::Parser;
use ssn_cli::{Cli, Exit, Failure, Verb};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.verb {
        Verb::Toy(args) => toy::run(args, &cli.global),
        Verb::Info => Err(Failure::new(Exit::Usage, "this verb needs no engine; call it as `ssn info`")),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}
