//! How the learning rate changes over a run: a pure function of the step, so that resuming needs no state.
//!
//! Steps count from 0: the rate of step k is the one that PyTorch's scheduler of the same name gives for the
//! update after k calls of its `step`.

use std::f64::consts::PI;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, require};

/// The decay of the learning rate after the warm-up, over the `n` steps that are left then.
///
/// `s` is the number of steps since the warm-up. As in PyTorch, a decay would reach its end at `s = n`, one step
/// after the last of the run; later steps keep that value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// The base rate throughout.
    #[default]
    Constant,
    /// The base rate times `gamma` for every milestone reached (`MultiStepLR`).
    MultiStep {
        /// Steps of the run, counted from its very beginning, from which on the rate is lower. They increase, and
        /// lie after the warm-up; those after the end of the run have no effect.
        milestones: Vec<u64>,
        /// The factor of every milestone.
        #[serde(default = "gamma")]
        gamma: f64,
    },
    /// `end + (base − end) · (1 − s / n)^power` (`PolynomialLR`, which has `end = 0`).
    Polynomial {
        /// The power.
        #[serde(default = "power")]
        power: f64,
        /// The rate at the end.
        #[serde(default)]
        end: f64,
    },
    /// `end + (base − end) · (1 + cos(π s / n)) / 2` (`CosineAnnealingLR` with `T_max = n`, `eta_min = end`).
    Cosine {
        /// The rate at the end.
        #[serde(default)]
        end: f64,
    },
}

/// A linear rise of the rate from `start · base` at step 0 to the base rate at step `steps` (`LinearLR`, joined to
/// the schedule by `SequentialLR`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Warmup {
    /// Steps of the rise; 0 for none.
    pub steps: u64,
    /// The fraction of the base rate at step 0.
    pub start: f64,
}

impl Default for Warmup {
    fn default() -> Self {
        Warmup { steps: 0, start: 1.0 / 3.0 }
    }
}

fn gamma() -> f64 {
    0.1
}

fn power() -> f64 {
    1.0
}

/// The learning rate of every step of a run, from settings that have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningRate {
    base: f64,
    schedule: Schedule,
    warmup: Warmup,
    total_steps: u64,
}

impl LearningRate {
    /// Checks the settings of a run of `total_steps` steps.
    ///
    /// # Errors
    /// An error that names the setting outside its range.
    pub fn new(base: f64, schedule: Schedule, warmup: Warmup, total_steps: u64) -> Result<Self> {
        require(base.is_finite() && base > 0.0, "optimizer.learning_rate", base, "a positive number")?;
        require(total_steps > 0, "training.steps", total_steps, "at least 1")?;
        let shorter = warmup.steps == 0 || warmup.steps < total_steps;
        require(shorter, "optimizer.warmup.steps", warmup.steps, "less than training.steps")?;
        let fraction = warmup.start > 0.0 && warmup.start <= 1.0;
        require(fraction, "optimizer.warmup.start", warmup.start, "above 0 and at most 1")?;
        match &schedule {
            Schedule::Constant => {}
            Schedule::MultiStep { milestones, gamma } => {
                require(*gamma > 0.0 && *gamma <= 1.0, "gamma", gamma, "above 0 and at most 1")?;
                let list = || format!("{milestones:?}");
                require(milestones.is_sorted_by(|a, b| a < b), "milestones", list(), "increasing steps")?;
                let after = milestones.first().is_none_or(|first| *first > warmup.steps);
                require(after, "milestones", list(), "above 0 and after the warm-up")?;
            }
            Schedule::Polynomial { power, end } => {
                require(power.is_finite() && *power > 0.0, "power", power, "a positive number")?;
                require_end(*end, base)?;
            }
            Schedule::Cosine { end } => require_end(*end, base)?,
        }
        Ok(LearningRate { base, schedule, warmup, total_steps })
    }

    /// The rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        let Warmup { steps: warm, start } = self.warmup;
        if step < warm {
            return self.base * (start + (1.0 - start) * step as f64 / warm as f64);
        }
        let n = self.total_steps - warm;
        let s = (step - warm).min(n);
        let done = s as f64 / n as f64;
        match &self.schedule {
            Schedule::Constant => self.base,
            Schedule::MultiStep { milestones, gamma } => {
                let reached = milestones.partition_point(|milestone| *milestone <= step);
                self.base * gamma.powf(reached as f64)
            }
            Schedule::Polynomial { power, end } => end + (self.base - end) * (1.0 - done).powf(*power),
            Schedule::Cosine { end } => end + (self.base - end) * (1.0 + (PI * done).cos()) / 2.0,
        }
    }
}

fn require_end(end: f64, base: f64) -> Result<()> {
    require(end >= 0.0 && end <= base, "end", end, "at least 0 and at most the learning rate")
}

#[cfg(test)]
mod tests {
    use ssn_io::{Error, Place};

    use super::*;
    use crate::error::NnError;

    fn refused(base: f64, schedule: Schedule, warmup: Warmup, steps: u64) -> String {
        match LearningRate::new(base, schedule, warmup, steps) {
            Err(NnError::Other(Error { place: Place::Setting(field), .. })) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bad_settings_are_named() {
        let none = Warmup::default();
        for base in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(base, Schedule::Constant, none, 10), "optimizer.learning_rate");
        }
        assert_eq!(refused(0.1, Schedule::Constant, none, 0), "training.steps");
        let long = |steps| Warmup { steps, ..none };
        assert_eq!(refused(0.1, Schedule::Constant, long(10), 10), "optimizer.warmup.steps");
        assert_eq!(refused(0.1, Schedule::Constant, long(11), 10), "optimizer.warmup.steps");
        for start in [0.0, -1.0, 1.5, f64::NAN] {
            assert_eq!(
                refused(0.1, Schedule::Constant, Warmup { steps: 2, start }, 10),
                "optimizer.warmup.start"
            );
        }
        let multi =
            |milestones: &[u64], gamma| Schedule::MultiStep { milestones: milestones.to_vec(), gamma };
        for milestones in [[5, 5], [6, 5], [0, 5]] {
            assert_eq!(refused(0.1, multi(&milestones, 0.1), none, 10), "milestones");
        }
        assert_eq!(refused(0.1, multi(&[3, 5], 0.1), long(3), 10), "milestones");
        for gamma in [0.0, -0.5, 2.0, f64::NAN] {
            assert_eq!(refused(0.1, multi(&[5], gamma), none, 10), "gamma");
        }
        for end in [-1e-3, 0.2, f64::NAN] {
            assert_eq!(refused(0.1, Schedule::Cosine { end }, none, 10), "end");
            assert_eq!(refused(0.1, Schedule::Polynomial { power: 1.0, end }, none, 10), "end");
        }
        for power in [0.0, -1.0, f64::NAN] {
            assert_eq!(refused(0.1, Schedule::Polynomial { power, end: 0.0 }, none, 10), "power");
        }
    }

    #[test]
    fn the_end_is_kept_after_the_run() {
        let warmup = Warmup { steps: 3, start: 0.5 };
        for schedule in [Schedule::Cosine { end: 0.01 }, Schedule::Polynomial { power: 0.9, end: 0.01 }] {
            let rate = LearningRate::new(0.1, schedule, warmup, 10).unwrap();
            assert_eq!((rate.at(0), rate.at(3)), (0.05, 0.1));
            assert!(rate.at(9) > 0.01);
            assert_eq!((rate.at(10), rate.at(1000)), (0.01, 0.01));
        }
    }

    #[test]
    fn a_huge_step_has_a_rate() {
        let rate =
            LearningRate::new(0.1, Schedule::Cosine { end: 0.0 }, Warmup::default(), u64::MAX).unwrap();
        assert!(rate.at(u64::MAX - 1).is_finite());
    }
}
