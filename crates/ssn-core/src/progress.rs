//! How long work tells how far it is: every function of the library that may take minutes takes a callback.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What work reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A phase of so many items begins.
    Begin {
        /// How many items there are; 0 where that is not known.
        total: usize,
        /// What they are, such as `cases`.
        items: &'static str,
    },
    /// So many items of the phase are done.
    Done(usize),
    /// What is being worked on.
    Current(&'a str),
    /// A line for the user.
    Message(&'a str),
    /// The phase has ended.
    End,
}

/// The callback. Threads share it.
pub type OnProgress<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// A callback that does nothing.
pub fn silent(_: Progress<'_>) {}

/// A phase of work, from [`Progress::Begin`] to [`Progress::End`], which comes when it is dropped.
pub struct Phase<'a> {
    report: OnProgress<'a>,
    done: AtomicUsize,
}

impl<'a> Phase<'a> {
    /// Begins a phase of `total` items.
    pub fn new(report: OnProgress<'a>, total: usize, items: &'static str) -> Self {
        report(Progress::Begin { total, items });
        Self { report, done: AtomicUsize::new(0) }
    }

    /// Reports that `done` items are done; a smaller number that comes late from another thread is ignored.
    pub fn reached(&self, done: usize) {
        if self.done.fetch_max(done, Ordering::Relaxed) < done {
            (self.report)(Progress::Done(done));
        }
    }

    /// Reports that `more` items are done, and what they were.
    pub fn advance(&self, more: usize, current: &str) {
        (self.report)(Progress::Current(current));
        (self.report)(Progress::Done(self.done.fetch_add(more, Ordering::Relaxed) + more));
    }

    /// Reports what is being worked on.
    pub fn current(&self, what: &str) {
        (self.report)(Progress::Current(what));
    }

    /// Reports a line for the user.
    pub fn message(&self, line: &str) {
        (self.report)(Progress::Message(line));
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        (self.report)(Progress::End);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_phase_reports_in_order_and_ends() {
        let seen = Mutex::new(vec![]);
        let report = |event: Progress<'_>| seen.lock().unwrap().push(format!("{event:?}"));
        let phase = Phase::new(&report, 5, "cases");
        phase.reached(2);
        phase.reached(1);
        phase.advance(1, "a");
        drop(phase);
        let expected =
            ["Begin { total: 5, items: \"cases\" }", "Done(2)", "Current(\"a\")", "Done(3)", "End"];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
