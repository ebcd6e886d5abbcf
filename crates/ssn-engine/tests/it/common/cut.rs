//! Processes that are stopped or killed on their way.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use ssn_testing::process::{Ended, send, wait_for_end};

/// How often a process is looked at; short beside a step.
const GLANCE: Duration = Duration::from_micros(300);

/// So many of what is done at random moments, or a fifth with `SSN_FEWER_KILLS` in the environment.
pub fn count(full: usize) -> usize {
    if std::env::var_os("SSN_FEWER_KILLS").is_some() { full / 5 } else { full }
}

/// Returns all points at which a process is cut, or every third with `SSN_FEWER_KILLS` in the environment.
pub fn points<T>(all: &[T]) -> Vec<&T> {
    let step = if std::env::var_os("SSN_FEWER_KILLS").is_some() { 3 } else { 1 };
    all.iter().step_by(step).collect()
}

/// Numbers by chance, the same in every run of a test.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `count` (SplitMix64).
    pub fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % count
    }

    /// A time below so many microseconds.
    pub fn micros(&mut self, count: u64) -> Duration {
        Duration::from_micros(self.below(count))
    }
}

/// Starts a command, sends it a signal once `ready` and some time after it, and waits for its end. A command that
/// ends before gets no signal.
pub fn cut(command: &mut Command, signal: &str, wait: Duration, ready: impl Fn() -> bool) -> Ended {
    let mut child = command.spawn().unwrap();
    if comes_true(&mut child, ready) {
        sleep(wait);
        // A process that has just ended gets none.
        send(signal, child.id().into());
    }
    wait_for_end(child)
}

/// Waits until something holds; false if the process ended before.
pub fn comes_true(child: &mut Child, holds: impl Fn() -> bool) -> bool {
    while !holds() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        sleep(GLANCE);
    }
    true
}

/// The step of the last row of a run's metrics.
pub fn last_row(run: &Path) -> u64 {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|row| row.split(',').next()?.parse().ok());
    rows.last().unwrap_or(0)
}
