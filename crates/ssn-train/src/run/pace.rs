//! How fast a run is.

use std::fmt;

/// How fast a run is, without its first steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pace {
    /// Steps measured.
    pub steps: u64,
    /// Seconds that they took, without validations and checkpoints.
    pub seconds: f64,
    /// Seconds of these in which a GPU worked on them.
    pub gpu_seconds: f64,
    /// Steps before: convolutions are chosen, kernels compiled, queues filled.
    skipped: u64,
}

/// So many steps are not measured.
const UNMEASURED_STEPS: u64 = 20;

impl Pace {
    /// Adds a step.
    pub(super) fn add(&mut self, seconds: f64, gpu_seconds: f64) {
        if self.skipped < UNMEASURED_STEPS {
            self.skipped += 1;
            return;
        }
        self.steps += 1;
        self.seconds += seconds;
        self.gpu_seconds += gpu_seconds;
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = 1e3 * self.seconds / self.steps.max(1) as f64;
        write!(f, "{milliseconds:.2} ms per step over {} steps", self.steps)?;
        if self.gpu_seconds > 0.0 {
            let idle = 100.0 * (1.0 - self.gpu_seconds / self.seconds.max(f64::MIN_POSITIVE));
            write!(f, ", the GPU idle {:.1} % of that", idle.max(0.0))?;
        }
        Ok(())
    }
}
