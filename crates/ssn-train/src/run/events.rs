//! Events of a run, and what listens to them.

use std::path::PathBuf;

use serde::Serialize;
use ssn_eval::metrics_file::{
    VALIDATION_DICE, VALIDATION_DIVERSITY, VALIDATION_GED, VALIDATION_RATER_DIVERSITY,
};

use crate::checkpoint::{BestValidation, StepMeans};
use crate::trainer::StepReport;

/// An event of a run. `metrics.csv`, TensorBoard's files and the console are listeners of these.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Training begins or continues.
    Began {
        /// Steps of the whole run.
        steps: u64,
        /// Steps done before.
        done: u64,
        /// Values that are trained.
        parameters: i64,
        /// Cases for training, validation and test.
        cases: [usize; 3],
        /// The device: `cpu` or `cuda:0`.
        device: String,
    },
    /// The run continues from a checkpoint.
    Resumed {
        /// Steps done.
        step: u64,
    },
    /// A checkpoint is damaged, and an older one is used.
    #[serde(rename = "damaged-checkpoint")]
    PassedOver {
        /// The damage.
        reason: String,
        /// Its new location.
        aside: PathBuf,
    },
    /// A step was applied.
    Step(StepReport),
    /// A step was not applied, because its loss or gradient is not finite.
    Incident {
        /// The number of the step, from 1.
        step: u64,
        /// The reason.
        reason: String,
        /// The file that lists the items of the batch.
        file: PathBuf,
    },
    /// The means of the steps since the last row: a row of `metrics.csv`.
    Row {
        /// Steps done.
        step: u64,
        /// The means.
        #[serde(flatten)]
        means: StepMeans,
    },
    /// A validation makes progress.
    Validating {
        /// Cases done.
        done: usize,
        /// All cases.
        total: usize,
    },
    /// A validation is done: a row of `metrics.csv`.
    Validated {
        /// Steps done.
        step: u64,
        /// The means over its cases.
        #[serde(flatten)]
        scores: ValidationScores,
        /// Whether no earlier validation was as good.
        is_best: bool,
    },
    /// A validation has no scores, because the network returned numbers that no file can hold.
    Unscored {
        /// Steps done.
        step: u64,
        /// The first such number.
        reason: String,
    },
    /// A checkpoint was written.
    Saved {
        /// Steps done.
        step: u64,
        /// Its folder.
        path: PathBuf,
    },
    /// Training ended; a run that was stopped can be resumed.
    Ended {
        /// The reason.
        reason: StopReason,
        /// Steps done.
        steps: u64,
        /// The best validation.
        best: Option<BestValidation>,
    },
}

/// Receives the events of a run, and may stop it.
pub trait Callback {
    /// Returns `true` to save a checkpoint and stop.
    fn should_stop(&self) -> bool;

    /// Receives an event.
    fn on_event(&mut self, event: &Event);
}

/// The means of a validation over its cases; `None` if no case defines one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ValidationScores {
    /// GED², the score by which the best checkpoint is chosen.
    pub ged: Option<f64>,
    /// The mean distance of two samples.
    pub diversity: Option<f64>,
    /// The mean distance of two raters.
    pub rater_diversity: Option<f64>,
    /// The Dice of the mean prediction, over all foreground classes and raters.
    pub dice: Option<f64>,
}

impl ValidationScores {
    /// Returns the values of the columns of a row.
    pub fn columns(&self) -> [(&'static str, Option<f64>); 4] {
        [
            (VALIDATION_GED, self.ged),
            (VALIDATION_DIVERSITY, self.diversity),
            (VALIDATION_RATER_DIVERSITY, self.rater_diversity),
            (VALIDATION_DICE, self.dice),
        ]
    }
}

/// Reason for the end of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// All steps are done.
    Finished,
    /// Validations stopped getting better.
    Early,
    /// It was asked to stop, and can go on.
    Stopped,
    /// The time is up, and it can go on.
    OutOfTime,
    /// Too many steps in a row could not be applied; the newest checkpoint is from before them.
    NonFinite,
}
