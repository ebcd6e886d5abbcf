//! DICOM segmentations as labels, in files or in folders of their own.

use ssn_data::{Cases, Dataset, Layout};

use crate::common::Folder;

#[test]
fn segmentations_are_put_onto_the_grid_of_their_image() {
    for (labels, layout, raters) in [
        (&["labels/case.dcm"][..], Layout::FolderPair, 1),
        (&["labels/case/1-1.dcm"], Layout::FolderPair, 1),
        (&["anna/case/1-1.dcm", "ben/case/1-1.dcm"], Layout::RaterFolders, 2),
    ] {
        let folder = Folder::new();
        for (case, z) in [("1", 1), ("2", 3)] {
            folder.series(&format!("images/case{case}"), "t1", 6);
            let labels = labels.iter().map(|label| label.replace("case", &format!("case{case}")));
            labels.for_each(|label| folder.segmentation(&label, z));
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!((dataset.layout, dataset.len()), (layout, 2), "{labels:?}");
        assert_eq!(dataset.classes, ["background", "vessel", "tumor"]);
        for (case, z) in [(0, 1), (1, 3)] {
            let mut expected = vec![0; 6 * 12];
            expected[z * 12 + 5..][..2].fill(2);
            expected[(z + 1) * 12 + 11] = 1;
            assert_eq!(dataset.load(case).unwrap().raters, vec![expected; raters], "{labels:?}");
        }
        assert_eq!(dataset.left_out(), []);
    }
}

#[test]
fn a_segmentation_beyond_its_image_is_an_error() {
    let folder = Folder::new();
    folder.series("images/case1", "t1", 6);
    folder.segmentation("labels/case1.dcm", 5);
    let error = Dataset::open(folder.path()).unwrap().load(0).unwrap_err().to_string();
    assert!(error.contains("the size is 2 × 3 × 4") && error.contains("case1.dcm"), "{error}");
}
