//! One short file per verb that needs no libtorch.

pub mod check;
pub mod evaluate;
pub mod info;
pub mod init;
pub mod prepare;
pub mod report;
pub mod sample;
pub mod view;

use ssn_core::Control;

use crate::answer::Answer;
use crate::args::{Cli, Global, Verb};
use crate::exit::Failure;
use crate::{engine, progress, signals};

/// Runs the verb of the command line and prints its answer, or hands it to the engine.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.verb {
        verb if verb.needs_engine() => Err(engine::hand_over()),
        Verb::View(args) if args.export.is_none() => {
            view::serve(args, &cli.global, Control::watched(&progress::show(cli.global.quiet)))
        }
        verb => watched(cli, |control| answer(verb, &cli.global, control)),
    }
}

/// Does the work of a verb with progress on standard error, stopped by signals, and prints its answer.
pub fn watched(cli: &Cli, work: impl FnOnce(Control<'_>) -> Result<Answer, Failure>) -> Result<(), Failure> {
    let show = progress::show(cli.global.quiet);
    let answer = match cli.verb.item() {
        Some(item) => work(Control { progress: &show, stop: &*signals::stop_flag(item)? }),
        None => work(Control::watched(&show)),
    };
    answer?.print(cli.global.json)
}

/// Runs a verb that needs no engine.
///
/// # Errors
/// [`ssn_eval::ErrorKind::Usage`] for a verb that needs it.
pub fn answer(verb: &Verb, global: &Global, control: Control<'_>) -> Result<Answer, Failure> {
    match verb {
        Verb::Info => info::answer(),
        Verb::Init(args) => init::answer(args),
        Verb::Check(args) => check::answer(args, control),
        Verb::Prepare(args) => prepare::answer(args, global, control),
        Verb::Sample(args) => sample::answer(args, control),
        Verb::Evaluate(args) => evaluate::answer(args, global, control),
        Verb::Report(args) => report::answer(args, control),
        Verb::View(args) => view::answer(args, control),
        _ => Err(Failure::new(ssn_eval::ErrorKind::Usage, "this verb needs the engine")),
    }
}

impl Verb {
    /// Returns `true` for verbs that need libtorch.
    pub fn needs_engine(&self) -> bool {
        match self {
            Self::Info
            | Self::Init(_)
            | Self::Check(_)
            | Self::Prepare(_)
            | Self::Sample(_)
            | Self::Evaluate(_)
            | Self::Report(_)
            | Self::View(_) => false,
            Self::Demo(_)
            | Self::Toy(_)
            | Self::Train(_)
            | Self::Predict(_)
            | Self::RunExperiment(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Worker(_) => true,
        }
    }

    /// Returns the item after which the verb stops on a signal; `None` for verbs that end at once.
    pub fn item(&self) -> Option<&'static str> {
        match self {
            Self::Check(_) | Self::Prepare(_) | Self::Evaluate(_) | Self::Report(_) => Some("case"),
            Self::Sample(_) => Some("block of samples"),
            Self::Predict(_) => Some("tile"),
            Self::Demo(_) | Self::Train(_) | Self::RunExperiment(_) => Some("step"),
            Self::Info
            | Self::Init(_)
            | Self::View(_)
            | Self::Toy(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Worker(_) => None,
        }
    }
}
