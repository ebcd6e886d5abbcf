//! What a run reports.

use std::path::PathBuf;

use ssn_nn::error::NnError;

use super::logs::ValidationScores;
use crate::checkpoint::AverageMeter;

/// What happens in a run.
#[derive(Debug)]
pub enum TrainingEvent<'a> {
    /// It goes on from a checkpoint.
    Resumed {
        /// Steps done.
        step: u64,
    },
    /// A checkpoint does not verify, and an older one is used.
    PassedOver {
        /// What is wrong with it.
        reason: &'a str,
        /// Where it lies now.
        aside: PathBuf,
    },
    /// A step was done: the means since the last row.
    Step(&'a AverageMeter),
    /// A step could not be applied.
    Incident {
        /// Why.
        reason: &'a NnError,
        /// The file that tells what it was made of.
        file: PathBuf,
    },
    /// A validation begins, or goes on.
    Validating {
        /// Cases done.
        done: usize,
        /// Cases in all.
        total: usize,
    },
    /// A validation was done.
    Validated {
        /// Steps done.
        step: u64,
        /// The means over its cases.
        validation: &'a ValidationScores,
        /// Whether no earlier one was as good.
        is_best: bool,
    },
    /// A validation has no scores, because the network gave numbers that no file can hold.
    Unscored {
        /// Steps done.
        step: u64,
        /// The first such number.
        reason: &'a str,
    },
    /// A checkpoint was written.
    Saved(PathBuf),
}

/// What a run reports to, and what may stop it.
pub trait Callback {
    /// Whether the run should save and end.
    fn should_stop(&self) -> bool;

    /// Called when something happened.
    fn on_event(&mut self, event: TrainingEvent<'_>);
}
