//! Arguments of `ssn predict`.

use std::path::PathBuf;

use clap::Args;
use ssn_data::{DeviceChoice, Shard};

use crate::checkpoint::CheckpointChoice;
use crate::parsers::{count, tile};
use crate::part::SplitChoice;
use crate::precision::StoredPrecision;
use crate::rule::PredictionRule;

/// What is predicted, with which network, and what is written.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct PredictConfig {
    /// The folder of a run, or a bundle that `ssn export` or `ssn import` made.
    pub model: PathBuf,
    /// What to predict: a dataset, a config (.toml), or images. Without it, the dataset of the run.
    pub data: Vec<PathBuf>,
    /// Further runs or bundles that predict together with the first, as those of other folds or seeds: the samples of a case are
    /// shared among all.
    #[arg(long, value_name = "RUN")]
    #[arg(
        help = "A further run or bundle that predicts together with the first, as those of other folds or seeds: the samples of a case are shared among all. May be repeated"
    )]
    pub ensemble: Vec<PathBuf>,
    /// The part of the dataset; without it, test of the dataset of the run, and all of `data`.
    #[arg(
        long,
        help = "The part of the dataset; without it, test, and all of what is named on the command line"
    )]
    pub split: Option<SplitChoice>,
    /// The folder to write to.
    #[arg(long, default_value = "predictions")]
    pub out: PathBuf,
    /// Which checkpoint of the run.
    #[arg(long, value_enum, default_value_t = CheckpointChoice::Best)]
    pub checkpoint: CheckpointChoice,
    /// How precisely the distribution is stored.
    #[arg(long, value_enum, default_value_t = StoredPrecision::HalfFactor)]
    pub precision: StoredPrecision,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// The size of tiles `[d, h, w]`, for images that are too large to be computed at once.
    #[arg(long, value_name = "D,H,W", value_parser = tile)]
    #[arg(help = "The size of tiles, D,H,W, for images that are too large to be computed at once")]
    pub tile: Option<[usize; 3]>,
    /// Voxels that are computed at once; fewer need less memory. Without it 262144, and four times as many on a large GPU.
    #[arg(long, value_parser = count(1..=u32::MAX))]
    pub voxels_at_once: Option<usize>,
    /// Samples of each case that a network draws whose every sample takes a pass (prob-unet, phiseg); of all others any number
    /// can be drawn afterwards.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count(1..=100_000))]
    pub samples: usize,
    /// Which one segmentation is written: the labels of the mean logits, or of the marginal probabilities of 100 samples.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "mean|marginal")]
    pub prediction: PredictionRule,
    /// Also write the mean probabilities and the entropy of 100 samples.
    #[arg(long)]
    pub probabilities: bool,
    /// Also write mean, diagonal and factor as NIfTI, under the names of the authors' tool.
    #[arg(long)]
    pub nifti: bool,
    /// Predict cases again that are there already.
    #[arg(long)]
    pub overwrite: bool,
    /// The share of the cases that is predicted; without it, all.
    #[arg(long, value_name = "I/N")]
    #[arg(
        help = "Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes \
                    the index. Without it, the share that mpirun or srun gives this process, or all cases"
    )]
    pub shard: Option<Shard>,
}

impl PredictConfig {
    /// The test cases of a run's dataset, with its best checkpoint.
    pub fn new(model: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            data: vec![],
            ensemble: vec![],
            split: None,
            out: out.into(),
            checkpoint: CheckpointChoice::Best,
            precision: StoredPrecision::HalfFactor,
            device: DeviceChoice::Auto,
            tile: None,
            voxels_at_once: None,
            samples: 100,
            prediction: PredictionRule::Mean,
            probabilities: false,
            nifti: false,
            overwrite: false,
            shard: None,
        }
    }
}
