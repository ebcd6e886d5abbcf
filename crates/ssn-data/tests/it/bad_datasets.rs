//! Problems of a dataset are reported in sentences, all at once.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ssn_data::parallel::unwatched;
use ssn_data::{Cases, Dataset, DatasetOverrides, FileContent, FilesByCase, check};
use ssn_io::{Geometry, Voxels};

use crate::common::{Folder, array, dict, list, slice, text};

/// What opening the folder says.
fn refusal(folder: &Folder) -> String {
    folder.anonymous(&Dataset::open(folder.path()).unwrap_err().to_string())
}

#[test]
fn folders_that_are_no_datasets() {
    let mut said = vec![];
    let empty = Folder::new();
    said.push(refusal(&empty));
    said.push(empty.anonymous(&Dataset::open(&empty.path().join("absent")).unwrap_err().to_string()));
    let other = Folder::new();
    other.text("notes.txt", "");
    other.text("holiday.mp4", "");
    said.push(refusal(&other));
    said.push(other.anonymous(&Dataset::open(&other.path().join("notes.txt")).unwrap_err().to_string()));
    let parent = Folder::new();
    parent.image("set/images/a.png", [1, 1, 3, 4], 1);
    parent.labels("set/labels/a.png", [1, 3, 4], 2, 1);
    said.push(refusal(&parent));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn csv_files_that_cannot_be_used() {
    let mut said = vec![];
    for content in [
        "id,flair\na,x.nii\n",
        "name,flair,seg\na,x.nii,y.nii\n",
        "id,seg\na,y.nii\n",
        "id,flair,seg\na,x.nii\n",
        "id,flair,seg\na,x.nii,y.nii\nb,\"x.nii,y.nii\nc,x.nii,y.nii\n",
        "id,flair,seg,split\na,x.nii,y.nii,later\n",
        "id,flair,seg\n,x.nii,y.nii\n",
        "id,flair,seg\n",
        "id,flair,seg\na,x.nii,y.nii\n",
    ] {
        let folder = Folder::new();
        folder.text("index.csv", content);
        let error = match Dataset::open(&folder.path().join("index.csv")) {
            Err(error) => error,
            Ok(dataset) => dataset.load(0).unwrap_err(),
        };
        said.push(folder.anonymous(&error.to_string()));
    }
    let folder = Folder::new();
    folder.text("one.csv", "id,flair,seg\n");
    folder.text("two.csv", "id,flair,seg\n");
    said.push(refusal(&folder));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn descriptions_that_cannot_be_used() {
    let mut said = vec![];
    for content in [
        "{",
        "[]",
        r#"{"channel_names": ["T1"], "labels": {"background": 0, "a": 1}}"#,
        r#"{"channel_names": {"1": "T1"}, "labels": {"background": 0, "a": 1}}"#,
        r#"{"channel_names": {"0": "T1"}, "labels": {"background": 0, "whole": [1, 2]}}"#,
        r#"{"channel_names": {"0": "T1"}, "labels": {"background": 0, "a": 2}}"#,
        r#"{"channel_names": {"0": "T1"}, "labels": {"background": 0}}"#,
        r#"{"channel_names": {"0": "T1"}, "labels": {"background": 0, "a": 1}}"#,
        r#"{"modality": {"0": "T1"}, "labels": {"0": "background", "1": "a"}, "training": ["a.nii"]}"#,
    ] {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("imagesTr")).unwrap();
        if content.contains("\"background\": 0}") {
            folder.image("imagesTr/a_0000.nii.gz", [1, 1, 2, 2], 0);
        }
        folder.text("dataset.json", content);
        said.push(refusal(&folder));
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn pickles_that_cannot_be_used() {
    let folder = Folder::new();
    folder.pickle("bad.pickle", &list(vec![]));
    let mut said = vec![refusal(&folder)];
    let mut wrong = vec![];
    let image = || array(Voxels::F32(vec![0.5; 4]), &[2, 2]);
    wrong.push(dict(vec![("image", text("x")), ("masks", list(vec![]))]));
    wrong.push(dict(vec![("image", array(Voxels::F32(vec![0.5; 4]), &[4])), ("masks", list(vec![]))]));
    wrong.push(dict(vec![("image", image())]));
    wrong.push(dict(vec![("image", image()), ("masks", text("x"))]));
    wrong.push(dict(vec![("image", image()), ("masks", list(vec![array(Voxels::U8(vec![0; 6]), &[2, 3])]))]));
    wrong.push(dict(vec![
        ("image", image()),
        ("masks", list(vec![array(Voxels::F32(vec![0.5; 4]), &[2, 2])])),
    ]));
    wrong.push(dict(vec![("image", image()), ("masks", list(vec![]))]));
    for entry in wrong {
        folder.pickle("bad.pickle", &dict(vec![("good", slice("1", 3)), ("worse", entry)]));
        let dataset = Dataset::open(folder.path()).unwrap();
        assert!(dataset.load(0).is_ok());
        said.push(folder.anonymous(&dataset.load(1).unwrap_err().to_string()));
    }
    insta::assert_snapshot!(said.join("\n"));
}

/// One case for each kind of finding.
fn faulty() -> Folder {
    let folder = Folder::new();
    let shape = [2, 3, 4];
    let mut index = String::from("id,t1,t2,seg_0,seg_1,sampling_mask,patient,split\n");
    for (id, part) in [
        ("good", "train"),
        ("leak", "test"),
        ("twice", "train"),
        ("twice", "train"),
        ("damaged", "train"),
        ("absent", "train"),
        ("no_channel", "train"),
        ("not_finite", "train"),
        ("constant", "train"),
        ("size", "train"),
        ("moved", "train"),
        ("label", "train"),
        ("fraction", "train"),
        ("empty_mask", "train"),
        ("empty_labels", "train"),
        ("outside", "train"),
        ("no_labels", "train"),
    ] {
        let name = |part: &str| format!("{id}/{part}.nii.gz");
        folder.image(&name("t1"), [1, 2, 3, 4], 1);
        folder.image(&name("t2"), [1, 2, 3, 4], 2);
        folder.labels(&name("seg"), shape, if id == "empty_labels" { 0 } else { 5 }, 1);
        folder.labels(&name("mask"), shape, if id == "outside" { 3 } else { 23 }, 1);
        let t2 = if id == "no_channel" { String::new() } else { name("t2") };
        let seg = if id == "no_labels" { String::new() } else { name("seg") };
        let patient = if id == "leak" { "good" } else { id };
        index += &format!("{id},{},{t2},{seg},,{},{patient},{part}\n", name("t1"), name("mask"));
    }
    folder.text("damaged/t1.nii.gz", "this is no image");
    std::fs::remove_file(folder.path().join("absent/seg.nii.gz")).unwrap();
    let volume = |name: &str, voxels| folder.volume(name, voxels, [1, 2, 3, 4], Geometry::default());
    volume(
        "not_finite/t2.nii.gz",
        Voxels::F32((0..24).map(|i| if i < 3 { f32::NAN } else { i as f32 }).collect()),
    );
    volume("constant/t1.nii.gz", Voxels::F32(vec![7.5; 24]));
    folder.labels("size/seg.nii.gz", [2, 4, 3], 5, 1);
    let moved = Geometry { spacing: [1.0, 1.0, 1.5], origin: [0.0, 0.2, 0.0], ..Geometry::default() };
    folder.volume("moved/seg.nii.gz", Voxels::U8(vec![1; 24]), [1, 2, 3, 4], moved);
    folder.labels("label/seg.nii.gz", shape, 4, 9);
    volume("fraction/seg.nii.gz", Voxels::F32(vec![0.5; 24]));
    folder.labels("empty_mask/mask.nii.gz", shape, 0, 1);
    folder.text("index.csv", &index);
    folder
}

#[test]
fn every_problem_is_told_at_once() {
    let folder = faulty();
    let known = DatasetOverrides {
        classes: Some(vec!["background".into(), "lesion".into()]),
        ..DatasetOverrides::default()
    };
    let dataset = Dataset::open_with(folder.path(), &known).unwrap();
    let report = check(&dataset, None, &unwatched);
    assert!(!report.is_clean());
    insta::assert_snapshot!("faulty", folder.anonymous(&report.to_string()));
    // A case that the check calls unusable does not load, and the others do.
    for index in 0..dataset.len() {
        let bad = report.findings.iter().any(|finding| {
            finding.case.as_deref() == Some(dataset.id(index))
                && finding.severity == ssn_data::Severity::Error
                && finding.kind != ssn_data::FindingKind::DuplicateId
        });
        assert_eq!(dataset.load(index).is_err(), bad, "{}", dataset.id(index));
    }
    let said: Vec<String> =
        (0..dataset.len()).filter_map(|i| dataset.load(i).err()).map(|e| e.to_string()).collect();
    insta::assert_snapshot!("faulty_loads", folder.anonymous(&said.join("\n")));
}

#[test]
fn what_is_known_must_fit() {
    let folder = Folder::new();
    folder.image("images/a.png", [1, 1, 3, 4], 1);
    folder.labels("labels/a.png", [1, 3, 4], 2, 1);
    folder.labels("labels/b.png", [1, 3, 4], 2, 1);
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let said = |known: DatasetOverrides| {
        folder.anonymous(&Dataset::open_with(folder.path(), &known).unwrap_err().to_string())
    };
    let values = ssn_data::LabelCoding::Values(vec![0, 1, 2]);
    let mut lines = vec![
        said(DatasetOverrides { channels: names(&["imgae"]), ..DatasetOverrides::default() }),
        said(DatasetOverrides { classes: names(&["background"]), ..DatasetOverrides::default() }),
        said(DatasetOverrides {
            classes: names(&["a", "b"]),
            coding: Some(values),
            ..DatasetOverrides::default()
        }),
    ];
    let report = check(&Dataset::open(folder.path()).unwrap(), None, &unwatched);
    lines.push(folder.anonymous(&report.to_string()));
    insta::assert_snapshot!(lines.join("\n"));
}

/// Oddities of a usable dataset are reported too.
#[test]
fn oddities_are_told() {
    let mut said = vec![];
    let mut tell = |folder: &Folder| {
        let report = check(&Dataset::open(folder.path()).unwrap(), None, &unwatched);
        said.push(folder.anonymous(&report.to_string()));
    };
    // Masks that lost their exact values.
    let folder = Folder::new();
    folder.image("images/a.png", [1, 1, 3, 4], 1);
    let values = [0, 0, 3, 250, 255, 255, 9, 0, 0, 0, 255, 254];
    folder.volume("labels/a.png", Voxels::U8(values.to_vec()), [1, 1, 3, 4], Geometry::default());
    tell(&folder);
    // Columns without files, and voxels that are longer than wide.
    let folder = Folder::new();
    let long = Geometry { spacing: [0.5, 0.75, 5.0], ..Geometry::default() };
    folder.volume("a.nii.gz", Voxels::U8((0..24).collect()), [1, 2, 3, 4], long);
    folder.volume("seg.nii.gz", Voxels::U8((0..24).map(|i| i % 2).collect()), [1, 2, 3, 4], long);
    folder.text("index.csv", ",id,age,ct,seg\n0,a,61.5,a.nii.gz,seg.nii.gz\n1,b,,a.nii.gz,seg.nii.gz\n");
    tell(&folder);
    // Several images in the folder of a slice.
    let folder = Folder::new();
    folder.image("0/image_1.png", [1, 1, 3, 4], 1);
    folder.image("0/image_2.png", [1, 1, 3, 4], 1);
    folder.labels("0/label0_.png", [1, 3, 4], 2, 255);
    tell(&folder);
    insta::assert_snapshot!(said.join("\n"));
}

/// The datasets of layouts whose cases are named by files, each with the cases `caseP` and `caseQ`.
fn layouts_of_names() -> Vec<(&'static str, Folder)> {
    let new = |layout, files: &dyn Fn(&Folder, &str)| {
        let folder = Folder::new();
        ["caseP", "caseQ"].into_iter().for_each(|case| files(&folder, case));
        (layout, folder)
    };
    let shape = [1, 2, 3, 4];
    vec![
        new("folder pair", &|folder, case| {
            folder.image(&format!("images/{case}.nii.gz"), shape, 1);
            folder.labels(&format!("labels/{case}.nii.gz"), [2, 3, 4], 5, 1);
        }),
        new("folder pairs in parts", &|folder, case| {
            for part in ["train", "val"] {
                folder.image(&format!("{part}/images/{case}.nii.gz"), shape, 1);
                folder.labels(&format!("{part}/labels/{case}.nii.gz"), [2, 3, 4], 5, 1);
            }
        }),
        new("rater folders", &|folder, case| {
            folder.image(&format!("images/{case}.nii.gz"), shape, 1);
            folder.labels(&format!("anna/{case}.nii.gz"), [2, 3, 4], 5, 1);
            folder.labels(&format!("ben/{case}.nii.gz"), [2, 3, 4], 6, 1);
        }),
        new("folder per case", &|folder, case| {
            folder.image(&format!("{case}/image.nii.gz"), shape, 1);
            folder.labels(&format!("{case}/seg.nii.gz"), [2, 3, 4], 5, 1);
        }),
        new("nnU-Net", &|folder, case| {
            let description = r#"{"channel_names": {"0": "T1"}, "labels": {"background": 0, "lesion": 1}}"#;
            folder.text("dataset.json", description);
            folder.image(&format!("imagesTr/{case}_0000.nii.gz"), shape, 1);
            folder.labels(&format!("labelsTr/{case}.nii.gz"), [2, 3, 4], 5, 1);
        }),
        new("QUBIQ", &|folder, case| {
            folder.image(&format!("Training/{case}/image.nii.gz"), [1, 3, 4, 5], 1);
            folder.labels(&format!("Training/{case}/task01_seg01.nii.gz"), [1, 4, 5], 3, 1);
            folder.labels(&format!("Training/{case}/task01_seg02.nii.gz"), [1, 4, 5], 4, 1);
        }),
        new("BIDS", &|folder, case| {
            folder.image(&format!("sub-{case}/anat/sub-{case}_T1w.nii.gz"), shape, 1);
            let labels = format!("derivatives/anna/sub-{case}/anat/sub-{case}_dseg.nii.gz");
            folder.labels(&labels, [2, 3, 4], 5, 1);
        }),
        new("LIDC", &|folder, case| {
            folder.image(&format!("images/LIDC-0001/{case}.png"), [1, 1, 180, 180], 1);
            for reader in 1..=4 {
                folder.labels(&format!("gt/LIDC-0001/{case}_l{reader}.png"), [1, 180, 180], 9, 255);
            }
        }),
    ]
}

/// Puts bytes that are not UTF-8 for the letters of `caseP` and `caseQ`, in a folder and below.
fn make_names_invalid(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            make_names_invalid(&path);
        }
        let letter = |byte: &u8| match byte {
            b'P' => 0xfe,
            b'Q' => 0xff,
            byte => *byte,
        };
        let name: Vec<u8> = path.file_name().unwrap().as_bytes().iter().map(letter).collect();
        std::fs::rename(&path, path.with_file_name(OsString::from_vec(name))).unwrap();
    }
}

/// As text, all bytes that are not UTF-8 are the same: the label of one case would be that of the other.
#[test]
fn names_that_are_not_utf8_are_refused_in_every_layout() {
    for (layout, folder) in layouts_of_names() {
        assert!(Dataset::open(folder.path()).unwrap().len() >= 2, "{layout}");
        make_names_invalid(folder.path());
        let said = refusal(&folder);
        let named = ["\\xFE", "\\xFF"].iter().any(|byte| said.contains(byte));
        assert!(named && said.contains("is not UTF-8; rename the file or folder"), "{layout}: {said}");
        let images = Dataset::of_images(
            &[folder.path().to_owned()],
            &["image".to_owned()],
            &["background".to_owned(), "lesion".to_owned()],
        );
        let said = images.unwrap_err().to_string();
        assert!(said.contains("is not UTF-8"), "{layout}: {said}");
    }
    let folder = Folder::new();
    folder.labels("caseP_0.nii.gz", [1, 3, 4], 5, 1);
    folder.labels("caseQ_0.nii.gz", [1, 3, 4], 6, 1);
    make_names_invalid(folder.path());
    for given in [folder.path().to_owned(), folder.path().join("{case}_{sample}.nii.gz")] {
        let said = FilesByCase::find(&given, FileContent::Labels, None).unwrap_err().to_string();
        assert!(said.contains("is not UTF-8"), "{}: {said}", given.display());
    }
}
