//! Real datasets go through recognition and check without a manual step; skipped where they are not there.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::{Path, PathBuf};

use ssn_data::parallel::unwatched;
use ssn_data::{Cases, CheckReport, Dataset, Layout, Split, check};

/// A dataset in the folder of shared material, if it is there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

fn opened(name: &str) -> Option<(Dataset, CheckReport)> {
    let dataset = Dataset::open(&shared(name)?).unwrap();
    let report = check(&dataset, None, &unwatched);
    println!("{report}");
    assert!(report.is_clean(), "{report}");
    Some((dataset, report))
}

#[test]
fn brain_growth() {
    let Some((dataset, report)) = opened("brain_growth") else { return };
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcPickle, 27));
    assert_eq!((dataset.classes.len(), report.statistics.raters), (2, [7, 7]));
    let case = dataset.load(0).unwrap();
    assert_eq!((case.shape, case.channels, case.raters.len()), ([1, 128, 128], 1, 7));
}

#[test]
fn lidc28() {
    let Some((dataset, report)) = opened("lidc28") else { return };
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcJpeg, 19));
    assert_eq!(report.statistics.raters, [4, 4]);
    assert_eq!(report.statistics.sizes, [([1, 128, 128], 19)]);
    assert_eq!(dataset.channels, ["image"]);
}

/// The figures are those of the dataset's own description.
#[test]
fn lidc_sim() {
    let Some((dataset, report)) = opened("lidc_sim") else { return };
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
fn brats2015() {
    let Some((dataset, report)) = opened("brats2015") else { return };
    assert_eq!((dataset.layout, dataset.len()), (Layout::CaseFolders, 4));
    assert_eq!(dataset.channels, ["Flair", "T1c"]);
    assert_eq!(dataset.classes.len(), 5);
    assert_eq!(report.statistics.sizes, [([155, 240, 240], 4)]);
    let parts: Vec<_> = report.statistics.parts.iter().map(|part| (part.split, part.cases)).collect();
    assert_eq!(parts, [(Split::Train, 2), (Split::Validation, 2)]);
    let case = dataset.load(0).unwrap();
    assert!(case.mask.is_some());
}
