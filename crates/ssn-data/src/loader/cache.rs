//! Decoded cases kept in memory, up to a number of bytes: those used last stay.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// A cache of values by number. Several threads may ask at once: a value is loaded by the first, and the others wait for it.
#[derive(Debug)]
pub struct CaseCache<T> {
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

impl<T> CaseCache<T> {
    /// A cache that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let state = State { slots: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
        Self { limit, state: Mutex::new(state), changed: Condvar::new() }
    }

    #[cfg(test)]
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
    cache: &'a CaseCache<T>,
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::error::DataError;
    use crate::random::{Purpose, RandomStream};

    fn failure() -> DataError {
        DataError::case("a", "broken", "mend it")
    }

    #[test]
    fn what_was_used_last_stays_and_the_limit_holds() {
        let cache = CaseCache::new(100);
        let loads = AtomicUsize::new(0);
        let get = |number: usize| {
            let load = || {
                loads.fetch_add(1, Ordering::Relaxed);
                Ok((number, 40))
            };
            assert_eq!(*cache.get(number, load).unwrap(), number);
            assert!(cache.bytes() <= 100);
            loads.load(Ordering::Relaxed)
        };
        assert_eq!([get(1), get(2), get(1), get(3)], [1, 2, 2, 3]);
        // 2 had to go for 3; 1 was used after it.
        assert_eq!([get(1), get(2)], [3, 4]);
    }

    #[test]
    fn the_limit_holds_for_any_sizes_and_threads() {
        let cache = CaseCache::new(1000);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut stream = RandomStream::new(thread, Purpose::Order, 0);
                    for _ in 0..2000 {
                        let number = stream.below(40) as usize;
                        let value = cache.get(number, || Ok((number, number * 37))).unwrap();
                        assert_eq!(*value, number);
                        assert!(cache.bytes() <= 1000);
                    }
                });
            }
        });
    }

    #[test]
    fn a_value_larger_than_the_cache_is_not_kept() {
        let cache = CaseCache::new(10);
        cache.get(1, || Ok(("small", 10))).unwrap();
        assert_eq!(*cache.get(2, || Ok(("large", 11))).unwrap(), "large");
        assert_eq!(cache.bytes(), 10);
        assert_eq!(*cache.get(1, || Err(failure())).unwrap(), "small");
    }

    #[test]
    fn a_value_is_loaded_once_however_many_ask() {
        let cache = CaseCache::new(10);
        let (loads, barrier) = (AtomicUsize::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let load = || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(50));
                        Ok((7, 1))
                    };
                    assert_eq!(*cache.get(3, load).unwrap(), 7);
                });
            }
        });
        assert_eq!(loads.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failures_and_panics_leave_the_number_free() {
        let cache = CaseCache::<u8>::new(10);
        assert!(cache.get(1, || Err(failure())).is_err());
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cache.get(1, || panic!("a defect"))));
        assert!(panicked.is_err());
        assert_eq!(*cache.get(1, || Ok((5, 1))).unwrap(), 5);
    }
}
