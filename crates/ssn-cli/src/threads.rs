//! The threads for computing, started before there is work for them: where the system gives fewer of them, as under
//! `ulimit -u` or `ulimit -v`, the program makes do with those, and without any it says so.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use rayon::{ThreadBuilder, ThreadPoolBuilder};
use rustix::process::{Resource, getrlimit};

use crate::exit::Failure;
use ssn_eval::ErrorKind;

/// Threads for other things: the line of progress, the packages of the viewer and its browser.
const OTHERS: usize = 3;

/// The variable by which people set the number of threads.
const COUNT: &str = "RAYON_NUM_THREADS";

/// The address space that a thread may take: an arena of at most 128 MiB while it is made, its stack, and what it works on.
const BYTES_OF_THREAD: u64 = 256 << 20;

/// A thread that waits until it is needed.
struct Waiting {
    thread: JoinHandle<()>,
    work: Sender<ThreadBuilder>,
}

impl Waiting {
    fn start() -> io::Result<Self> {
        let (work, given) = channel::<ThreadBuilder>();
        let wait = move || {
            if let Ok(worker) = given.recv() {
                worker.run();
            }
        };
        Ok(Self { thread: thread::Builder::new().spawn(wait)?, work })
    }
}

/// Starts the threads.
///
/// # Errors
/// When the system gives hardly any.
pub fn start() -> Result<(), Failure> {
    let wanted = std::env::var(COUNT).ok().and_then(|text| text.parse().ok()).filter(|&count| count > 0);
    let wanted = wanted.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let wanted = wanted.min(room(getrlimit(Resource::As).current));
    let mut waiting = started(wanted + OTHERS, Waiting::start).map_err(|error| {
        let message = format!(
            "the system lets this program start no threads ({error}); end other programs, or raise the limits `ulimit -u` and \
             `ulimit -v`"
        );
        Failure::new(ErrorKind::OutOfMemory, message)
    })?;
    // Those for other things are given back, and are sure to be had again.
    for Waiting { thread, work } in waiting.split_off(waiting.len() - OTHERS) {
        drop(work);
        let _ = thread.join();
    }
    let count = waiting.len();
    let give = |worker| {
        let next = waiting.pop().ok_or(io::ErrorKind::WouldBlock)?;
        next.work.send(worker).map_err(|_| io::ErrorKind::BrokenPipe.into())
    };
    let built = ThreadPoolBuilder::new().num_threads(count).spawn_handler(give).build_global();
    built.map_err(|error| Failure::new(ErrorKind::Internal, error))
}

/// How many threads have room in a limited address space, as by `ulimit -v`: the allocator of glibc reserves a part of it for
/// each, whether it is used or not.
fn room(address_space: Option<u64>) -> usize {
    address_space.map_or(usize::MAX, |bytes| (bytes / BYTES_OF_THREAD).max(1) as usize)
}

/// As many as can be had, up to `most`; an error where that leaves none for computing.
fn started<T>(most: usize, mut start: impl FnMut() -> io::Result<T>) -> io::Result<Vec<T>> {
    let mut all = vec![];
    while all.len() < most {
        match start() {
            Ok(one) => all.push(one),
            Err(error) if all.len() <= OTHERS => return Err(error),
            Err(_) => break,
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_address_space_has_room_for_few() {
        assert_eq!([None, Some(1 << 30), Some(1 << 20)].map(room), [usize::MAX, 4, 1]);
    }

    #[test]
    fn fewer_threads_are_enough_and_none_is_an_error() {
        let given = |limit: usize| {
            let mut left = limit;
            let all = started(8, || {
                left = left.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
                Ok(())
            });
            all.map(|all| all.len()).ok()
        };
        assert_eq!(
            [0, OTHERS, OTHERS + 1, 7, 8, 100].map(given),
            [None, None, Some(4), Some(7), Some(8), Some(8)]
        );
    }
}
