//! Long work: without the interpreter's lock, on threads that survive a fork, and ended by Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use ssn_core::{Control, Progress};

/// The threads of this process.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What work sends.
enum Message<T> {
    /// An event of progress, as JSON.
    Progress(String),
    Done(T),
}

/// Does work on all cores. After Ctrl-C its result is not waited for; the flag that it is given then becomes true.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    pool()?.spawn(move || drop(sender.send(Message::Done(work(&flag)))));
    receive(py, receiver, &stop, |_| Ok(()), false)
}

/// Does work on all cores; `on_progress` gets its events as JSON. Ctrl-C, or an error of `on_progress`, stops the work and waits until
/// it has ended in order; Ctrl-C again does not wait.
pub fn run_watched<T: Send + 'static>(
    py: Python<'_>,
    on_progress: &Bound<'_, PyAny>,
    work: impl FnOnce(Control<'_>) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    pool()?.spawn(move || {
        let events = Mutex::new(sender.clone());
        let progress = |event: Progress<'_>| {
            if let Ok(json) = serde_json::to_string(&event) {
                let _ = events.lock().unwrap_or_else(PoisonError::into_inner).send(Message::Progress(json));
            }
        };
        let done = work(Control { progress: &progress, stop: &flag });
        drop(sender.send(Message::Done(done)));
    });
    receive(py, receiver, &stop, |json| on_progress.call1((json,)).map(drop), true)
}

/// Waits for the end of work, and looks for Ctrl-C meanwhile. If it `waits`, stopped work ends before its error is returned.
fn receive<T: Send>(
    py: Python<'_>,
    mut receiver: mpsc::Receiver<Message<T>>,
    stop: &AtomicBool,
    mut on_progress: impl FnMut(String) -> PyResult<()>,
    waits: bool,
) -> PyResult<T> {
    let mut broken = None;
    loop {
        let result;
        (receiver, result) = py.detach(move || {
            let result = receiver.recv_timeout(LOOK);
            (receiver, result)
        });
        let looked = match result {
            Ok(Message::Done(done)) => return broken.map_or(Ok(done), Err),
            Ok(Message::Progress(json)) if broken.is_none() => on_progress(json),
            Ok(Message::Progress(_)) => Ok(()),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals(),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "a defect of the package: the work ended without a result",
                ));
            }
        };
        if let Err(error) = looked {
            stop.store(true, Ordering::Relaxed);
            if !waits || broken.is_some() {
                return Err(error);
            }
            broken = Some(error);
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
