//! A rank under a supervisor, which says "resume me" where a launcher would only say "killed".
//!
//! Launchers end all ranks when one is killed, say by a system that is out of memory, and give the signal as the exit code of the
//! whole job. The process that a launcher starts therefore starts the rank as a process of its own and waits for it: if
//! that one is killed, it ends with the code of a run that can be resumed. It also ends a rank that a scheduler told to end and
//! that cannot, because it waits for one that is gone: the scheduler would kill both soon after.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use ssn::ErrorKind;
use ssn_cli::Failure;

use crate::signals::{self, SUPERVISED};

/// How often the supervisor looks whether it was asked to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a rank has to save and end after SIGTERM. Slurm kills after 30 seconds unless it is set up otherwise.
const LAST_CALL: Duration = Duration::from_secs(20);

/// Runs this program again as a rank and gives its exit code; nothing if this is the rank.
pub fn supervised() -> Result<Option<ExitCode>, Failure> {
    let failed =
        |error: io::Error| Failure::new(ErrorKind::Internal, format!("a rank cannot be started: {error}"));
    if std::env::var_os(SUPERVISED).is_some() {
        // Without its supervisor nobody would end it.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(error.into()))?;
        return Ok(None);
    }
    let stop = signals::stop_flag("step")?;
    let last_call = signals::last_call_flag().map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let mut rank = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(SUPERVISED, "1")
        .spawn()
        .map_err(failed)?;
    let (mut told, mut called) = (false, None);
    let status = loop {
        if let Some(status) = rank.try_wait().map_err(failed)? {
            break status;
        }
        if stop.load(Ordering::Relaxed) && !told {
            told = true;
            // A rank that has just ended is not there to be told.
            if let Some(pid) = Pid::from_raw(rank.id() as i32) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        if last_call.load(Ordering::Relaxed) && called.get_or_insert_with(Instant::now).elapsed() > LAST_CALL
        {
            rank.kill().map_err(failed)?;
        }
        std::thread::sleep(PAUSE);
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(Some(ExitCode::from(code as u8))),
        // The rank that is gone has told why.
        (None, _) if called.is_some() => Ok(Some(ExitCode::from(ErrorKind::Stopped as u8))),
        (None, signal) => Err(Failure::new(
            ErrorKind::Stopped,
            format!(
                "a rank was killed (signal {}), and the others cannot go on without it; go on with `ssn train --resume` and the \
                 folder of the run, over any number of ranks",
                signal.unwrap_or(0)
            ),
        )),
    }
}
