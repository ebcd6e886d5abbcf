//! Signals that end long work: any of them lets it save, and Ctrl-C after that ends it at once.
//!
//! Schedulers and launchers signal more than once, so a rank never ends at once.
//!
//! A file that reaches the limit of the system for its size is no reason to die: the write fails, and is told like a
//! full disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use ssn_data::launched;
use ssn_eval::ErrorKind;

use crate::exit::Failure;
use crate::progress;

/// A flag that becomes true with the first signal. The user is told at once that work stops after this `item`.
pub fn stop_flag(item: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    register(item).map_err(|error| Failure::new(ErrorKind::Internal, error))
}

fn register(item: &'static str) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let launched = launched();
    if launched.is_none() {
        // Handlers run in this order: the first signal finds the flag still down.
        flag::register_conditional_shutdown(SIGINT, ErrorKind::Stopped as i32, stop.clone())?;
    }
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        flag::register(signal, stop.clone())?;
    }
    // A closed terminal or a lost connection, unless `nohup` asked to go on.
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, stop.clone())?;
    }
    if launched.is_none_or(|launched| launched.rank == 0) {
        // Nothing can be written where a signal is handled; this thread waits for it.
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let again =
                    if signal == SIGINT && launched.is_none() { "; Ctrl-C again ends at once" } else { "" };
                progress::acknowledge(&format!("stopping after this {item}{again}"));
            }
        })?;
    }
    // Any handler keeps the process alive; nobody looks at this flag.
    flag::register(SIGXFSZ, Arc::default())?;
    Ok(stop)
}

/// Whether the process was started with a signal ignored; where the system does not tell, it counts as ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & 1 << (signal - 1) != 0)
}
