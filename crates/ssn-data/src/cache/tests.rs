//! Promises about the cache.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::error::DataError;
use crate::random::{Purpose, Stream};

fn failure() -> DataError {
    DataError::Case { id: "a".to_owned(), reason: "broken".to_owned(), advice: "mend it" }
}

#[test]
fn what_was_used_last_stays_and_the_limit_holds() {
    let cache = Cache::new(100);
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
    let cache = Cache::new(1000);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                let mut stream = Stream::new(thread, Purpose::Order, 0);
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
    let cache = Cache::new(10);
    cache.get(1, || Ok(("small", 10))).unwrap();
    assert_eq!(*cache.get(2, || Ok(("large", 11))).unwrap(), "large");
    assert_eq!(cache.bytes(), 10);
    assert_eq!(*cache.get(1, || Err(failure())).unwrap(), "small");
}

#[test]
fn a_value_is_loaded_once_however_many_ask() {
    let cache = Cache::new(10);
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
    let cache = Cache::<u8>::new(10);
    assert!(cache.get(1, || Err(failure())).is_err());
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cache.get(1, || panic!("a defect"))));
    assert!(panicked.is_err());
    assert_eq!(*cache.get(1, || Ok((5, 1))).unwrap(), 5);
    assert!(default_bytes() > 0);
}
