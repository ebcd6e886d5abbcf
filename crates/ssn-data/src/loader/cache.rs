//! A least-recently-used cache of decoded cases, limited in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ssn_io::Result;

use crate::parallel::lock;

/// A cache of values by number. Of several threads that ask for a value, the first loads it and the others wait.
#[derive(Debug)]
pub struct CaseCache<T> {
    limit: usize,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    slots: HashMap<usize, Slot<T>>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Slot<T> {
    /// Locked while the value is loaded.
    value: Arc<Mutex<Option<Arc<T>>>>,
    /// The size of the value; 0 until it is loaded.
    bytes: usize,
    used: u64,
}

impl<T> CaseCache<T> {
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::new(State { slots: HashMap::new(), clock: 0, bytes: 0 }) }
    }

    /// The value of a number: the cached one, or that which `load` returns together with its size in bytes.
    ///
    /// A value larger than the whole cache is returned and not kept. If loading fails or panics, the next thread that
    /// asks tries again.
    pub fn get(&self, number: usize, load: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        let mut state = lock(&self.state);
        state.clock += 1;
        let used = state.clock;
        let slot = state.slots.entry(number).or_insert(Slot { value: Arc::default(), bytes: 0, used });
        slot.used = used;
        let slot = slot.value.clone();
        drop(state);

        let mut value = lock(&slot);
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        let (loaded, bytes) = load()?;
        let loaded = Arc::new(loaded);
        if bytes <= self.limit {
            let mut state = lock(&self.state);
            while state.bytes + bytes > self.limit && state.evict_oldest() {}
            if let Some(slot) = state.slots.get_mut(&number) {
                slot.bytes = bytes;
                state.bytes += bytes;
                *value = Some(loaded.clone());
            }
        }
        Ok(loaded)
    }
}

impl<T> State<T> {
    /// Removes the loaded value that was not used for longest; false if there is none.
    fn evict_oldest(&mut self) -> bool {
        let loaded = self.slots.iter().filter(|(_, slot)| slot.bytes > 0);
        let oldest = loaded.min_by_key(|(_, slot)| slot.used).map(|(number, _)| *number);
        let removed = oldest.and_then(|number| self.slots.remove(&number));
        self.bytes -= removed.as_ref().map_or(0, |slot| slot.bytes);
        removed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::random::{Purpose, RandomStream};
    use ssn_io::Error;

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
            assert!(lock(&cache.state).bytes <= 100);
            loads.load(Ordering::Relaxed)
        };
        assert_eq!([get(1), get(2), get(1), get(3)], [1, 2, 2, 3]);
        // 2 had to go for 3; 1 was used after it.
        assert_eq!([get(1), get(2)], [3, 4]);
        // A value larger than the cache is not kept, and nothing goes for it.
        assert_eq!(*cache.get(9, || Ok((9, 101))).unwrap(), 9);
        assert_eq!((get(2), lock(&cache.state).bytes), (4, 80));
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
                        assert!(lock(&cache.state).bytes <= 1000);
                    }
                });
            }
        });
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
        assert!(cache.get(1, || Err(Error::case("a", "broken").advise("mend it"))).is_err());
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cache.get(1, || panic!("a defect"))));
        assert!(panicked.is_err());
        assert_eq!(*cache.get(1, || Ok((5, 1))).unwrap(), 5);
    }
}
