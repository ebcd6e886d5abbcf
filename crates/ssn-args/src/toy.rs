//! Arguments of `ssn toy`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, value_parser};

use crate::loss::LossKind;
use crate::parsers::positive;

/// How the toy problem is solved, and where the result goes.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ToyProblem {
    /// Train this many times, with `seed` and those after it.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1000))]
    #[arg(help = "Train this many times, with the seeds SEED, SEED + 1, …")]
    pub seeds: u32,
    /// The first seed; the same seed gives the same numbers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Training steps, pre-training included (the paper: 10000).
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..))]
    pub steps: u32,
    /// The first steps, which train the mean alone.
    #[arg(long, default_value_t = 5_000)]
    pub pretrain: u32,
    /// What is minimized after that: likelihood (the paper's loss) or energy.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t)]
    pub loss: LossKind,
    /// Monte-Carlo samples per label map in each step.
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub samples: u32,
    /// Samples per label map for the log-likelihood at the end.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub eval_samples: u32,
    /// The learning rate of Adam.
    #[arg(long, default_value_t = 1e-3, value_parser = positive)]
    pub learning_rate: f64,
    /// Double precision instead of single.
    #[arg(long = "precision", value_name = "PRECISION", default_value = "f64")]
    #[arg(action = ArgAction::Set, value_parser = precision(), hide_possible_values = true)]
    #[arg(help = "The precision of all computation, f32 or f64")]
    pub double: bool,
    /// The folder for figure and numbers.
    #[arg(long, default_value = "toy")]
    pub out: PathBuf,
    /// Replace the files of an earlier run.
    #[arg(long)]
    pub overwrite: bool,
}

impl ToyProblem {
    /// One seed, with the settings that reach the optimum.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            seeds: 1,
            seed: 0,
            steps: 20_000,
            pretrain: 5_000,
            loss: LossKind::Likelihood,
            samples: 200,
            eval_samples: 100_000,
            learning_rate: 1e-3,
            double: true,
            out: out.into(),
            overwrite: false,
        }
    }
}

fn precision() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["f32", "f64"]).map(|name| name == "f64")
}
