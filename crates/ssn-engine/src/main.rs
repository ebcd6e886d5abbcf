//! The program `ssn-engine`: the verbs of `ssn` that need libtorch. Users call `ssn`, which becomes this.

mod demo;
mod experiment;
mod export;
mod predict;
mod ranks;
mod signals;
mod toy;
mod train;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ssn::ErrorKind;
use ssn_cli::engine::EngineInfo;
use ssn_cli::exit::{json, print};
use ssn_cli::{Cli, Failure, Verb};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A panic is a defect of this program, and ends like one: the message is above, the code is documented.
    let outcome =
        std::panic::catch_unwind(|| run(&cli)).unwrap_or_else(|panic| Err(ssn::of_panic(&*panic).into()));
    let failure = outcome.err();
    failure.iter().for_each(Failure::tell);
    // What libtorch takes apart at the end of a process is gone with it anyway, a tenth of a second sooner.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(failure.map_or(0, |failure| failure.kind as i32))
}

fn run(cli: &Cli) -> Result<(), Failure> {
    ssn::training::warm_up_vector_math();
    match &cli.verb {
        Verb::Demo(args) => demo::run(args, &cli.global),
        Verb::Toy(args) => toy::run(args, &cli.global),
        Verb::Train(args) => train::run(args, &cli.global),
        Verb::Predict(args) => predict::run(args, &cli.global),
        Verb::RunExperiment(args) => experiment::run(args, &cli.global),
        Verb::Export(args) => export::run(args, &cli.global),
        Verb::Import(args) => export::import(args, &cli.global),
        Verb::Info => print(&json(&EngineInfo { cuda_part: ssn_cuda::is_built() })?),
        // What the dataset has is checked by `ssn` itself.
        Verb::Check(args) => ssn::check_config(&args.dataset).map_err(Failure::from),
        Verb::Init(_)
        | Verb::Prepare(_)
        | Verb::Sample(_)
        | Verb::Evaluate(_)
        | Verb::Report(_)
        | Verb::View(_) => Err(Failure::new(ErrorKind::Usage, "this verb needs no engine; call it as `ssn`")),
    }
}
