//! What tests of several crates share: kills at system calls, processes, distributions of random numbers, pages made of the
//! code, and to be skipped aloud where a tool is missing, which `cargo xtask test` counts and CI refuses.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::io::Write;
use std::path::Path;

pub mod dicom;
#[cfg(feature = "noise")]
pub mod noise;
pub mod process;
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

/// Compares a page of `docs/reference` with what the code makes of it; with `SSN_UPDATE_DOCS=1`, writes it first.
///
/// # Panics
/// If they differ.
pub fn assert_page_is_up_to_date(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("SSN_UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/reference/{name} is not that of the code; SSN_UPDATE_DOCS=1 writes it anew");
}

/// Compares a table of a page of `docs/reference`, between `<!-- table: NAME -->` and `<!-- end -->`, with `table`; with
/// `SSN_UPDATE_DOCS=1`, writes it first.
///
/// # Panics
/// If they differ, or the page has no such table.
pub fn assert_table_is_up_to_date(page: &str, name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let mark = format!("<!-- table: {name} -->\n");
    let (before, rest) = text.split_once(&mark).expect("the mark of the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the end of the table");
    assert_page_is_up_to_date(page, &format!("{before}{mark}{table}<!-- end -->{after}"));
}
