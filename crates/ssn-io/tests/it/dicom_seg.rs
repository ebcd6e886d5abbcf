//! DICOM segmentations become label maps, and what is none is refused with advice.

use std::path::PathBuf;

use proptest::prelude::*;
use ssn_io::{Limits, dicom, read, read_segments};
use ssn_testing::dicom::Segmentation;
use tempfile::TempDir;

use crate::changed_bytes::{change, changed};

/// Two segments in slices of 3 × 5 pixels at z = 2, 4 and 8; the slice at 6 is missing.
fn segmentation() -> Segmentation {
    let marks = |first: usize, count: usize| (0..15).map(|at| (first..first + count).contains(&at)).collect();
    Segmentation {
        size: [3, 5],
        spacing: [0.5, 0.25],
        segments: vec![(1, "Tumor"), (3, "Vessel")],
        frames: vec![
            (1, 4.0, marks(2, 4)),
            (1, 2.0, marks(0, 3)),
            (3, 4.0, marks(9, 2)),
            (3, 8.0, marks(14, 1)),
        ],
        is_fractional: false,
    }
}

fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.dcm");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn message(segmentation: &Segmentation) -> String {
    let (_folder, path) = written(&segmentation.encode());
    let error = read(&path, &Limits::default()).unwrap_err().to_string();
    error.replace(&path.display().to_string(), "FILE")
}

#[test]
fn frames_are_slices_of_a_label_map() {
    let mut expected = vec![0; 60];
    expected[..3].fill(1);
    expected[17..21].fill(1);
    expected[24..26].fill(3);
    expected[59] = 3;
    for is_fractional in [false, true] {
        let (_folder, path) = written(&Segmentation { is_fractional, ..segmentation() }.encode());
        assert!(dicom::has_labels(&path));
        let image = read(&path, &Limits::default()).unwrap();
        assert_eq!((image.shape, image.to_labels().unwrap().data), ([1, 4, 3, 5], expected.clone()));
        assert_eq!((image.geometry.spacing, image.geometry.origin), ([0.25, 0.5, 2.0], [0.0, 0.0, 2.0]));
        let segments = read_segments(&path, &Limits::default()).unwrap();
        let segments: Vec<_> =
            segments.iter().map(|segment| (segment.name.as_str(), segment.label)).collect();
        assert_eq!(segments, [("Tumor", 1), ("Vessel", 3)]);
    }
}

#[test]
fn a_segmentation_alone_in_a_folder_is_read_and_next_to_slices_is_none_of_them() {
    let (folder, path) = written(&segmentation().encode());
    assert!(dicom::is_series_folder(folder.path()) && dicom::has_labels(folder.path()));
    assert_eq!(read(folder.path(), &Limits::default()).unwrap(), read(&path, &Limits::default()).unwrap());
    std::fs::copy(&path, folder.path().join("other.dcm")).unwrap();
    assert!(!dicom::is_series_folder(folder.path()), "label maps of two cases");
}

#[test]
fn what_is_no_label_map_is_refused_with_advice() {
    let change = |change: &dyn Fn(&mut Segmentation)| {
        let mut changed = segmentation();
        change(&mut changed);
        message(&changed)
    };
    insta::assert_snapshot!(
        [
            change(&|s| s.frames[2].2[3] = true),
            change(&|s| s.frames[0].0 = 300),
            change(&|s| s.frames[0].0 = 0),
            change(&|s| s.frames[0].1 = 4.9),
            change(&|s| s.frames[3].2.truncate(1)),
            change(&|s| s.frames.clear()),
            change(&|s| s.size = [30, 5]),
        ]
        .join("\n")
    );
    let bytes = segmentation().encode();
    let place = bytes.windows(4).position(|part| part == b"SEG ").unwrap();
    let mut contours = bytes;
    contours.splice(place - 2..place + 4, *b"\x08\0RTSTRUCT");
    let (_folder, path) = written(&contours);
    let error = read(&path, &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("RTSTRUCT, contours instead of voxels") && error.contains("3D Slicer"), "{error}");
    assert!(dicom::has_labels(&path));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn changed_segmentations_never_panic(changes in prop::collection::vec(change(any::<u8>()), 1..4)) {
        let (_folder, path) = written(&changed(segmentation().encode(), &changes));
        let _ = read(&path, &Limits::default());
        let _ = read_segments(&path, &Limits::default());
    }
}
