//! Signals that end long work: any of them lets it save, and Ctrl-C after that ends it at once.
//!
//! Schedulers warn more than once: Slurm's signal before the end of the time goes to all processes of a rank, which hand it
//! on to each other, and when one rank has ended the others are told to. None of that may keep a run from saving.
//!
//! A file that reaches the limit of the system for its size is no reason to die: the write fails, and is told like a
//! full disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use ssn_cli::{Exit, Failure};

/// Set for a process under a supervisor, which ends with it.
pub const SUPERVISED: &str = "SSN_SUPERVISED";

/// A flag that becomes true with the first signal.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    register().map_err(|error| Failure::new(Exit::Internal, error))
}

fn register() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    if std::env::var_os(SUPERVISED).is_none() {
        // Handlers run in this order: the first signal finds the flag still down.
        flag::register_conditional_shutdown(SIGINT, Exit::Stopped as i32, stop.clone())?;
    }
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        flag::register(signal, stop.clone())?;
    }
    // Any handler keeps the process alive; nobody looks at this flag.
    flag::register(SIGXFSZ, Arc::default())?;
    Ok(stop)
}

/// A flag that becomes true when a scheduler gives up waiting: SIGTERM, after which it kills.
pub fn last_call_flag() -> io::Result<Arc<AtomicBool>> {
    let called = Arc::new(AtomicBool::new(false));
    flag::register(SIGTERM, called.clone())?;
    Ok(called)
}
