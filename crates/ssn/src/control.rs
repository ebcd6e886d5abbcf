//! How the caller watches long work, and stops it.

use std::sync::atomic::{AtomicBool, Ordering};

use ssn_core::progress::silent;
use ssn_core::{OnProgress, Phase, Progress};

static NEVER: AtomicBool = AtomicBool::new(false);

/// A callback for progress, and a flag that asks to stop: work then saves what it has and ends with
/// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped); [`train`](crate::train) ends with `Ok` and says so in its result.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Gets what happens.
    pub progress: OnProgress<'a>,
    /// Becomes true when the work should stop.
    pub stop: &'a AtomicBool,
}

impl Default for Control<'_> {
    /// Shows nothing, and never stops.
    fn default() -> Self {
        Self { progress: &silent, stop: &NEVER }
    }
}

impl<'a> Control<'a> {
    /// Whether the work should stop.
    pub fn should_stop(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A line for the user.
    pub(crate) fn message(self, line: &str) {
        (self.progress)(Progress::Message(line));
    }

    /// Reports a warning, which `-q` does not hide.
    pub(crate) fn warn(self, line: &str) {
        (self.progress)(Progress::Warning(line));
    }

    /// Begins a phase.
    pub(crate) fn phase(self, name: &'static str, total: usize, items: &'static str) -> Phase<'a> {
        Phase::new(self.progress, name, total, items)
    }
}
