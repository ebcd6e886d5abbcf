//! The verbs of `ssn` that need libtorch, as a program: `ssn-engine`, or your own with further backbones.
//!
//! ```no_run
//! use ssn::nn::backbones::register;
//! # use ssn::nn::backbones::{Backbone, BackbonePlan};
//! # #[derive(Debug, serde::Serialize, serde::Deserialize)]
//! # struct Plain {}
//! # impl BackbonePlan for Plain {
//! #     fn features(&self) -> i64 { 1 }
//! #     fn build(&self, _: &mut ssn::nn::parameters::Scope<'_>, _: i64) -> ssn::nn::Result<Box<dyn Backbone>> { todo!() }
//! # }
//!
//! // `my-ssn train config.toml`, `my-ssn train --resume run`, `my-ssn predict run …`
//! fn main() -> std::process::ExitCode {
//!     ssn_engine::main_with(|| register::<Plain>("plain"))
//! }
//! ```

mod demo;
mod experiment;
mod export;
mod predict;
mod ranks;
mod toy;
mod train;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ssn::training::run::Event;
use ssn::{Control, ErrorKind};
use ssn_cli::args::Global;
use ssn_cli::engine::EngineInfo;
use ssn_cli::exit::{json, print};
use ssn_cli::verbs::watched;
use ssn_cli::{Answer, Cli, Failure, Verb};

/// Runs the verb of the command line, and ends the process.
pub fn main() -> ExitCode {
    main_with(|| Ok(()))
}

/// Like [`main`], after `register` has made own backbones known.
pub fn main_with(register: impl FnOnce() -> ssn::nn::Result<()>) -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = register() {
        Failure::new(ErrorKind::Usage, error.to_string()).tell();
        return ExitCode::from(ErrorKind::Usage as u8);
    }
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
        Verb::Worker(args) => worker::run(&args.replies, answer),
        Verb::Info => print(&json(&EngineInfo { cuda_part: ssn_cuda::is_built() })?),
        // What the dataset has is checked by `ssn` itself.
        Verb::Check(args) => ssn::check_config(&args.dataset).map_err(Failure::from),
        verb => watched(cli, |control| answer(verb, &cli.global, control, &mut |_| {})),
    }
}

/// Runs a verb; `listener` gets the events of a training.
fn answer(
    verb: &Verb,
    global: &Global,
    control: Control<'_>,
    listener: &mut dyn FnMut(&Event),
) -> Result<Answer, Failure> {
    match verb {
        Verb::Demo(args) => demo::answer(args, control),
        Verb::Toy(args) => toy::answer(args, control),
        Verb::Train(args) => train::answer(args, control, listener),
        Verb::Predict(args) => predict::answer(args, global, control),
        Verb::RunExperiment(args) => experiment::answer(args, control),
        Verb::Export(args) => export::answer(args),
        Verb::Import(args) => export::import_answer(args),
        _ => Err(Failure::new(ErrorKind::Usage, "this verb needs no engine; call it as `ssn`")),
    }
}
