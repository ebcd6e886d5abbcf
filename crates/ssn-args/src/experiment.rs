//! Arguments of `ssn run-experiment`.

use std::path::PathBuf;

use clap::Args;
use ssn_data::DeviceChoice;

use crate::parsers::count;

/// What is done of an experiment file, and where.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ExperimentConfig {
    /// The experiment file.
    pub file: PathBuf,
    /// The dataset, instead of the one that the file names.
    #[arg(long, value_name = "DATASET")]
    pub data: Option<PathBuf>,
    /// The folder for everything; without it, experiments-out/NAME, after the file.
    #[arg(long, value_name = "DIR")]
    #[arg(help = "The folder for everything [default: experiments-out/NAME, after the file]")]
    pub out: Option<PathBuf>,
    /// Only the rows of these names, or with one of them in their group and name. The table also has other rows that are finished.
    #[arg(long, value_name = "ROW")]
    #[arg(
        help = "Only the row of this name, or rows with this in their group and name; may be repeated. The table also has other rows that are finished"
    )]
    pub only: Vec<String>,
    /// At most so many seeds of each row, the first of its list.
    #[arg(long, value_name = "N", value_parser = count(1..=65_535))]
    pub seeds: Option<usize>,
    /// Changed settings of all trainings, such as `training.steps=1000`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    #[arg(help = "Change a setting of all trainings, such as training.steps=1000; may be repeated")]
    pub settings: Vec<String>,
    /// A version that takes minutes, as the file describes it, on synthetic images unless `data` names others.
    #[arg(
        long,
        help = "A version that takes minutes, as the file describes it, on synthetic images unless --data names others"
    )]
    pub reduced: bool,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// Threads that prepare batches, as [`TrainConfig::workers`](crate::TrainConfig::workers).
    #[arg(long, value_parser = count(0..=256))]
    #[arg(help = "Threads that prepare batches, as `ssn train` has them")]
    pub workers: Option<usize>,
}

impl ExperimentConfig {
    /// All of an experiment file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            data: None,
            out: None,
            only: vec![],
            seeds: None,
            settings: vec![],
            reduced: false,
            device: DeviceChoice::Auto,
            workers: None,
        }
    }
}
