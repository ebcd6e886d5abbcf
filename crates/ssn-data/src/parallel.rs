//! Work on many cases by several threads or processes, with bounded memory.
//!
//! Each thread of [`map`] holds one case at a time, and no more threads work than cases have room. Processes that share
//! the cases of a dataset each take a [`Shard`].

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, thread};

use serde::Serialize;
use ssn_core::Phase;
use ssn_io::{Error, ErrorKind, Result, memory};

/// Cases that are in memory at the same time, at most.
const MOST_WORKERS: usize = 16;
/// What a case takes while it is worked on, in sizes of its arrays: the file as it was read, the arrays, and a copy.
const COPIES: usize = 3;

/// The share of the available memory that a cache takes by default.
const DEFAULT_SHARE: u64 = 4;
/// The bytes of a cache where the system does not say how much memory it has.
const FALLBACK_BYTES: u64 = 2 << 30;

/// A quarter of the memory that is available now, to the system or to the group of processes that this one belongs to.
pub fn default_bytes() -> usize {
    memory::available_bytes().map_or(FALLBACK_BYTES, |bytes| bytes / DEFAULT_SHARE) as usize
}

/// The memory that is available now; as much as can be counted where the system does not say it.
pub fn available_bytes() -> usize {
    memory::available_bytes().map_or(usize::MAX, |bytes| bytes as usize)
}

/// Called after each case, from any thread, with the number of cases done.
pub type CaseCounter<'a> = &'a (dyn Fn(usize) + Sync);

/// Ignores the progress.
pub fn unwatched(_done: usize) {}

/// Lets as many cases be worked on at once as have room in memory, judged by the largest so far.
#[derive(Debug)]
pub struct MemoryMeter {
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

impl MemoryMeter {
    fn new(budget: usize) -> Self {
        Self { budget, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Records the size in bytes of the arrays of a case.
    pub fn saw(&self, bytes: usize) {
        self.saw_all(bytes.saturating_mul(COPIES));
    }

    /// Records all the bytes that work on a case takes.
    pub fn saw_all(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.largest = state.largest.max(bytes);
    }

    /// How many cases have room.
    fn room(&self, state: &State) -> usize {
        self.budget.checked_div(state.largest).unwrap_or(1).max(1)
    }

    fn begin(&self) {
        let state = self.changed.wait_while(lock(&self.state), |state| state.running >= self.room(state));
        state.unwrap_or_else(PoisonError::into_inner).running += 1;
    }

    fn end(&self) {
        lock(&self.state).running -= 1;
        self.changed.notify_all();
    }
}

/// Returns the results of `work` for the numbers below `count`, in their order; a panic is a result too, as its message.
pub fn map<T: Send>(
    count: usize,
    progress: CaseCounter<'_>,
    work: impl Fn(usize, &MemoryMeter) -> T + Sync,
) -> Vec<Result<T, String>> {
    map_some(count, progress, &|| false, work)
}

/// Like [`map`], as a phase of work that may be stopped between two numbers.
///
/// # Errors
/// [`ErrorKind::Stopped`] if it was stopped before the last number.
pub fn map_until<T: Send>(
    count: usize,
    phase: &Phase<'_>,
    work: impl Fn(usize, &MemoryMeter) -> T + Sync,
) -> Result<Vec<Result<T, String>>> {
    let results = map_some(count, &|done| phase.reached(done), &|| phase.should_stop(), work);
    if results.len() == count { Ok(results) } else { Err(stopped(results.len(), count)) }
}

/// Returns the error of work that was stopped after `done` of `count` cases.
pub fn stopped(done: usize, count: usize) -> Error {
    Error::new(ErrorKind::Stopped, format!("stopped after {done} of {count} cases"))
        .advise("run the same command to continue")
}

/// Returns the results until `stops` is true.
///
/// Threads of their own, and not the pool that metrics run on: a thread of the pool that waits for a metric
/// would take up the next case, and more cases would be in memory than there are threads.
fn map_some<T: Send>(
    count: usize,
    progress: CaseCounter<'_>,
    stops: &(dyn Fn() -> bool + Sync),
    work: impl Fn(usize, &MemoryMeter) -> T + Sync,
) -> Vec<Result<T, String>> {
    let workers =
        thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_WORKERS).min(count.max(1));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let meter = MemoryMeter::new(default_bytes());
    let results = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || stops() {
                return;
            }
            meter.begin();
            let result = catch_unwind(AssertUnwindSafe(|| work(index, &meter)));
            meter.end();
            let result = result.map_err(|panic| message(panic.as_ref()));
            lock(&results).push((index, result));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    thread::scope(|scope| {
        // Where the system gives no more threads, those that are there do the work.
        let started =
            (0..workers).filter(|_| thread::Builder::new().spawn_scoped(scope, run).is_ok()).count();
        if started == 0 {
            run();
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the error of a case on which the program itself fails.
pub(crate) fn panicked(id: &str, message: &str) -> Error {
    Error::case(id, format!("the program failed: {message}")).advise("please report this with the case")
}

/// All results, or the first error; a panic becomes one with the name of its case.
pub fn all_or_error<'a, T>(
    results: Vec<Result<Result<T>, String>>,
    id: impl Fn(usize) -> &'a str,
) -> Result<Vec<T>> {
    let one = |(index, result): (usize, Result<Result<T>, String>)| {
        result.unwrap_or_else(|message| Err(panicked(id(index), &message)))
    };
    results.into_iter().enumerate().map(one).collect()
}

/// Locks a mutex under which every change is complete in itself, so that a panic leaves nothing half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Which share of the cases, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1, as users count.
    number: usize,
    of: usize,
    waits: bool,
}

/// The time between two looks at what other shards have done.
const POLL: Duration = Duration::from_millis(300);

/// Shards that have all of their cases, where others have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShardProgress {
    /// How many have.
    pub done: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// All cases.
    pub const WHOLE: Self = Self { number: 1, of: 1, waits: false };

    /// Shard `number` of `of`, counted from 1; `None` if there is no such shard.
    pub fn new(number: usize, of: usize) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of, waits: false })
    }

    /// Makes this shard wait for all others once its own cases are done: its process reports the whole.
    pub fn that_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// Whether these are all cases.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// The numbers of its own cases out of so many.
    pub fn own(self, cases: usize) -> Vec<usize> {
        (self.number - 1..cases).step_by(self.of).collect()
    }

    /// Returns how many shards are finished; `None` if all are, or if this shard has all cases.
    ///
    /// A shard [that waits](Self::that_waits) returns once all are.
    pub fn waiting(self, cases: usize, is_there: impl Fn(usize) -> bool) -> Option<ShardProgress> {
        loop {
            let unfinished = self.unfinished(cases, &is_there);
            if unfinished.is_none() || !self.waits {
                return unfinished;
            }
            thread::sleep(POLL);
        }
    }

    fn unfinished(self, cases: usize, is_there: impl Fn(usize) -> bool) -> Option<ShardProgress> {
        let mut without = BTreeSet::new();
        for case in (0..cases).filter(|_| !self.is_whole()) {
            if !without.contains(&(case % self.of)) && !is_there(case) {
                without.insert(case % self.of);
            }
        }
        (!without.is_empty()).then(|| ShardProgress { done: self.of - without.len(), of: self.of })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected I/N, such as 2/8 for the second of eight shards";
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| expected.to_owned());
        let (number, of) = match text.split_once('/') {
            Some((first, second)) => (number(first)?, number(second)?),
            None => return Err(expected.to_owned()),
        };
        match Self::new(number, of) {
            Some(shard) => Ok(shard),
            None if of == 0 => Err("there must be one shard or more, as in 1/1".to_owned()),
            None if number == 0 => Err(format!("shards are counted from 1: the first is 1/{of}")),
            None => Err(format!("there is no shard {number} of {of}: the last is {of}/{of}")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl fmt::Display for ShardProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = if self.done == 1 { "is" } else { "are" };
        write!(f, "{} of {} shards {are} done", self.done, self.of)
    }
}

/// Which of how many processes this is, as a launcher of parallel programs says in the environment.
///
/// `mpirun` of Open MPI and of MPICH's family and Slurm's `srun` are understood. Each has names of its own, and a batch
/// script that was not started by `srun` is one process whatever it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// The number of this process, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Its number among those of the same machine, from 0; its number among all where the launcher does not tell.
    pub local: usize,
}

/// Names of the rank and of the number of ranks, launcher by launcher.
const NAMES: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
];

/// Names of the rank within a machine. Slurm sets its own whatever library of MPI numbers the ranks.
const LOCAL_NAMES: [&str; 5] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
];

/// What the launcher said; nothing if there was none, or if it started one process alone.
pub fn launched() -> Option<Launched> {
    launched_from(|name| std::env::var(name).ok())
}

fn launched_from(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name| variable(name)?.parse().ok();
    let local = LOCAL_NAMES.iter().find_map(|name| number(name));
    let found = NAMES.iter().find_map(|[rank, size]| {
        let (rank, size) = (number(rank)?, number(size)?);
        Some(Launched { rank, size, local: local.unwrap_or(rank) })
    });
    found.filter(|found| found.size > 1 && found.rank < found.size)
}

/// A choice of the CPU or a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The first GPU if there is one that can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, counted from 0.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let gpu = |number: &str| number.parse::<u8>().ok().map(|number| Self::Cuda(number.into()));
        let choice = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(gpu),
        };
        choice.ok_or_else(|| "it must be auto, cpu, cuda, or cuda:1 for the second GPU".to_owned())
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
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
        let work = |i: usize, _: &MemoryMeter| if i == 2 { panic!("index out of range") } else { Ok(i) };
        let results = map(5, &unwatched, work);
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 4);
        let error = all_or_error(results, |i| ["a", "b", "c", "d", "e"][i]).unwrap_err().to_string();
        assert!(error.starts_with("case c: the program failed: index out of range"), "{error}");
    }

    #[test]
    fn as_many_cases_as_have_room() {
        let meter = MemoryMeter::new(100 * COPIES);
        let room = || meter.room(&lock(&meter.state));
        // The first runs alone, since its size is not known yet.
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

    #[test]
    fn every_case_has_one_shard() {
        for (cases, of) in [(10, 3), (2, 5), (0, 2), (7, 1)] {
            let mut all: Vec<usize> =
                (1..=of).flat_map(|number| Shard::new(number, of).unwrap().own(cases)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..cases), "{cases} cases in {of} shards");
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().own(9), [1, 4, 7]);
    }

    #[test]
    fn all_wait_for_the_last_case() {
        let shard = Shard::new(1, 3).unwrap();
        assert_eq!(shard.waiting(7, |case| case != 4), Some(ShardProgress { done: 2, of: 3 }));
        assert_eq!(shard.waiting(7, |case| case == 4), Some(ShardProgress { done: 0, of: 3 }));
        assert_eq!(shard.waiting(7, |_| true), None);
        // More shards than cases: those without any are finished.
        let waiting = Shard::new(1, 5).unwrap().waiting(2, |case| case == 0);
        assert_eq!(waiting.map(|waiting| waiting.to_string()), Some("4 of 5 shards are done".to_owned()));
        assert_eq!(Shard::WHOLE.waiting(7, |_| false), None);
    }

    #[test]
    fn what_is_no_shard_is_told() {
        assert_eq!(" 1 / 4".parse::<Shard>().map(|shard| shard.to_string()), Ok("1/4".to_owned()));
        assert!("1/1".parse::<Shard>().unwrap().is_whole());
        let said = |text: &str| text.parse::<Shard>().unwrap_err();
        for wrong in ["x", "", "3", "1/x", "-1/4", "1/2/3", "1/99999999999999999999"] {
            assert!(said(wrong).starts_with("expected I/N"), "{wrong}");
        }
        assert_eq!(said("0/4"), "shards are counted from 1: the first is 1/4");
        assert_eq!(said("5/4"), "there is no shard 5 of 4: the last is 4/4");
        assert_eq!(said("0/0"), "there must be one shard or more, as in 1/1");
    }

    fn launched_by(variables: &[(&str, &str)]) -> Option<Launched> {
        launched_from(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn launchers_are_understood_and_one_process_is_none() {
        let second_of_four = Some(Launched { rank: 1, size: 4, local: 1 });
        assert_eq!(
            launched_by(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]),
            second_of_four
        );
        assert_eq!(launched_by(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), second_of_four);
        assert_eq!(launched_by(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")]), second_of_four);
        // The script of a batch job, which starts steps itself.
        assert_eq!(launched_by(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(launched_by(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        let third = Some(Launched { rank: 2, size: 4, local: 0 });
        assert_eq!(
            launched_by(&[("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_LOCALID", "0")]),
            third
        );
        assert_eq!(launched_by(&[("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("SLURM_LOCALID", "0")]), third);
        assert_eq!(launched_by(&[("PMI_RANK", "x"), ("PMI_SIZE", "4")]), None);
        assert_eq!(launched_by(&[]), None);
    }

    #[test]
    fn choices_are_read_as_they_are_shown() {
        for choice in [DeviceChoice::Auto, DeviceChoice::Cpu, DeviceChoice::Cuda(0), DeviceChoice::Cuda(3)] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for wrong in ["gpu", "cuda:", "cuda:x", "cpu:0", "", "cuda:-1", "cuda:999"] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }
}
