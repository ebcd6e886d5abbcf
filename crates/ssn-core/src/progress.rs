//! Progress and cancellation of long work: every function of the library that may take minutes takes a [`Control`].

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;

/// What work reports. Phases may lie inside each other, as a validation in a training, and beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress<'a> {
    /// A phase begins.
    Begin {
        /// Which phase the events that follow are of.
        phase: PhaseId,
        /// What is done, such as `training`.
        name: &'static str,
        /// How many items there are; 0 where that is not known.
        total: usize,
        /// How many were done before, as in a run that is resumed.
        done: usize,
        /// What they are, such as `steps`.
        items: &'static str,
    },
    /// So many items of a phase are done.
    Done {
        /// The phase.
        phase: PhaseId,
        /// Items done.
        done: usize,
    },
    /// What a phase works on, or how its last item came out.
    Current {
        /// The phase.
        phase: PhaseId,
        /// A few words, such as a case or `loss 0.31`.
        what: &'a str,
    },
    /// A line for the user.
    Message(&'a str),
    /// A warning that results may be wrong or incomplete. Quiet front ends show it too.
    Warning(&'a str),
    /// A phase has ended.
    End {
        /// The phase.
        phase: PhaseId,
    },
}

/// A phase, unlike any other of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct PhaseId(u64);

/// The callback. Threads share it.
pub type OnProgress<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// A callback that does nothing.
pub fn silent(_: Progress<'_>) {}

static NEVER: AtomicBool = AtomicBool::new(false);

/// A callback for progress, and a flag that asks work to stop. Work that is stopped keeps what is done and returns an error of
/// kind `Stopped`; the same call continues it.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Receives progress.
    pub progress: OnProgress<'a>,
    /// Becomes `true` when the work should stop.
    pub stop: &'a AtomicBool,
}

impl Default for Control<'_> {
    /// Returns a control that shows nothing and never stops.
    fn default() -> Self {
        Self { progress: &silent, stop: &NEVER }
    }
}

impl<'a> Control<'a> {
    /// Returns a control that shows progress and never stops.
    pub fn watched(progress: OnProgress<'a>) -> Self {
        Self { progress, stop: &NEVER }
    }

    /// Returns `true` if the work should stop.
    pub fn should_stop(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports a line for the user.
    pub fn message(self, line: &str) {
        (self.progress)(Progress::Message(line));
    }

    /// Reports a warning, which `-q` does not hide.
    pub fn warn(self, line: &str) {
        (self.progress)(Progress::Warning(line));
    }

    /// Begins a phase of `total` items.
    pub fn phase(self, name: &'static str, total: usize, items: &'static str) -> Phase<'a> {
        let mut phase = Phase::new(self.progress, name, total, items);
        phase.stop = self.stop;
        phase
    }
}

/// A phase of work, from [`Progress::Begin`] to [`Progress::End`], which comes when it is dropped.
pub struct Phase<'a> {
    report: OnProgress<'a>,
    stop: &'a AtomicBool,
    id: PhaseId,
    done: AtomicUsize,
}

impl<'a> Phase<'a> {
    /// Begins a phase of `total` items.
    pub fn new(report: OnProgress<'a>, name: &'static str, total: usize, items: &'static str) -> Self {
        Self::resume(report, name, total, items, 0)
    }

    /// Begins a phase of `total` items of which `done` were done before.
    pub fn resume(
        report: OnProgress<'a>,
        name: &'static str,
        total: usize,
        items: &'static str,
        done: usize,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = PhaseId(NEXT.fetch_add(1, Ordering::Relaxed));
        report(Progress::Begin { phase: id, name, total, done, items });
        Self { report, stop: &NEVER, id, done: AtomicUsize::new(done) }
    }

    /// Returns `true` if the work should stop.
    pub fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the number of items done.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Reports that `done` items are done; a smaller number that comes late from another thread is ignored.
    pub fn reached(&self, done: usize) {
        if self.done.fetch_max(done, Ordering::Relaxed) < done {
            (self.report)(Progress::Done { phase: self.id, done });
        }
    }

    /// Reports that `more` items are done, and what they were.
    pub fn advance(&self, more: usize, current: &str) {
        self.current(current);
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        (self.report)(Progress::Done { phase: self.id, done });
    }

    /// Reports what is being worked on.
    pub fn current(&self, what: &str) {
        (self.report)(Progress::Current { phase: self.id, what });
    }

    /// Reports a line for the user.
    pub fn message(&self, line: &str) {
        (self.report)(Progress::Message(line));
    }

    /// Reports a warning.
    pub fn warn(&self, line: &str) {
        (self.report)(Progress::Warning(line));
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        (self.report)(Progress::End { phase: self.id });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_phase_reports_in_order_and_ends() {
        let seen = Mutex::new(vec![]);
        let report = |event: Progress<'_>| {
            seen.lock().unwrap().push(match event {
                Progress::Begin { name, total, done, items, .. } => format!("{name} {done}/{total} {items}"),
                Progress::Done { done, .. } => format!("done {done}"),
                Progress::Current { what, .. } => what.to_owned(),
                Progress::Message(line) | Progress::Warning(line) => line.to_owned(),
                Progress::End { .. } => "end".to_owned(),
            });
        };
        let phase = Phase::new(&report, "reading", 5, "cases");
        phase.reached(2);
        phase.reached(1);
        phase.advance(1, "a");
        drop(phase);
        assert_eq!(*seen.lock().unwrap(), ["reading 0/5 cases", "done 2", "a", "done 3", "end"]);
        assert_ne!(Phase::new(&silent, "a", 0, "").id, Phase::new(&silent, "b", 0, "").id);
    }
}
