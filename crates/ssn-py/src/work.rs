//! Long work: without the interpreter's lock, on threads that survive a fork, and ended by Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads of this process.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Does work on all cores. After Ctrl-C its result is not waited for; the flag that it is given then becomes true.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::channel();
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    pool()?.spawn(move || drop(sender.send(work(&flag))));
    loop {
        let result;
        (receiver, result) = py.detach(move || {
            let result = receiver.recv_timeout(LOOK);
            (receiver, result)
        });
        match result {
            Ok(result) => return Ok(result),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| cancelled.store(true, Ordering::Relaxed))?;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "a defect of the package: the work ended without a result",
                ));
            }
        }
    }
}

/// The threads of this process: those of the process that it was forked from do not exist in it.
fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = pool.as_ref()
        && *owner == process
    {
        return Ok(pool.clone());
    }
    // A panic, which has been told by then, ends the work and not the process.
    let made = ThreadPoolBuilder::new().panic_handler(drop).build();
    let made = Arc::new(made.map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?);
    // Threads that are not there cannot be waited for.
    std::mem::forget(pool.replace((process, made.clone())));
    Ok(made)
}
