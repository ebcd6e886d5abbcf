//! Our networks are the authors' networks: outputs, loss and gradients agree with golden values.

use std::path::{Path, PathBuf};

use ssn_nn::{Execution, Model, ModelConfig, Precision};

use crate::compare;

fn check(folder: &Path, name: &str) {
    let ([golden, ours], lines) = compare::compare(folder, name).unwrap();
    assert_eq!(golden, ours, "parameters of {name}");
    assert_eq!(lines.len(), 2 * (3 + 3 + 1 + 6), "every value of {name} was compared");
    for line in lines {
        let compare::Line { what, precision, difference, allowed, relative } = &line;
        assert!(
            line.agrees(),
            "{name} {precision:?} {what}: {difference:e} > {allowed:e}, relative: {relative}"
        );
    }
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn small_network_in_two_dimensions() {
    check(&here(), "small_2d");
}

#[test]
fn small_network_in_three_dimensions() {
    check(&here(), "small_3d");
}

#[test]
#[ignore = "needs the golden values beside the repository"]
fn network_of_the_brats_experiments() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/deepmedic");
    check(&folder, "brats_full");
}

#[test]
fn parameter_counts_are_the_papers() {
    let count = |config: &ModelConfig| {
        Model::new(config, Execution::cpu(Precision::F32), 0).unwrap().parameters().count()
    };
    assert_eq!(count(&ModelConfig::lidc()), 10_320_568);
    assert_eq!(count(&ModelConfig::brats()), 1_051_039);
    assert_eq!(count(&ModelConfig::brats_deterministic()), 1_037_091);
}
