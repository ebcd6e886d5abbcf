//! What tests of several crates share: kills at system calls, and to be skipped aloud where a tool is missing, which
//! `cargo xtask test` counts and CI refuses.

use std::io::Write;

pub mod strace;

/// The file to which skipped tests are written, a line each; `cargo xtask test` sets it and prints what it holds.
pub const SKIPPED: &str = "SSN_SKIPPED_TESTS";
/// Set where everything must be tested.
pub const NO_SKIPS: &str = "SSN_NO_SKIPPED_TESTS";

/// Says that the running test is skipped, and why: the caller returns then.
///
/// # Panics
/// Where everything must be tested, as in CI.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    assert!(std::env::var_os(NO_SKIPS).is_none(), "{name} cannot be run: {reason}");
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os(SKIPPED) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{name}: {reason}\n").as_bytes()));
        assert!(written.is_ok(), "{written:?}");
    }
}
