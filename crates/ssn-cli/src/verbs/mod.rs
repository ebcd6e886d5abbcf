//! One short file per verb that needs no libtorch.

pub mod check;
pub mod evaluate;
pub mod info;
pub mod init;
pub mod prepare;
pub mod report;
pub mod sample;
pub mod view;

use crate::args::{Cli, Verb};
use crate::engine;
use crate::exit::Failure;

/// Runs the verb of the command line, or hands it to the engine.
pub fn run(cli: &Cli) -> Result<(), Failure> {
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
