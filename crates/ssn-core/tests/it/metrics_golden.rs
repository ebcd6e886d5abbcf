//! GED² and diversities agree with the reference implementation of the paper's authors.

#[path = "../golden/compare.rs"]
mod compare;

use std::path::Path;

#[test]
fn ged_equals_the_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    assert_eq!(compare::table(&folder).unwrap(), (6, true));
}
