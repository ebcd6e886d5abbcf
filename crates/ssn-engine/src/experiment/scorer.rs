//! Scoring in the background: training may keep a GPU busy, scores are work for the processors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use ssn_cli::{Exit, Failure};

use crate::failure::of_panic;
use crate::workplace::STOPPED;

/// A thread that scores what it is given, one after the other.
pub struct Scorer<'scope, T> {
    jobs: Sender<usize>,
    thread: ScopedJoinHandle<'scope, Result<Vec<(usize, T)>, Failure>>,
}

impl<'scope, T: Send + 'scope> Scorer<'scope, T> {
    /// Starts the thread; `score` gets the numbers that are added. It ends with the first failure, or between two of
    /// them once `stop` is true.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        stop: &'scope AtomicBool,
        score: impl Fn(usize) -> Result<T, Failure> + Send + 'scope,
    ) -> Self {
        let (jobs, received) = channel();
        let thread = scope.spawn(move || {
            let mut scored = vec![];
            for job in received {
                if stop.load(Ordering::Relaxed) {
                    return Err(Failure::new(Exit::Stopped, STOPPED));
                }
                let found = catch_unwind(AssertUnwindSafe(|| score(job)));
                scored.push((job, found.unwrap_or_else(|panic| Err(of_panic(&*panic)))?));
            }
            Ok(scored)
        });
        Self { jobs, thread }
    }

    /// Adds a job; false if an earlier one failed.
    pub fn add(&self, job: usize) -> bool {
        self.jobs.send(job).is_ok()
    }

    /// Waits until all jobs are done, and gives what they found in the order in which they were added.
    pub fn finish(self) -> Result<Vec<(usize, T)>, Failure> {
        drop(self.jobs);
        let internal =
            |_| Err(Failure::new(Exit::Internal, "the thread that scores failed; please report this"));
        self.thread.join().unwrap_or_else(internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_in_order_and_a_failure_ends_all() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let scorer = Scorer::start(scope, &stop, |job| Ok(10 * job));
            assert!((0..5).all(|job| scorer.add(job)));
            let scored: Vec<usize> = scorer.finish().unwrap().into_iter().map(|(_, found)| found).collect();
            assert_eq!(scored, [0, 10, 20, 30, 40]);

            let fails = |job| if job == 1 { Err(Failure::new(Exit::BadData, "no raters")) } else { Ok(()) };
            let scorer = Scorer::start(scope, &stop, fails);
            (0..3).for_each(|job| {
                scorer.add(job);
            });
            assert_eq!(scorer.finish().unwrap_err().message, "no raters");

            stop.store(true, Ordering::Relaxed);
            let scorer = Scorer::start(scope, &stop, Ok);
            scorer.add(0);
            assert_eq!(scorer.finish().unwrap_err().exit, Exit::Stopped);
        });
    }
}
