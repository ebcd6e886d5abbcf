//! Work on many cases with bounded memory: each thread holds one case at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Cases that are in memory at the same time, at most: a BraTS case takes some 200 MB while it is checked.
const MOST_WORKERS: usize = 16;

/// Told after each case, with how many are done; may be called from any thread.
pub type Progress<'a> = &'a (dyn Fn(usize) + Sync);

/// A progress that nobody watches.
pub fn unwatched(_done: usize) {}

/// The results of `work` for the numbers below `count`, in their order.
///
/// Threads of their own, and not the pool that metrics run on: a thread of the pool that waits for a metric
/// would take up the next case, and more cases would be in memory than there are threads.
pub fn map<T: Send>(count: usize, progress: Progress<'_>, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let workers =
        thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_WORKERS).min(count.max(1));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let result = work(index);
            // A poisoned lock means that another thread panicked, and the scope will panic anyway.
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
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
        assert_eq!(map(100, &progress, |i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(told.into_inner(), 100);
        assert!(map(0, &unwatched, |i| i).is_empty());
    }
}
