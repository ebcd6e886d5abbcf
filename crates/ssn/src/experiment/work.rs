//! The work of an experiment: trainings and predictions one after the other, while what was predicted before is scored.
//! What fails does not keep the rest from being done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use ssn_eval::Evaluated;
use ssn_eval::registry::GED2;

use super::job::Context;
use super::plan::TrainingJob;
use crate::error::{Error, ErrorKind, Result, of_panic};
use crate::work_folder::stopped_work;

/// What came of all jobs.
#[derive(Default)]
pub struct Done<'a> {
    /// Those that are scored, in the order of the table.
    pub scored: Vec<(&'a TrainingJob, Evaluated)>,
    /// Those that failed, with what to tell of each.
    pub failed: Vec<(&'a TrainingJob, Error)>,
    /// Whether somebody asked to stop.
    pub is_stopped: bool,
}

impl<'a> Done<'a> {
    /// Notes that a job failed, and says so at once; being stopped is no failure.
    fn note(&mut self, job: &'a TrainingJob, error: Error, context: Context<'_>) {
        if error.kind == ErrorKind::Stopped {
            self.is_stopped = true;
            return;
        }
        let label = job.label(context.plan);
        // At once, since it may take days until the end.
        say(context, &format!("failed: {label}: {error}"));
        self.failed.push((job, error));
    }

    /// The sentences about what failed.
    pub fn notes(&self, context: Context<'_>) -> Vec<String> {
        let note = |(job, failure): &(&TrainingJob, Error)| format!("{}: {failure}", job.label(context.plan));
        self.failed.iter().map(note).collect()
    }

    /// How the verb ends: as the first that failed, unless it was stopped.
    pub fn outcome(&self, context: Context<'_>) -> Result<()> {
        if self.is_stopped {
            return Err(stopped_work());
        }
        let Some((_, first)) = self.failed.first() else { return Ok(()) };
        let notes = self.notes(context);
        let more = match notes.len() {
            1 => String::new(),
            count => format!(" ({count} trainings failed; table.md tells of all)"),
        };
        Err(Error::new(first.kind, format!("{}{more}", notes[0])))
    }
}

/// Does what is wanted, and scores what is there.
///
/// # Errors
/// When nothing could be done at all. What single jobs met is in what comes back.
pub fn do_all<'a>(jobs: &'a [(TrainingJob, bool)], context: Context<'_>) -> Result<Done<'a>> {
    // Set here as well when a training or prediction says that it was stopped.
    let stopped = AtomicBool::new(false);
    let should_stop = || context.control.should_stop() || stopped.load(Ordering::Relaxed);
    let score = |number: usize| {
        let job = &jobs[number].0;
        let is_new = !job.record().is_scored;
        if is_new && should_stop() {
            // It is scored when the experiment goes on; what was scored before is only read.
            return Err(stopped_work());
        }
        let evaluated = job.evaluate(context)?;
        say(context, &told(job, &evaluated, context));
        Ok(evaluated)
    };
    let mut done = Done::default();
    let mut scored = std::thread::scope(|scope| {
        let (to_score, received) = channel();
        // Training may keep a GPU busy, scores are work for the CPU.
        let scorer = scope.spawn(move || score_all(received, score));
        let add = |number: usize| {
            // The thread takes jobs until it is told that there are no more.
            let _ = to_score.send(number);
        };
        // First what is there: it belongs to the table even if the rest is stopped.
        let (there, missing): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|&number| jobs[number].0.is_predicted());
        there.into_iter().for_each(add);
        for number in missing {
            let (job, is_wanted) = &jobs[number];
            if !is_wanted {
                continue;
            }
            let is_checked = jobs.iter().any(|(job, _)| job.is_begun());
            let outcome = job.train(context, is_checked).and_then(|()| job.predict(context));
            let is_hopeless = match outcome {
                Ok(()) => {
                    add(number);
                    false
                }
                Err(failure) => {
                    // The same twice before any step, such as a dataset or a GPU that cannot be used, meets all others.
                    let same =
                        done.failed.last().is_some_and(|(_, last)| last.to_string() == failure.to_string());
                    done.note(job, failure, context);
                    same && !job.is_begun()
                }
            };
            if should_stop() || done.is_stopped {
                // What waits for its first scores gets them when the experiment goes on.
                stopped.store(true, Ordering::Relaxed);
                done.is_stopped = true;
                break;
            }
            if is_hopeless {
                break;
            }
        }
        drop(to_score);
        scorer.join().map_err(|_| Error::internal("the thread that scores failed; please report this"))
    })?;
    scored.sort_by_key(|(number, _)| *number);
    for (number, found) in scored {
        let job = &jobs[number].0;
        match found {
            Ok(evaluated) => done.scored.push((job, evaluated)),
            Err(failure) => done.note(job, failure, context),
        }
    }
    Ok(done)
}

/// Scores the jobs that come, one after the other; one that fails does not keep others from theirs.
fn score_all<T>(jobs: Receiver<usize>, score: impl Fn(usize) -> Result<T>) -> Vec<(usize, Result<T>)> {
    let one = |job| {
        let found = catch_unwind(AssertUnwindSafe(|| score(job)));
        (job, found.unwrap_or_else(|panic| Err(of_panic(&*panic))))
    };
    jobs.into_iter().map(one).collect()
}

/// Measures what is scored, now that nothing else is computed.
pub fn measure(done: &mut Done<'_>, context: Context<'_>) {
    let jobs: Vec<&TrainingJob> = done.scored.iter().map(|(job, _)| *job).collect();
    for job in jobs {
        if let Err(failure) = job.measure(context) {
            done.note(job, failure, context);
        }
    }
}

/// A line about a training that was scored.
fn told(job: &TrainingJob, evaluated: &Evaluated, context: Context<'_>) -> String {
    let ged = evaluated.evaluation.last(GED2).and_then(|figure| figure.mean);
    let ged = ged.map_or(String::new(), |ged| format!(", GED² {ged:.4}"));
    format!("scored {}: {} cases{ged}", job.label(context.plan), evaluated.evaluation.cases)
}

fn say(context: Context<'_>, line: &str) {
    context.control.message(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_in_order_and_a_failure_is_that_of_one_job() {
        let score = |job: usize| match job {
            1 => Err(Error::mismatch("no raters")),
            2 => panic!("a defect"),
            _ => Ok(10 * job),
        };
        let (jobs, received) = channel();
        (0..4).for_each(|job| jobs.send(job).unwrap());
        drop(jobs);
        let scored = score_all(received, score).into_iter();
        let found: Vec<_> = scored.map(|(job, found)| (job, found.map_err(|error| error.kind))).collect();
        let failed = [ErrorKind::BadData, ErrorKind::Internal].map(Err);
        assert_eq!(found, [(0, Ok(0)), (1, failed[0]), (2, failed[1]), (3, Ok(30))]);
    }
}
