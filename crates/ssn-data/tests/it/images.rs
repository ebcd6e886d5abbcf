//! Images without labels are found, whatever their form, and labels that are there come along.

use std::path::PathBuf;

use ssn_data::parallel::unwatched;
use ssn_data::{Case, Cases, DataConfig, Dataset, FindingKind, LabelPolicy, Layout, Result, check};
use ssn_io::Voxels;

use crate::common::{Folder, array, dict, list};

const SHAPE: [usize; 4] = [1, 2, 3, 4];

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn open(paths: &[PathBuf], channels: &[&str]) -> Result<Dataset> {
    Dataset::of_images(paths, &texts(channels), &texts(&["background", "lesion"]))
}

/// The images below a folder, or in some of its files.
fn opened(folder: &Folder, below: &[&str], channels: &[&str]) -> Dataset {
    let paths: Vec<PathBuf> = below.iter().map(|name| folder.path().join(name)).collect();
    open(&paths, channels).unwrap()
}

fn ids(dataset: &Dataset) -> Vec<&str> {
    dataset.entries.iter().map(|entry| entry.id.as_str()).collect()
}

/// Which numbers the images of the channels of a case were made from, if it has no rater.
fn numbers(case: &Case) -> Vec<usize> {
    assert!(case.raters.is_empty());
    let number = |channel: &[f32]| (0..97).find(|number| (number * 13 % 97) as f32 == channel[0]).unwrap();
    case.image.chunks(case.voxels()).map(number).collect()
}

#[test]
fn a_file_with_all_channels() {
    let folder = Folder::new();
    for (name, number) in [("b10.nii.gz", 1), ("b9.nii.gz", 2), ("a.b.nii", 3)] {
        folder.image(name, [2, 2, 3, 4], number);
    }
    let dataset = opened(&folder, &[""], &["t1", "t2"]);
    assert_eq!((ids(&dataset), dataset.layout), (vec!["a.b", "b9", "b10"], Layout::Images));
    let case = dataset.load(2).unwrap();
    assert_eq!((case.channels, case.shape, case.raters.len(), case.mask), (2, [2, 3, 4], 0, None));
    let some = opened(&folder, &["b10.nii.gz", "a.b.nii", "b10.nii.gz"], &["t1", "t2"]);
    assert_eq!(ids(&some), ["a.b", "b10"]);
    folder.image("color/slice_0001.png", [3, 1, 3, 4], 1);
    folder.image("color/slice_0002.png", [3, 1, 3, 4], 2);
    let color = opened(&folder, &["color"], &["channel_0", "channel_1", "channel_2"]);
    assert_eq!((ids(&color), color.load(1).unwrap().channels), (vec!["slice_0001", "slice_0002"], 3));
}

#[test]
fn numbered_files_of_channels() {
    let folder = Folder::new();
    for (id, number) in [("lesion_2", 1), ("lesion_10", 5)] {
        folder.image(&format!("imagesTs/{id}_0000.nii.gz"), SHAPE, number);
        folder.image(&format!("imagesTs/{id}_0001.nii.gz"), SHAPE, number + 1);
    }
    folder.labels("imagesTs/lesion_10_mask.nii.gz", [2, 3, 4], 7, 1);
    let dataset = opened(&folder, &["imagesTs"], &["t1", "t2"]);
    assert_eq!(ids(&dataset), ["lesion_2", "lesion_10"]);
    let cases = [0, 1].map(|index| dataset.load(index).unwrap());
    assert_eq!([numbers(&cases[0]), numbers(&cases[1])], [[1, 2], [5, 6]]);
    let inside = |case: &Case| case.mask.as_ref().map(|mask| mask.iter().filter(|m| **m == 1).count());
    assert_eq!([inside(&cases[0]), inside(&cases[1])], [None, Some(7)]);
    assert_eq!(dataset.findings.len(), 1, "a plain mask is told");
    let files = ["imagesTs/lesion_2_0001.nii.gz", "imagesTs/lesion_2_0000.nii.gz"];
    assert_eq!(numbers(&opened(&folder, &files, &["t1", "t2"]).load(0).unwrap()), [1, 2]);
}

/// With one channel, `_0000` is no part of the id, and other numbers are those of slices.
#[test]
fn numbers_of_a_single_channel() {
    let folder = Folder::new();
    folder.image("channels/a_0000.png", [1, 1, 3, 4], 1);
    folder.image("channels/b_0000.png", [1, 1, 3, 4], 1);
    assert_eq!(ids(&opened(&folder, &["channels"], &["image"])), ["a", "b"]);
    folder.image("slices/a_0000.png", [1, 1, 3, 4], 1);
    folder.image("slices/a_0001.png", [1, 1, 3, 4], 1);
    assert_eq!(ids(&opened(&folder, &["slices"], &["image"])), ["a_0000", "a_0001"]);
}

#[test]
fn files_named_after_channels() {
    let folder = Folder::new();
    for (place, number) in [("HGG/p1", 1), ("LGG/p1", 11)] {
        folder.image(&format!("deep/{place}/p1_Flair_norm.nii.gz"), SHAPE, number);
        folder.image(&format!("deep/{place}/p1_T1_norm.nii.gz"), SHAPE, number + 1);
        folder.labels(&format!("deep/{place}/brainmask.nii.gz"), [2, 3, 4], 9, 1);
    }
    // The order is that of the model, and other channels do not matter.
    let dataset = opened(&folder, &["deep"], &["t1", "flair"]);
    assert_eq!(ids(&dataset), ["HGG/p1", "LGG/p1"]);
    assert_eq!([0, 1].map(|index| numbers(&dataset.load(index).unwrap())), [[2, 1], [12, 11]]);
    assert!(dataset.load(0).unwrap().mask.is_some() && dataset.findings.is_empty());
    for (name, number) in [("flair", 1), ("t1", 2), ("t1ce", 3), ("t2", 4)] {
        folder.image(&format!("cases/x/{name}.nii.gz"), SHAPE, number);
        folder.image(&format!("flat/y_{name}.nii.gz"), SHAPE, number);
    }
    let dataset = opened(&folder, &["cases", "flat"], &["t2", "t1"]);
    assert_eq!(ids(&dataset), ["x", "y"]);
    assert_eq!([0, 1].map(|index| numbers(&dataset.load(index).unwrap())), [[4, 2], [4, 2]]);
}

#[test]
fn folders_with_one_image() {
    let folder = Folder::new();
    for case in ["case01", "case02"] {
        folder.image(&format!("{case}/image.nii.gz"), [1, 3, 4, 5], 1);
        folder.labels(&format!("{case}/brain_mask.nii.gz"), [3, 4, 5], 9, 1);
    }
    let dataset = opened(&folder, &[""], &["image"]);
    assert_eq!((ids(&dataset), dataset.load(0).unwrap().shape), (vec!["case01", "case02"], [3, 4, 5]));
    assert!(dataset.load(0).unwrap().mask.is_some());
    // QUBIQ stores channels along the third axis.
    let files = ["case01/image.nii.gz", "case02/image.nii.gz"];
    let dataset = opened(&folder, &files, &["channel_0", "channel_1", "channel_2"]);
    let case = dataset.load(1).unwrap();
    assert_eq!((ids(&dataset), case.channels, case.shape), (vec!["case01", "case02"], 3, [1, 4, 5]));
    assert_eq!(dataset.findings.len(), 1, "an axis that is read as channels is told");
}

#[test]
fn labels_beside_images_come_along() {
    let folder = Folder::new();
    for id in ["a", "b"] {
        folder.image(&format!("{id}/{id}_t1.nii.gz"), SHAPE, 1);
    }
    folder.labels("b/b_seg_2.nii.gz", [2, 3, 4], 2, 1);
    folder.labels("b/b_seg_1.nii.gz", [2, 3, 4], 1, 1);
    folder.labels("b/b_mask.nii.gz", [2, 3, 4], 9, 1);
    let dataset = opened(&folder, &[""], &["t1"]);
    let marked = |rater: &Vec<u8>| rater.iter().filter(|label| **label == 1).count();
    let case = dataset.load(1).unwrap();
    assert_eq!(case.raters.iter().map(marked).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((case.mask.is_some(), dataset.load(0).unwrap().raters.len()), (true, 0));
}

/// What looks like labels by its name is still an image where no other image has that name.
#[test]
fn names_that_could_be_those_of_labels() {
    let folder = Folder::new();
    for name in
        ["flat/control_1.png", "flat/tumour_1.png", "flat/tumour_2.png", "cases/a1/a1.png", "cases/b/ct.png"]
    {
        folder.image(name, [1, 1, 3, 4], 1);
    }
    assert_eq!(ids(&opened(&folder, &["flat"], &["image"])), ["control_1", "tumour_1", "tumour_2"]);
    folder.labels("cases/a1/tumour.png", [1, 3, 4], 2, 1);
    folder.labels("cases/b/seg.png", [1, 3, 4], 2, 1);
    let dataset = opened(&folder, &["cases"], &["image"]);
    assert_eq!(ids(&dataset), ["a1", "ct"]);
    assert_eq!([0, 1].map(|index| dataset.load(index).unwrap().raters.len()), [1, 1]);
}

#[test]
fn the_authors_csv_without_labels() {
    let folder = Folder::new();
    folder.image("f.nii.gz", SHAPE, 1);
    folder.image("t.nii.gz", SHAPE, 2);
    folder.labels("m.nii.gz", [2, 3, 4], 5, 1);
    folder.text("test.csv", "id,flair,t1,sampling_mask\np,f.nii.gz,t.nii.gz,m.nii.gz\n");
    let dataset = opened(&folder, &["test.csv"], &["t1", "FLAIR"]);
    let case = dataset.load(0).unwrap();
    assert_eq!((ids(&dataset), numbers(&case), case.mask.is_some()), (vec!["p"], vec![2, 1], true));
    assert!(dataset.findings.is_empty());
    // Channels of other names are taken in their order, with a note.
    let dataset = opened(&folder, &["test.csv"], &["channel_0", "channel_1"]);
    assert_eq!((numbers(&dataset.load(0).unwrap()), dataset.findings.len()), (vec![1, 2], 1));
    // An index and images beside it are one dataset where their channels are stored alike.
    folder.image("more/q_0000.nii.gz", SHAPE, 3);
    folder.image("more/q_0001.nii.gz", SHAPE, 4);
    let dataset = opened(&folder, &["test.csv", "more"], &["flair", "t1"]);
    assert_eq!((ids(&dataset), numbers(&dataset.load(1).unwrap())), (vec!["p", "q"], vec![3, 4]));
}

#[test]
fn nnunet_and_decathlon_without_labels() {
    let folder = Folder::new();
    folder.text(
        "nn/dataset.json",
        r#"{"channel_names": {"0": "T1", "1": "T2"}, "labels": {"background": 0, "lesion": 1},
            "file_ending": ".nii.gz"}"#,
    );
    folder.text(
        "msd/dataset.json",
        r#"{"modality": {"0": "T1", "1": "T2"}, "labels": {"0": "background", "1": "lesion"},
            "training": [{"image": "./imagesTr/l.nii.gz", "label": "./labelsTr/l.nii.gz"},
                         {"image": "./imagesTr/m.nii.gz", "label": "./labelsTr/m.nii.gz"}],
            "test": ["./imagesTs/t.nii.gz"]}"#,
    );
    for (id, number) in [("imagesTr/l", 1), ("imagesTr/m", 3), ("imagesTs/t", 5)] {
        folder.image(&format!("nn/{id}_0000.nii.gz"), SHAPE, number);
        folder.image(&format!("nn/{id}_0001.nii.gz"), SHAPE, number + 1);
        folder.image(&format!("msd/{id}.nii.gz"), [2, 2, 3, 4], number);
    }
    for set in ["nn", "msd"] {
        folder.labels(&format!("{set}/labelsTr/l.nii.gz"), [2, 3, 4], 5, 1);
        let dataset = opened(&folder, &[set], &["t1", "t2"]);
        assert_eq!(ids(&dataset), ["l", "m", "t"]);
        let raters = [0, 1, 2].map(|index| dataset.load(index).unwrap().raters.len());
        assert_eq!(raters, [1, 0, 0], "{set}");
        // For learning, test images are none, and missing labels are an error.
        let dataset = Dataset::open(&folder.path().join(set)).unwrap();
        assert_eq!((ids(&dataset), dataset.load(0).is_ok()), (vec!["l", "m"], true));
        assert!(dataset.load(1).is_err());
        assert_eq!(check(&dataset, None, &unwatched).errors, 1);
        assert!(dataset.with_labels(LabelPolicy::Optional).load_raw(1).unwrap().raters.is_empty());
    }
    std::fs::remove_dir_all(folder.path().join("nn/imagesTr")).unwrap();
    let dataset = opened(&folder, &["nn/dataset.json"], &["T2"]);
    assert_eq!((ids(&dataset), numbers(&dataset.load(0).unwrap())), (vec!["t"], vec![6]));
}

#[test]
fn records_without_labels() {
    let folder = Folder::new();
    let image = array(Voxels::F32(vec![0.5; 4]), &[2, 2]);
    folder.pickle("new.pickle", &dict(vec![("a", dict(vec![("image", image), ("masks", list(vec![]))]))]));
    let dataset = opened(&folder, &["new.pickle"], &["image"]);
    assert!(dataset.load(0).unwrap().raters.is_empty());
    let (_, findings) = Dataset::open(&folder.path().join("new.pickle")).unwrap().inspect(0);
    assert_eq!(findings[0].kind, FindingKind::MissingLabels);
}

#[test]
fn labels_of_images_are_read_by_the_coding_of_a_config() {
    let folder = Folder::new();
    folder.image("new/a.png", [1, 1, 3, 4], 1);
    folder.labels("new/a_seg.png", [1, 3, 4], 2, 255);
    let mut dataset = opened(&folder, &["new"], &["image"]);
    let config = DataConfig::parse("[data]\npath = \"x\"\nlabel_values = [0, 255]").unwrap();
    dataset.reading.coding = config.coding().unwrap();
    let case = dataset.load(0).unwrap();
    assert_eq!(case.raters[0].iter().filter(|label| **label == 1).count(), 2);
}

/// A folder of DICOM files is an image, for prediction and in layouts with folders of images.
#[test]
fn series_of_slices_are_images() {
    let folder = Folder::new();
    folder.series("study/p.1", "t1", 3);
    folder.series("study/p.2/inner", "t1", 2);
    folder.text("study/README", "no image");
    let dataset = opened(&folder, &["study"], &["image"]);
    assert_eq!(ids(&dataset), ["inner", "p.1"]);
    assert!(dataset.entries.iter().all(|entry| entry.has_geometry()));
    let case = dataset.load(1).unwrap();
    assert_eq!((case.shape, case.geometry.spacing, case.image[12]), ([3, 3, 4], [0.5, 0.5, 1.0], 13.0));
    let hash = dataset.image_sha256(1).unwrap();
    assert_eq!(hash, opened(&folder, &["study/p.1"], &["image"]).image_sha256(0).unwrap());
    folder.slice("study/p.1", "t1", 3);
    assert_ne!(hash, opened(&folder, &["study/p.1"], &["image"]).image_sha256(0).unwrap());
    let notes: Vec<_> = dataset.findings.iter().map(|finding| finding.reason.clone()).collect();
    insta::assert_snapshot!(notes.join("\n"));
    // Channels of a model in folders of their names.
    folder.series("many/a/t1", "t1", 2);
    folder.series("many/a/flair", "flair", 2);
    folder.slice("many/a/flair", "flair", 2);
    std::fs::remove_file(folder.path().join("many/a/flair/5flair0")).unwrap();
    assert_eq!(numbers(&opened(&folder, &["many"], &["flair", "t1"]).load_raw(0).unwrap()), [1, 0]);
}

#[test]
fn one_of_several_series_is_chosen() {
    let folder = Folder::new();
    folder.series("p", "scout", 1);
    folder.series("p", "t1", 2);
    let error = open(&[folder.path().join("p")], &["image"]).unwrap_err();
    insta::assert_snapshot!(folder.anonymous(&error.to_string()));
    let dataset = opened(&folder, &["p#T1"], &["image"]);
    assert_eq!((ids(&dataset), dataset.load(0).unwrap().shape), (vec!["p"], [2, 3, 4]));
    assert!(dataset.image_sha256(0).is_ok());
}

#[test]
fn series_lie_beside_labels() {
    let folder = Folder::new();
    for id in ["a", "b.2"] {
        folder.series(&format!("pair/images/{id}"), "t1", 2);
        folder.series(&format!("cases/{id}/t1"), "t1", 2);
        folder.labels(&format!("pair/labels/{id}.nii.gz"), [2, 3, 4], 5, 1);
        folder.labels(&format!("cases/{id}/seg.seg.nrrd"), [2, 3, 4], 5, 1);
    }
    for set in ["pair", "cases"] {
        let dataset = Dataset::open(&folder.path().join(set)).unwrap();
        let case = dataset.load_raw(1).unwrap();
        assert_eq!((ids(&dataset), case.raters.len(), case.shape), (vec!["a", "b.2"], 1, [2, 3, 4]), "{set}");
        assert!(dataset.left_out().is_empty(), "{set}");
    }
    folder.series("pair/other", "t2", 2);
    let left_out = Dataset::open(&folder.path().join("pair")).unwrap().left_out();
    assert!(left_out.len() == 1 && left_out[0].reason.contains("other/"), "{left_out:?}");
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new();
    for name in
        ["n/a_0000", "n/a_0001", "n/a_0002", "c/p/flair", "c/p/t2", "w/a", "w/b_0", "x/s/i/a", "y/s/i/a"]
    {
        folder.image(&format!("{name}.nii.gz"), SHAPE, 1);
    }
    folder.image("w/a.png", [1, 1, 3, 4], 1);
    folder.image("rgb/a.png", [3, 1, 3, 4], 1);
    folder.text("none/notes.txt", "");
    folder.text("index.csv", "id,flair,t1,t2\na,n/a_0000.nii.gz,n/a_0001.nii.gz,n/a_0002.nii.gz\n");
    folder.text("other.csv", "id,t1,flair\nz,n/a_0000.nii.gz,n/a_0001.nii.gz\n");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let said = |below: &[&str], channels: &[&str]| {
        let paths: Vec<PathBuf> = below.iter().map(|name| folder.path().join(name)).collect();
        let error = open(&paths, channels).and_then(|dataset| dataset.load(0)).unwrap_err();
        folder.anonymous(&error.to_string())
    };
    let brats = ["flair", "t1"];
    insta::assert_snapshot!(
        [
            said(&[], &brats),
            said(&["absent"], &brats),
            said(&["empty"], &brats),
            said(&["none"], &brats),
            said(&["none/notes.txt"], &brats),
            said(&["n"], &brats),
            said(&["n/a_0000.nii.gz"], &brats),
            said(&["c"], &brats),
            said(&["w"], &["image"]),
            said(&["rgb"], &["image"]),
            said(&["w/b_0.nii.gz"], &brats),
            said(&["x", "y"], &["image"]),
            said(&["index.csv"], &["t1", "t1ce", "t2"]),
            said(&["index.csv"], &["image"]),
            said(&["index.csv", "other.csv"], &brats),
        ]
        .join("\n")
    );
}
