//! Work on many cases with bounded memory: each thread holds one case at a time, and there are no more threads at work
//! than cases have room.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::cache::default_bytes;
use crate::error::{DataError, Result};

/// Cases that are in memory at the same time, at most.
const MOST_WORKERS: usize = 16;
/// What a case takes while it is worked on, in sizes of its arrays: the file as it was read, the arrays, and a copy.
const COPIES: usize = 3;

/// Told after each case, with how many are done; may be called from any thread.
pub type Progress<'a> = &'a (dyn Fn(usize) + Sync);

/// A progress that nobody watches.
pub fn unwatched(_done: usize) {}

/// Lets as many cases be worked on at once as have room in memory, judged by the largest so far.
#[derive(Debug)]
pub struct Meter {
    budget: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// What the largest case takes; 0 until one was seen, and until then one runs alone.
    largest: usize,
}

impl Meter {
    fn new(budget: usize) -> Self {
        Self { budget, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Tells the bytes of the arrays of a case.
    pub fn saw(&self, bytes: usize) {
        self.saw_all(bytes.saturating_mul(COPIES));
    }

    /// Tells all the bytes that work on a case takes.
    pub fn saw_all(&self, bytes: usize) {
        let mut state = self.lock();
        state.largest = state.largest.max(bytes);
    }

    /// No code runs under the lock that could leave the state half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many cases have room.
    fn room(&self, state: &State) -> usize {
        self.budget.checked_div(state.largest).unwrap_or(1).max(1)
    }

    fn begin(&self) {
        let state = self.changed.wait_while(self.lock(), |state| state.running >= self.room(state));
        state.unwrap_or_else(PoisonError::into_inner).running += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.running -= 1;
        drop(state);
        self.changed.notify_all();
    }
}

/// The results of `work` for the numbers below `count`, in their order; a panic is a result too, as what it said.
///
/// Threads of their own, and not the pool that metrics run on: a thread of the pool that waits for a metric
/// would take up the next case, and more cases would be in memory than there are threads.
pub fn map<T: Send>(
    count: usize,
    progress: Progress<'_>,
    work: impl Fn(usize, &Meter) -> T + Sync,
) -> Vec<Result<T, String>> {
    let workers =
        thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_WORKERS).min(count.max(1));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let meter = Meter::new(default_bytes());
    let results = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            meter.begin();
            let result = catch_unwind(AssertUnwindSafe(|| work(index, &meter)));
            meter.end();
            let result = result.map_err(|panic| message(panic.as_ref()));
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// All results, or the first error; a panic becomes one with the name of its case.
pub fn all_or_error<'a, T>(
    results: Vec<Result<Result<T>, String>>,
    id: impl Fn(usize) -> &'a str,
) -> Result<Vec<T>> {
    let one = |(index, result): (usize, Result<Result<T>, String>)| {
        result.unwrap_or_else(|message| Err(DataError::Panic { id: id(index).to_owned(), message }))
    };
    results.into_iter().enumerate().map(one).collect()
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let told = AtomicUsize::new(0);
        let progress = |_| {
            told.fetch_add(1, Ordering::Relaxed);
        };
        let squares: Vec<usize> = map(100, &progress, |i, _| i * i).into_iter().flatten().collect();
        assert_eq!(squares, (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(told.into_inner(), 100);
        assert!(map(0, &unwatched, |i, _| i).is_empty());
    }

    #[test]
    fn a_panic_is_that_of_its_case_alone() {
        let work = |i: usize, _: &Meter| if i == 2 { panic!("index out of range") } else { Ok(i) };
        let results = map(5, &unwatched, work);
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 4);
        let error = all_or_error(results, |i| ["a", "b", "c", "d", "e"][i]).unwrap_err().to_string();
        assert!(error.starts_with("case c: the program failed: index out of range"), "{error}");
    }

    #[test]
    fn as_many_cases_as_have_room() {
        let meter = Meter::new(100 * COPIES);
        let room = || meter.room(&meter.lock());
        // The first runs alone, for nobody knows how large it is.
        assert_eq!(room(), 1);
        meter.begin();
        meter.saw(30);
        meter.end();
        assert_eq!(room(), 3);
        meter.saw(50);
        meter.saw(20);
        assert_eq!(room(), 2);
        // One case is always worked on.
        meter.saw(usize::MAX);
        assert_eq!(room(), 1);
    }
}
