//! The queue between the threads of a loader and its consumer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{DataError, Result};
use crate::loader::batch::Batch;

/// How long an error waits for earlier batches that are still being made.
const ERROR_DELAY: Duration = Duration::from_millis(500);

/// Finished batches by number, within a number of bytes.
pub(super) struct BatchQueue {
    limit: usize,
    stopped: AtomicBool,
    state: Mutex<State>,
    /// There is room for another batch, or no need for any.
    room: Condvar,
    /// A batch or an error came, or a thread left.
    news: Condvar,
}

struct State {
    /// The next number that no thread has claimed.
    claimed: u64,
    /// The number that the consumer wants.
    wanted: u64,
    ready: BTreeMap<u64, Batch>,
    ready_bytes: usize,
    /// The bytes of the largest batch so far, which those being made are taken to have.
    batch_bytes: usize,
    error: Option<(u64, DataError, Instant)>,
    workers: usize,
}

/// Counts a thread as ended when it is dropped, also by a panic.
pub(super) struct WorkerGuard<'a>(pub(super) &'a BatchQueue);

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        self.0.worker_ends();
    }
}

impl BatchQueue {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        let state = State {
            claimed: start,
            wanted: start,
            ready: BTreeMap::new(),
            ready_bytes: 0,
            batch_bytes: 0,
            error: None,
            workers: 0,
        };
        Self {
            limit,
            stopped: AtomicBool::new(false),
            state: Mutex::new(state),
            room: Condvar::new(),
            news: Condvar::new(),
        }
    }

    pub(super) fn worker_starts(&self) {
        self.lock().workers += 1;
    }

    pub(super) fn worker_ends(&self) {
        self.lock().workers -= 1;
        self.news.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        // Under the lock, so that no thread can miss it between looking and waiting.
        let state = self.lock();
        self.stopped.store(true, Ordering::Relaxed);
        drop(state);
        self.room.notify_all();
    }

    /// The next batch to make, once there is room for it; `None` if no more are needed.
    pub(super) fn claim(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if self.is_stopped() || state.error.is_some() {
                return None;
            }
            let in_work = (state.claimed - state.wanted) as usize - state.ready.len();
            let bytes = state.ready_bytes + (in_work + 1) * state.batch_bytes;
            if state.claimed == state.wanted || bytes <= self.limit {
                state.claimed += 1;
                return Some(state.claimed - 1);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn deliver(&self, batch: Batch) {
        let mut state = self.lock();
        let bytes = batch.bytes();
        state.ready_bytes += bytes;
        state.batch_bytes = state.batch_bytes.max(bytes);
        state.ready.insert(batch.number, batch);
        drop(state);
        self.news.notify_all();
    }

    /// Of several errors, that of the first batch counts.
    pub(super) fn fail(&self, number: u64, error: DataError) {
        let mut state = self.lock();
        if state.error.as_ref().is_none_or(|(first, ..)| number < *first) {
            let since = state.error.as_ref().map_or_else(Instant::now, |(_, _, since)| *since);
            state.error = Some((number, error, since));
        }
        drop(state);
        self.news.notify_all();
        self.room.notify_all();
    }

    /// Waits for a batch, or for an error in it or in a later one that has waited long enough.
    pub(super) fn take(&self, number: u64) -> Result<Batch> {
        let mut state = self.lock();
        loop {
            if let Some(batch) = state.ready.remove(&number) {
                state.ready_bytes -= batch.bytes();
                state.wanted = number + 1;
                drop(state);
                self.room.notify_all();
                return Ok(batch);
            }
            let patience = match &state.error {
                Some((failed, _, _)) if *failed <= number => Duration::ZERO,
                Some((_, _, since)) => ERROR_DELAY.saturating_sub(since.elapsed()),
                None if state.workers == 0 => {
                    let message = "all threads that make batches have ended".to_owned();
                    return Err(DataError::Panic { id: "unknown".to_owned(), message });
                }
                None => Duration::MAX,
            };
            if patience.is_zero()
                && let Some((_, error, _)) = state.error.take()
            {
                return Err(error);
            }
            state = if patience == Duration::MAX {
                self.news.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.news.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Waits until all threads have ended; false on a timeout.
    pub(super) fn wait_for_workers(&self, time: Duration) -> bool {
        let (state, _) = self
            .news
            .wait_timeout_while(self.lock(), time, |state| state.workers > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.workers == 0
    }

    /// Every change under the lock is complete in itself, so that a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
