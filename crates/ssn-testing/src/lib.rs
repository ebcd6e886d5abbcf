//! What tests of several crates share: kills at system calls, and to be skipped aloud where a tool is missing, which
//! `cargo xtask test` counts and CI refuses.

use std::io::Write;

pub mod strace;

/// The file to which skipped tests are written, a line each; `cargo xtask test` sets it and prints what it holds.
pub const SKIPPED: &str = "SSN_SKIPPED_TESTS";
/// Set where all tools must be installed.
pub const ALL_TOOLS: &str = "SSN_TESTS_NEED_ALL_TOOLS";

/// Says that the running test is skipped for the lack of a tool: the caller returns then.
///
/// # Panics
/// Where every tool must be there, as in CI.
pub fn skip_without(tool: &str) {
    let is_needed = std::env::var_os(ALL_TOOLS).is_some();
    assert!(!is_needed, "{} needs {tool}, which is not installed", name());
    skip(&format!("{tool} is not installed"));
}

/// Says that the running test is skipped because this user or system may not do what it needs: the caller returns then.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os(SKIPPED) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{}: {reason}\n", name()).as_bytes()));
        assert!(written.is_ok(), "{written:?}");
    }
}

/// The name of the running test.
fn name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}
