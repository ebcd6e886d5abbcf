//! What happens in a run, and who watches it.

use std::path::PathBuf;

use super::metrics::Validation;
use crate::checkpoint::interval::Interval;
use crate::error::TrainError;

/// What happens in a run, for those who watch.
#[derive(Debug)]
pub enum Event<'a> {
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
    Step(&'a Interval),
    /// A step could not be applied.
    Incident {
        /// Why.
        reason: &'a TrainError,
        /// The file that tells what it was made of.
        file: PathBuf,
    },
    /// So many cases of a validation are done.
    Validating(usize),
    /// A validation was done.
    Validated {
        /// Steps done.
        step: u64,
        /// The means over its cases.
        validation: &'a Validation,
        /// Whether no earlier one was as good.
        is_best: bool,
    },
    /// A checkpoint was written.
    Saved(PathBuf),
}

/// Who watches a run and may stop it.
pub trait Watch {
    /// Whether the run should save and end.
    fn should_stop(&self) -> bool;

    /// Something happened.
    fn saw(&mut self, event: Event<'_>);
}
