//! Arguments of `ssn report`.

use std::path::PathBuf;

use clap::Args;

use crate::parsers::{pictured_cases, shown_samples};

/// What is shown, and where.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ReportConfig {
    /// Folders of predictions, and of runs.
    #[arg(required = true, value_name = "RUN|PREDICTIONS")]
    pub paths: Vec<PathBuf>,
    /// The folder to write to [default: report in the folder; for several, report beside the first].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How many cases get pictures: the best, the worst, the most ambiguous, and others evenly between them.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = pictured_cases)]
    pub cases: usize,
    /// How many samples of each case the figures are made of.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = shown_samples)]
    pub samples: usize,
    /// The seed of the samples.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,
    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,
    /// Replace a report that is there already.
    #[arg(long)]
    pub overwrite: bool,
}

impl ReportConfig {
    /// Six cases with pictures of 20 samples.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, out: None, cases: 6, samples: 20, seed: 0, data: None, overwrite: false }
    }
}
