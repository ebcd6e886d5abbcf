//! Decoded cases kept in memory, up to a number of bytes: those used last stay.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// The share of the available memory that a cache takes if nobody says otherwise.
const DEFAULT_SHARE: u64 = 4;
/// The bytes of a cache where the system does not say how much memory it has.
const FALLBACK_BYTES: u64 = 2 << 30;

/// A cache of values by number. Several threads may ask at once: a value is loaded by the first, and the others wait for it.
#[derive(Debug)]
pub struct Cache<T> {
    limit: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    slots: HashMap<usize, Slot<T>>,
    /// The numbers of kept values by the time of their last use.
    by_use: BTreeMap<u64, usize>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
enum Slot<T> {
    Loading,
    Kept { value: Arc<T>, bytes: usize, used: u64 },
}

impl<T> Cache<T> {
    /// A cache that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let state = State { slots: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
        Self { limit, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The bytes that are kept now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// The value of a number: the kept one, or that which `load` gives together with its bytes.
    ///
    /// A value larger than the whole cache is handed out and not kept. If loading fails or panics, nobody waits for it
    /// any longer, and the next who asks tries again.
    pub fn get(&self, number: usize, load: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        let mut state = self.lock();
        loop {
            match state.slots.get(&number) {
                Some(Slot::Kept { .. }) => {
                    if let Some(value) = state.touch(number) {
                        return Ok(value);
                    }
                }
                Some(Slot::Loading) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        state.slots.insert(number, Slot::Loading);
        drop(state);

        let promise = Promise { cache: self, number };
        let (value, bytes) = load()?;
        let value = Arc::new(value);
        let mut state = self.lock();
        if bytes <= self.limit {
            while state.bytes + bytes > self.limit && state.forget_oldest() {}
            state.keep(number, value.clone(), bytes);
        }
        drop(state);
        drop(promise);
        Ok(value)
    }

    /// No code runs under the lock that could leave the state half changed, so that a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is loading a value. When it ends, in whatever way, those who wait are woken.
struct Promise<'a, T> {
    cache: &'a Cache<T>,
    number: usize,
}

impl<T> Drop for Promise<'_, T> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if matches!(state.slots.get(&self.number), Some(Slot::Loading)) {
            state.slots.remove(&self.number);
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}

impl<T> State<T> {
    fn touch(&mut self, number: usize) -> Option<Arc<T>> {
        let Some(Slot::Kept { value, used, .. }) = self.slots.get_mut(&number) else { return None };
        self.clock += 1;
        self.by_use.remove(used);
        *used = self.clock;
        self.by_use.insert(self.clock, number);
        Some(value.clone())
    }

    fn keep(&mut self, number: usize, value: Arc<T>, bytes: usize) {
        self.clock += 1;
        self.bytes += bytes;
        self.by_use.insert(self.clock, number);
        self.slots.insert(number, Slot::Kept { value, bytes, used: self.clock });
    }

    /// Forgets the value that was not used for longest; false if there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some((_, number)) = self.by_use.pop_first() else { return false };
        if let Some(Slot::Kept { bytes, .. }) = self.slots.remove(&number) {
            self.bytes -= bytes;
        }
        true
    }
}

/// A quarter of the memory that is available now, to the system or to the group of processes that this one belongs to.
pub fn default_bytes() -> usize {
    available().map_or(FALLBACK_BYTES, |bytes| bytes / DEFAULT_SHARE) as usize
}

/// The memory that is available now; as much as can be counted where the system does not say it.
pub fn available_bytes() -> usize {
    available().map_or(usize::MAX, |bytes| bytes as usize)
}

fn available() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    });
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    [system, group].into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
