//! Processes that tests start.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to its standard output, if that was piped.
    pub stdout: String,
    /// What it wrote to its standard error, if that was piped.
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Runs a command to its end.
///
/// # Panics
/// If it cannot be started.
pub fn run_to_end(command: &mut Command) -> Ended {
    command.output().unwrap().into()
}

/// Waits for the end of a process.
///
/// # Panics
/// If the system refuses.
pub fn wait_for_end(child: Child) -> Ended {
    child.wait_with_output().unwrap().into()
}

/// Sends a signal to a process, or to a group of processes if the number is negative. Returns `true` if there was one.
///
/// # Panics
/// If there is no shell.
pub fn send(signal: &str, process: i64) -> bool {
    let kill = format!("kill -{signal} {process} 2>/dev/null");
    Command::new("sh").args(["-c", &kill]).status().unwrap().success()
}

/// Writes a program, which can be started at once.
///
/// Another process writes it: what this one starts meanwhile, in other tests, would hold the file open for a moment, and a file
/// that is open for writing cannot be executed.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(path: &Path, bytes: &[u8]) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(child.wait().unwrap().success(), "{}", path.display());
}

/// Returns the most memory that this process ever had, in KiB.
///
/// # Panics
/// If the system does not say it.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Names the test that has the process for itself.
const ALONE: &str = "SSN_TEST_ALONE";

/// Runs the body of a test in a process of its own: the test program starts itself again with this test only, `MODULE::NAME`.
///
/// For what belongs to a process as a whole, such as its memory: `cargo test` runs the tests of a program side by side in one.
///
/// # Panics
/// If the body panics, or there is no such test.
pub fn run_alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended =
        run_to_end(command.args([test, "--exact", "--nocapture", "--include-ignored"]).env(ALONE, test));
    let passed = ended.code == Some(0) && ended.stdout.contains(" 1 passed");
    assert!(passed, "{test} by itself:\n{}{}", ended.stdout, ended.stderr);
    print!("{}{}", ended.stdout, ended.stderr);
}
