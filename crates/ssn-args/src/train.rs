//! Arguments of `ssn train`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolValueParser, TypedValueParser};
use clap::{ArgAction, Args};
use ssn_data::DeviceChoice;

use crate::parsers::{count, minutes};

/// What is trained, on what, and where.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct TrainConfig {
    /// The config file; `ssn init DATASET` writes one.
    #[arg(required_unless_present_any = ["data", "resume"])]
    pub config: Option<PathBuf>,
    /// A dataset to train on without a config file; with `resume`, where the dataset of the run lies now.
    #[arg(long, value_name = "DATASET", conflicts_with = "config")]
    #[arg(
        help = "A dataset to train on without a config file; with --resume, where the dataset of the run lies now"
    )]
    pub data: Option<PathBuf>,
    /// The settings to start from, instead of those that the config names.
    #[arg(long)]
    pub preset: Option<String>,
    /// Changed settings, such as `training.steps=1000` or `model.head.stochastic.rank=5`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    #[arg(
        help = "Change one setting, such as training.steps=1000 or model.head.stochastic.rank=5; may be repeated"
    )]
    pub settings: Vec<String>,
    /// The seed of first weights, batches and noise, instead of training.seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Cross-validation: validate on fold K, counted from 0, and train on the others of data.split.folds, or of 5.
    #[arg(long, value_name = "K")]
    pub fold: Option<usize>,
    /// The folder of the new run.
    #[arg(long, default_value = "run")]
    pub out: PathBuf,
    /// Continue the run in this folder; only `data`, `time_limit`, `device`, `workers`, `allow_changed_data` and `settings` of
    /// how long it trains and what it writes count then.
    #[arg(
        long,
        help = "Continue the run in this folder, longer with --set training.steps=N",
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "run",
        conflicts_with_all = ["config", "preset", "seed", "fold", "out"]
    )]
    pub resume: Option<PathBuf>,
    /// Save and end after this time.
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    #[arg(help = "Save and end with 75 after so many minutes")]
    pub time_limit: Option<Duration>,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// Threads that prepare batches; they change no result. Without it 2, and for a GPU as many as there are CPU cores, up to 16.
    #[arg(long, value_parser = count(0..=256))]
    pub workers: Option<usize>,
    /// What happens to cases that cannot be used.
    #[arg(long = "skip-check", action = ArgAction::SetTrue, value_parser = skip_check())]
    #[arg(help = "Train without the cases in which the check before finds errors, instead of stopping")]
    pub bad_cases: BadCases,
    /// Go on with a run although images or labels of its dataset changed since it began.
    #[arg(long, requires = "resume")]
    pub allow_changed_data: bool,
}

impl TrainConfig {
    fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            config: None,
            data: None,
            preset: None,
            settings: vec![],
            seed: None,
            fold: None,
            out: out.into(),
            resume: None,
            time_limit: None,
            device: DeviceChoice::Auto,
            workers: None,
            bad_cases: BadCases::Refuse,
            allow_changed_data: false,
        }
    }

    /// A new run as a config file says.
    pub fn from_file(config: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self { config: Some(config.into()), ..Self::new(out) }
    }

    /// A new run on a dataset, with settings that suit it.
    pub fn from_data(data: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::new(out) }
    }

    /// The rest of a run.
    pub fn resume(run: impl Into<PathBuf>) -> Self {
        let run = run.into();
        Self { resume: Some(run.clone()), ..Self::new(run) }
    }
}

/// What training does about cases that cannot be used: files that are damaged or missing, labels of no class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadCases {
    /// All cases are checked before, and training does not begin if one cannot be used.
    #[default]
    Refuse,
    /// All cases are checked before, and those that cannot be used are left out.
    LeaveOut,
    /// Nothing is checked, because that was done.
    Unchecked,
}

fn skip_check() -> impl TypedValueParser<Value = BadCases> {
    BoolValueParser::new().map(|skip| if skip { BadCases::LeaveOut } else { BadCases::Refuse })
}
