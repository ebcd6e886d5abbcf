//! Pages of `docs/reference` that tests make of the code, included by these tests.

use std::path::Path;

/// Compares a page with what the code makes of it; with `SSN_UPDATE_DOCS=1`, writes it first.
pub fn is_that_of_the_code(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("SSN_UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/reference/{name} is not that of the code; SSN_UPDATE_DOCS=1 writes it anew");
}
