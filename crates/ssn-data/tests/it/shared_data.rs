//! Real datasets go through recognition and check without a manual step. They are not part of the repository: run these tests
//! with `--run-ignored all` where they lie beside it.

use std::path::{Path, PathBuf};

use ssn_data::parallel::unwatched;
use ssn_data::{Cases, CheckReport, Dataset, Layout, Split, check};

/// A dataset in the folder of shared material.
fn shared(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name)
}

fn opened(name: &str) -> (Dataset, CheckReport) {
    let dataset = Dataset::open(&shared(name)).unwrap();
    let report = check(&dataset, None, &unwatched);
    println!("{report}");
    assert!(report.is_clean(), "{report}");
    (dataset, report)
}

#[test]
#[ignore = "needs the datasets beside the repository"]
fn brain_growth() {
    let (dataset, report) = opened("brain_growth");
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcPickle, 27));
    assert_eq!((dataset.classes.len(), report.statistics.raters), (2, [7, 7]));
    let case = dataset.load(0).unwrap();
    assert_eq!((case.shape, case.channels, case.raters.len()), ([1, 128, 128], 1, 7));
}

#[test]
#[ignore = "needs the datasets beside the repository"]
fn lidc28() {
    let (dataset, report) = opened("lidc28");
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcJpeg, 19));
    assert_eq!(report.statistics.raters, [4, 4]);
    assert_eq!(report.statistics.sizes, [([1, 128, 128], 19)]);
    assert_eq!(dataset.channels, ["image"]);
}

/// The figures are those of the dataset's own description.
#[test]
#[ignore = "needs the datasets beside the repository"]
fn lidc_sim() {
    let (dataset, report) = opened("lidc_sim");
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcPickle, 2400));
    let expected = [
        (Split::Train, 1536, "0.371", "0.383"),
        (Split::Validation, 384, "0.368", "0.378"),
        (Split::Test, 480, "0.367", "0.378"),
    ];
    for (part, (split, cases, empty, diversity)) in report.statistics.parts.iter().zip(expected) {
        assert_eq!((part.split, part.cases), (split, cases));
        assert_eq!(format!("{:.3}", part.agreement.empty_fraction), empty, "{split}");
        assert_eq!(format!("{:.3}", part.agreement.expert_diversity), diversity, "{split}");
    }
    assert_eq!(report.statistics.parts.len(), 3);
}

#[test]
#[ignore = "needs the datasets beside the repository"]
fn brats2015() {
    let (dataset, report) = opened("brats2015");
    assert_eq!((dataset.layout, dataset.len()), (Layout::CaseFolders, 4));
    assert_eq!(dataset.channels, ["Flair", "T1c"]);
    assert_eq!(dataset.classes.len(), 5);
    assert_eq!(report.statistics.sizes, [([155, 240, 240], 4)]);
    let parts: Vec<_> = report.statistics.parts.iter().map(|part| (part.split, part.cases)).collect();
    assert_eq!(parts, [(Split::Train, 2), (Split::Validation, 2)]);
    let case = dataset.load(0).unwrap();
    assert!(case.mask.is_some());
}
