//! Scoring in the background: training may keep a GPU busy, scores are work for the CPU.

use crate::error::{Error, ErrorKind, Result, of_panic};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// What became of a job, with its number.
pub type Scored<T> = (usize, Result<T>);

/// A thread that scores what it is given, one after the other.
pub struct Scorer<'scope, T> {
    jobs: Sender<usize>,
    thread: ScopedJoinHandle<'scope, Vec<Scored<T>>>,
}

impl<'scope, T: Send + 'scope> Scorer<'scope, T> {
    /// Starts the thread; `score` gets the numbers that are added. A job that fails does not keep others from theirs.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        score: impl Fn(usize) -> Result<T> + Send + 'scope,
    ) -> Self {
        let (jobs, received) = channel();
        let one = move |job| {
            let found = catch_unwind(AssertUnwindSafe(|| score(job)));
            (job, found.unwrap_or_else(|panic| Err(of_panic(&*panic))))
        };
        let thread = scope.spawn(move || received.into_iter().map(one).collect());
        Self { jobs, thread }
    }

    /// Adds a job.
    pub fn add(&self, job: usize) {
        // The thread takes jobs until it is told that there are no more.
        let _ = self.jobs.send(job);
    }

    /// Waits until all jobs are done, and gives what they found in the order in which they were added.
    ///
    /// # Errors
    /// When the thread itself failed.
    pub fn finish(self) -> Result<Vec<Scored<T>>> {
        drop(self.jobs);
        let internal =
            |_| Error::new(ErrorKind::Internal, "the thread that scores failed; please report this");
        self.thread.join().map_err(internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_in_order_and_a_failure_is_that_of_one_job() {
        std::thread::scope(|scope| {
            let score = |job| match job {
                1 => Err(Error::new(ErrorKind::BadData, "no raters")),
                2 => panic!("a defect"),
                _ => Ok(10 * job),
            };
            let scorer = Scorer::start(scope, score);
            (0..4).for_each(|job| scorer.add(job));
            let scored = scorer.finish().unwrap();
            let numbers: Vec<usize> = scored.iter().map(|(job, _)| *job).collect();
            assert_eq!(numbers, [0, 1, 2, 3]);
            let found: Vec<Option<usize>> =
                scored.iter().map(|(_, found)| found.as_ref().ok().copied()).collect();
            assert_eq!(found, [Some(0), None, None, Some(30)]);
            let exits =
                scored.iter().filter_map(|(_, found)| found.as_ref().err().map(|failure| failure.kind));
            assert_eq!(exits.collect::<Vec<_>>(), [ErrorKind::BadData, ErrorKind::Internal]);
        });
    }
}
