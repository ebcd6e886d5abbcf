//! Means over the steps between two rows of a run's metrics: part of a checkpoint, so that a row may span two processes.

use serde::{Deserialize, Serialize};

use crate::trainer::StepReport;

/// Sums over the steps since the last row.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    steps: u64,
    loss: f64,
    sampled_steps: u64,
    effective_samples: f64,
    gradient_norm: f64,
    learning_rate: f64,
}

impl Interval {
    /// Adds a step.
    pub fn add(&mut self, report: &StepReport) {
        self.steps += 1;
        self.loss += report.loss;
        self.gradient_norm += report.gradient_norm;
        self.learning_rate = report.learning_rate;
        if let Some(samples) = report.effective_samples {
            self.sampled_steps += 1;
            self.effective_samples += samples;
        }
    }

    /// The mean loss; nothing before the first step.
    pub fn loss(&self) -> Option<f64> {
        mean(self.loss, self.steps)
    }

    /// The mean of the effective samples; nothing where none were drawn.
    pub fn effective_samples(&self) -> Option<f64> {
        mean(self.effective_samples, self.sampled_steps)
    }

    /// The mean norm of the gradient.
    pub fn gradient_norm(&self) -> Option<f64> {
        mean(self.gradient_norm, self.steps)
    }

    /// The learning rate of the last step.
    pub fn learning_rate(&self) -> Option<f64> {
        (self.steps > 0).then_some(self.learning_rate)
    }

    /// The columns of a row, with their names in TensorBoard.
    pub fn columns(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("training/loss", self.loss()),
            ("training/effective_samples", self.effective_samples()),
            ("training/gradient_norm", self.gradient_norm()),
            ("training/learning_rate", self.learning_rate()),
        ]
    }
}

fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}
