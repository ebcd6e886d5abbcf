//! Arguments of `ssn demo`.

use std::path::PathBuf;

use clap::Args;
use ssn_data::DeviceChoice;

use crate::parsers::count;

/// What the demo does.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct DemoConfig {
    /// The folder for everything.
    #[arg(long, default_value = "demo")]
    pub out: PathBuf,
    /// The seed of the images and of training.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Images of the dataset: 60 % for training, 20 % for validation, 20 % for test.
    #[arg(long, default_value_t = 500, value_parser = count(20..=100_000))]
    pub cases: usize,
    /// Changed settings of all three trainings, such as `training.steps=1000`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    #[arg(help = "Change a setting of all three trainings, such as training.steps=1000; may be repeated")]
    pub settings: Vec<String>,
    /// Where to compute: auto, cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}
