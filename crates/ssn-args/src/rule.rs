//! Choice of the one segmentation that stands for a distribution.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Which one segmentation stands for a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PredictionRule {
    /// The labels of the mean logits, as in the paper.
    #[default]
    Mean,
    /// The most probable label of every voxel, by the mean probabilities of 100 samples.
    Marginal,
}
