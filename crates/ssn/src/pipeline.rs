//! Reading, computing and writing at the same time: while one item is computed, the next is read and the last one written.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::error::{Error, ErrorKind, Result};

/// Computes and writes all items in their order, but for those that are `None`. `compute` stays on this thread.
///
/// Nothing waits between two stages: each keeps what it has until the next one takes it, so that at most one item is read
/// ahead, one is computed and one is written. Where `has_room` is false, the next one is computed only after the last one was
/// written.
///
/// # Errors
/// The first of reading, computing or writing, after what was computed before it has been written.
pub(crate) fn run<A: Send, B: Send>(
    items: impl Iterator<Item = Result<Option<A>>> + Send,
    mut compute: impl FnMut(A) -> Result<B>,
    mut write: impl FnMut(B) -> Result<()> + Send,
    has_room: impl Fn() -> bool,
) -> Result<()> {
    let ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        let (read, to_compute) = sync_channel::<Result<A>>(0);
        let (computed, to_write) = sync_channel::<B>(0);
        let (written, is_written) = channel::<()>();
        let reader = spawn(scope, move || {
            for item in items {
                let is_taken = item.transpose().is_none_or(|item| read.send(item).is_ok());
                if !is_taken || ended.load(Ordering::Relaxed) {
                    return;
                }
            }
        })?;
        let writer = spawn(scope, move || {
            for item in to_write {
                write(item)?;
                let _ = written.send(());
            }
            Ok(())
        })?;
        let result = (|| {
            let mut unwritten = 0;
            for item in to_compute {
                // A writer that takes nothing any more has failed, and tells why.
                if writer.is_finished() || computed.send(compute(item?)?).is_err() {
                    break;
                }
                unwritten += 1;
                while unwritten > 0 && !has_room() && is_written.recv().is_ok() {
                    unwritten -= 1;
                }
            }
            Ok(())
        })();
        ended.store(true, Ordering::Relaxed);
        drop(computed);
        let written = writer.join().unwrap_or_else(|panic| resume_unwind(panic));
        reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        written.and(result)
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let refused = |error: io::Error| {
        Error::new(
            ErrorKind::OutOfMemory,
            format!("the system gives no thread to read and write with: {error}"),
        )
    };
    thread::Builder::new().spawn_scoped(scope, work).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn error(message: &str) -> Error {
        Error::mismatch(message)
    }

    /// Doubles numbers; gives what was written, and how it ended.
    fn doubled(
        items: Vec<Result<u32>>,
        computes: impl Fn(u32) -> Result<u32>,
        writes: impl Fn(u32) -> Result<()> + Sync,
        has_room: bool,
    ) -> (Vec<u32>, Result<(), String>) {
        let written = Mutex::new(vec![]);
        let write = |number| {
            writes(number)?;
            written.lock().unwrap().push(number);
            Ok(())
        };
        let items = items.into_iter().map(|item| item.map(Some));
        let result = run(items, |number| computes(2 * number), write, || has_room);
        (written.into_inner().unwrap(), result.map_err(|error| error.to_string()))
    }

    fn numbers() -> Vec<Result<u32>> {
        (0..20).map(Ok).collect()
    }

    #[test]
    fn all_items_are_written_in_order() {
        for has_room in [true, false] {
            let (written, result) = doubled(numbers(), Ok, |_| Ok(()), has_room);
            assert_eq!((written, result), ((0..20).map(|number| 2 * number).collect(), Ok(())));
        }
    }

    #[test]
    fn an_error_of_any_stage_ends_all_after_what_was_computed_is_written() {
        let expected = |message: &str| Err::<(), _>(message.to_owned());
        for has_room in [true, false] {
            let items = vec![Ok(1), Ok(2), Err(error("unreadable")), Ok(3)];
            assert_eq!(doubled(items, Ok, |_| Ok(()), has_room), (vec![2, 4], expected("unreadable")));
            let stops = |number| if number == 8 { Err(error("stopped")) } else { Ok(number) };
            assert_eq!(
                doubled(numbers(), stops, |_| Ok(()), has_room),
                (vec![0, 2, 4, 6], expected("stopped"))
            );
            let is_full = |number| if number == 4 { Err(error("full")) } else { Ok(()) };
            assert_eq!(doubled(numbers(), Ok, is_full, has_room), (vec![0, 2], expected("full")));
        }
    }

    #[test]
    fn what_is_left_out_is_neither_computed_nor_waited_for() {
        let seen = AtomicUsize::new(0);
        let items = (0..1_000_000u32).map(|number| {
            seen.fetch_add(1, Ordering::SeqCst);
            // Nobody stops for ever: the end of the work is looked at between two of them.
            if number > 0 {
                thread::yield_now();
            }
            Ok((number == 0).then_some(number))
        });
        let result = run(items, |_| Err::<u32, _>(error("stopped")), |_| Ok(()), || true);
        assert_eq!(result.unwrap_err().to_string(), "stopped");
        assert!(seen.into_inner() < 1_000_000);
    }

    #[test]
    fn without_room_nothing_is_computed_beside_writing() {
        let writing = AtomicUsize::new(0);
        let compute = |number: u32| {
            assert_eq!(writing.load(Ordering::SeqCst), 0);
            Ok(number)
        };
        let write = |_| {
            writing.store(1, Ordering::SeqCst);
            thread::yield_now();
            writing.store(0, Ordering::SeqCst);
            Ok(())
        };
        run(numbers().into_iter().map(|item| item.map(Some)), compute, write, || false).unwrap();
    }
}
