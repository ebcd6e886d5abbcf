//! Choice of a checkpoint.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Which checkpoint of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointChoice {
    /// The one with the best validation, or the last if there was none.
    Best,
    /// The last.
    Last,
}
