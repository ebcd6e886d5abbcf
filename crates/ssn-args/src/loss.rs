//! Choice of a loss.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is minimized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// The negative log-likelihood of the targets by Monte-Carlo integration: the paper's loss.
    #[default]
    Likelihood,
    /// The energy distance between soft samples and the targets: what GED² measures. With `batches.patch.rater` = `all`,
    /// samples are compared with all raters at once.
    Energy,
}
