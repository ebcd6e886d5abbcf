//! A small dataset of every layout is recognized and loaded right.

use ssn_data::parallel::unwatched;
use ssn_data::{Case, Cases, Dataset, DatasetOverrides, LabelCoding, Layout, Split, check};
use ssn_io::{Geometry, Voxels};

use crate::common::{self, Folder, dict, slice};

fn opened(folder: &Folder, layout: Layout) -> Dataset {
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.layout, layout);
    let report = check(&dataset, None, &unwatched);
    assert!(report.is_clean(), "{report}");
    dataset
}

fn ids(dataset: &Dataset) -> Vec<&str> {
    dataset.entries.iter().map(|entry| entry.id.as_str()).collect()
}

/// The case's channels, size, and voxels of each class for each rater.
fn facts(case: &Case, classes: usize) -> (usize, [usize; 3], Vec<Vec<usize>>) {
    let count = |rater: &Vec<u8>| {
        (0..classes).map(|c| rater.iter().filter(|l| usize::from(**l) == c).count()).collect()
    };
    (case.channels, case.shape, case.raters.iter().map(count).collect())
}

#[test]
fn the_authors_csv() {
    let folder = Folder::new();
    for id in ["b2", "b10"] {
        folder.image(&format!("x/{id}_flair.nii.gz"), [1, 2, 3, 4], 1);
        folder.image(&format!("x/{id}_t1.nii.gz"), [1, 2, 3, 4], 2);
        folder.labels(&format!("x/{id}_seg.nii.gz"), [2, 3, 4], 5, 3);
        folder.labels(&format!("x/{id}_seg1.nii.gz"), [2, 3, 4], 7, 1);
        folder.labels(&format!("x/{id}_mask.nii.gz"), [2, 3, 4], 20, 1);
    }
    let absolute = folder.path().join("x/b10_t1.nii.gz");
    let index = format!(
        "id,flair,t1,seg_0,seg_1,sampling_mask,patient,split\n\
         b2,x/b2_flair.nii.gz,x/b2_t1.nii.gz,x/b2_seg.nii.gz,x/b2_seg1.nii.gz,x/b2_mask.nii.gz,p1,train\n\
         b10,x/b10_flair.nii.gz,{},x/b10_seg.nii.gz,,x/b10_mask.nii.gz,p2,val\n",
        absolute.display()
    );
    folder.text("index.csv", &index);
    let dataset = opened(&folder, Layout::Csv);
    assert_eq!(
        (ids(&dataset), dataset.channels.clone()),
        (vec!["b2", "b10"], vec!["flair".into(), "t1".into()])
    );
    assert_eq!(dataset.reading.coding, LabelCoding::Values(vec![0, 1, 3]));
    assert_eq!(dataset.classes, ["background", "label_1", "label_3"]);
    let case = dataset.load(0).unwrap();
    assert_eq!(facts(&case, 3), (2, [2, 3, 4], vec![vec![19, 0, 5], vec![17, 7, 0]]));
    assert_eq!(case.mask.unwrap().iter().filter(|m| **m == 1).count(), 20);
    assert_eq!(dataset.load(1).unwrap().raters.len(), 1);
    assert_eq!(dataset.entries[1].split, Some(Split::Validation));
    assert_eq!(dataset.entries[0].group, "p1");
    // The file itself serves as well, and so do chosen channels.
    let known = DatasetOverrides { channels: Some(vec!["t1".into()]), ..DatasetOverrides::default() };
    let one = Dataset::open_with(&folder.path().join("index.csv"), &known).unwrap();
    let picked = one.load(0).unwrap();
    assert_eq!((picked.channels, &picked.image[..]), (1, &case.image[24..]));
}

#[test]
fn several_csv_files_are_parts() {
    let folder = Folder::new();
    folder.image("a.png", [1, 1, 3, 4], 1);
    folder.labels("seg.png", [1, 3, 4], 5, 1);
    for (file, id) in
        [("data_index_train.csv", "a"), ("data_index_valid.csv", "b"), ("data_index_test.csv", "c")]
    {
        folder.text(file, &format!("id,mri,seg\n{id},a.png,seg.png\n"));
    }
    let dataset = opened(&folder, Layout::Csv);
    let parts: Vec<_> = dataset.entries.iter().map(|entry| (entry.id.as_str(), entry.split)).collect();
    let expected = [("c", Split::Test), ("a", Split::Train), ("b", Split::Validation)];
    assert_eq!(parts, expected.map(|(id, split)| (id, Some(split))));
}

#[test]
fn nnunet() {
    let folder = Folder::new();
    folder.text(
        "dataset.json",
        r#"{"channel_names": {"0": "T1", "1": "T2"}, "labels": {"tumour": 2, "background": 0, "oedema": 1},
            "numTraining": 2, "file_ending": ".nii.gz"}"#,
    );
    for (id, label) in [("case_10", 1), ("case_9", 2)] {
        folder.image(&format!("imagesTr/{id}_0000.nii.gz"), [1, 2, 3, 4], 1);
        folder.image(&format!("imagesTr/{id}_0001.nii.gz"), [1, 2, 3, 4], 2);
        folder.labels(&format!("labelsTr/{id}.nii.gz"), [2, 3, 4], 5, label);
    }
    let dataset = opened(&folder, Layout::NnUnet);
    assert_eq!(ids(&dataset), ["case_9", "case_10"]);
    assert_eq!(
        (dataset.channels.join(" "), dataset.classes.join(" ")),
        ("T1 T2".into(), "background oedema tumour".into())
    );
    assert_eq!(facts(&dataset.load(0).unwrap(), 3), (2, [2, 3, 4], vec![vec![19, 0, 5]]));
}

#[test]
fn decathlon() {
    let folder = Folder::new();
    folder.text(
        "dataset.json",
        r#"{"modality": {"0": "FLAIR", "1": "T1w"}, "labels": {"0": "background", "1": "edema"},
            "training": [{"image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz"},
                         {"image": "./imagesTr/b.nii.gz", "label": "./labelsTr/b.nii.gz"}], "test": []}"#,
    );
    folder.image("imagesTr/a.nii.gz", [2, 2, 3, 4], 1);
    folder.image("imagesTr/b_0000.nii.gz", [1, 2, 3, 4], 1);
    folder.image("imagesTr/b_0001.nii.gz", [1, 2, 3, 4], 2);
    folder.text("imagesTr/._a.nii.gz", "hidden");
    folder.labels("labelsTr/a.nii.gz", [2, 3, 4], 4, 1);
    folder.labels("labelsTr/b.nii.gz", [2, 3, 4], 0, 1);
    let dataset = opened(&folder, Layout::Decathlon);
    assert_eq!((ids(&dataset), dataset.channels.join(" ")), (vec!["a", "b"], "FLAIR T1w".into()));
    assert_eq!(facts(&dataset.load(0).unwrap(), 2), (2, [2, 3, 4], vec![vec![20, 4]]));
    assert_eq!(dataset.load(1).unwrap().channels, 2);
}

/// A list of MONAI: channels, raters and folds, and images without labels.
#[test]
fn datalist() {
    let folder = Folder::new();
    for case in ["a", "b", "c"] {
        folder.image(&format!("{case}/t1.nii.gz"), [1, 2, 3, 4], 1);
        folder.image(&format!("{case}/t2.nii.gz"), [1, 2, 3, 4], 2);
        folder.labels(&format!("{case}/r1.nii.gz"), [2, 3, 4], 4, 1);
        folder.labels(&format!("{case}/r2.nii.gz"), [2, 3, 4], 5, 1);
    }
    let item = |case: &str, fold: &str| {
        format!(
            r#"{{"image": ["{case}/t1.nii.gz", "{case}/t2.nii.gz"], "label": ["{case}/r1.nii.gz", "{case}/r2.nii.gz"]{fold}}}"#
        )
    };
    let test = r#"[{"image": ["c/t1.nii.gz", "c/t2.nii.gz"]}]"#;
    let list = |lists: &str| folder.text("my_list.json", &format!("{{{lists}, \"testing\": {test}}}"));
    list(&format!(r#""training": [{}, {}]"#, item("a", r#", "fold": 1"#), item("b", r#", "fold": 0"#)));
    let dataset = opened(&folder, Layout::Datalist);
    assert_eq!((ids(&dataset), dataset.channels.len(), dataset.unlabeled.len()), (vec!["a", "b"], 2, 2));
    assert_eq!(facts(&dataset.load(0).unwrap(), 2), (2, [2, 3, 4], vec![vec![20, 4], vec![19, 5]]));
    let parts: Vec<_> = dataset.entries.iter().map(|entry| entry.split).collect();
    assert_eq!(parts, [Some(Split::Train), Some(Split::Validation)]);
    assert!(dataset.findings[0].reason.contains("fold 0 are for validation"));
    // A list of its own for validation; the file itself serves as well.
    list(&format!(r#""training": [{}], "validation": [{}]"#, item("a", ""), item("b", "")));
    let file = Dataset::open(&folder.path().join("my_list.json")).unwrap();
    assert_eq!(file.entries, opened(&folder, Layout::Datalist).entries);
    assert_eq!(file.entries[1].split, Some(Split::Validation));
    folder.text("second.json", r#"{"training": [{"image": "a/t1.nii.gz", "label": "a/r1.nii.gz"}]}"#);
    let error = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("several lists could be the dataset: my_list.json, second.json; give one of them"),
        "{error}"
    );
}

#[test]
fn bids_derivatives_are_raters() {
    let folder = Folder::new();
    for session in ["sub-01", "sub-02/ses-1", "sub-02/ses-2"] {
        let name = session.replace('/', "_");
        for (number, channel) in ["FLAIR", "T1w"].iter().enumerate() {
            folder.image(&format!("{session}/anat/{name}_{channel}.nii.gz"), [1, 2, 3, 4], number);
        }
        for (number, rater) in ["anna", "ben"].iter().enumerate() {
            let path = format!("derivatives/{rater}/{session}/anat/{name}_space-orig_dseg.nii.gz");
            folder.labels(&path, [2, 3, 4], 4 + number, 1);
        }
    }
    folder.labels("derivatives/anna/sub-01/anat/sub-01_desc-brain_mask.nii.gz", [2, 3, 4], 9, 1);
    let dataset = opened(&folder, Layout::Bids);
    assert_eq!(ids(&dataset), ["sub-01", "sub-02_ses-1", "sub-02_ses-2"]);
    assert_eq!(
        (dataset.channels.join(" "), dataset.rater_names.join(" ")),
        ("FLAIR T1w".into(), "anna ben".into())
    );
    assert_eq!(dataset.entries[2].group, "sub-02");
    assert_eq!(facts(&dataset.load(2).unwrap(), 2), (2, [2, 3, 4], vec![vec![20, 4], vec![19, 5]]));
}

#[test]
fn curvas() {
    let folder = Folder::new();
    for case in ["UKCHLL001", "UKCHLL002"] {
        folder.image(&format!("{case}/image.nii.gz"), [1, 2, 3, 4], 1);
        for rater in 1..=3 {
            folder.labels(&format!("{case}/annotation_{rater}.nii.gz"), [2, 3, 4], 4 + rater, 3);
        }
    }
    let dataset = opened(&folder, Layout::CaseFolders);
    assert_eq!((ids(&dataset), dataset.channels.join(" ")), (vec!["UKCHLL001", "UKCHLL002"], "image".into()));
    assert_eq!(facts(&dataset.load(0).unwrap(), 2).2, [[19, 5], [18, 6], [17, 7]]);
    assert_eq!(dataset.rater_name(2), "rater 2");
}

#[test]
fn qubiq() {
    let folder = Folder::new();
    for case in ["case01", "case02"] {
        folder.image(&format!("Training/{case}/image.nii.gz"), [1, 3, 4, 5], 1);
        for rater in 1..=3 {
            folder.labels(&format!("Training/{case}/task01_seg0{rater}.nii.gz"), [1, 4, 5], 3 * rater, 1);
            folder.labels(&format!("Training/{case}/task02_seg0{rater}.nii.gz"), [1, 4, 5], rater, 1);
        }
    }
    let dataset = opened(&folder, Layout::Qubiq);
    assert_eq!(dataset.classes, ["background", "task_1", "task_2"]);
    // The third axis of the image holds its channels, for the masks are flat.
    let case = dataset.load(1).unwrap();
    assert_eq!(facts(&case, 3), (3, [1, 4, 5], vec![vec![17, 2, 1], vec![14, 4, 2], vec![11, 6, 3]]));
}

#[test]
fn lidc_pickles() {
    let folder = Folder::new();
    let set = |series: [&str; 2]| dict(vec![("x_s10", slice(series[0], 5)), ("x_s9", slice(series[1], 0))]);
    folder.pickle("one/data_lidc.pickle", &set(["1.2", "1.3"]));
    let dataset = Dataset::open(&folder.path().join("one")).unwrap();
    assert_eq!((dataset.layout, ids(&dataset)), (Layout::LidcPickle, vec!["x_s9", "x_s10"]));
    assert_eq!(dataset.entries[0].group, "1.3");
    let case = dataset.load(1).unwrap();
    assert_eq!(facts(&case, 2), (1, [1, 4, 6], vec![vec![19, 5], vec![24, 0]]));
    assert_eq!(case.image[7], (7.0f64 / 255.0) as f32);
    let same = Dataset::open(&folder.path().join("one/data_lidc.pickle")).unwrap();
    assert_eq!(same.load(1).unwrap(), case);

    folder.pickle("parts/train.pickle.gz", &set(["1.2", "1.3"]));
    folder.pickle("parts/val.pickle.gz", &set(["1.4", "1.5"]));
    let dataset = Dataset::open(&folder.path().join("parts")).unwrap();
    assert_eq!(ids(&dataset), ["x_s9", "x_s10", "validation/x_s9", "validation/x_s10"]);
    assert_eq!(dataset.entries[3].split, Some(Split::Validation));
}

#[test]
fn lidc_png() {
    let folder = Folder::new();
    for (split, patient) in [("train", "LIDC-0001"), ("test", "LIDC-0002")] {
        for slice in ["z-105.0_c0", "z-105.0_c1"] {
            folder.image(&format!("{split}/images/{patient}/{slice}.png"), [1, 1, 180, 180], 1);
            for reader in 1..=4 {
                let marked = 180 * 27 * usize::from(reader > 1);
                folder.labels(
                    &format!("{split}/gt/{patient}/{slice}_l{reader}.png"),
                    [1, 180, 180],
                    marked,
                    255,
                );
            }
        }
    }
    let dataset = opened(&folder, Layout::LidcPng);
    assert_eq!(ids(&dataset)[0], "LIDC-0002/z-105.0_c0");
    assert_eq!(
        (dataset.entries[0].group.as_str(), dataset.entries[0].split),
        ("LIDC-0002", Some(Split::Test))
    );
    // The middle 128 rows start at row 26: of 27 marked rows, one is left.
    let (all, one) = (vec![128 * 128, 0], vec![128 * 127, 128]);
    let case = dataset.load(0).unwrap();
    assert_eq!(facts(&case, 2), (1, [1, 128, 128], vec![all, one.clone(), one.clone(), one]));
    assert_eq!(case.image[0], ((26 * 180 + 26) * 7 + 13) as f32 % 97.0);
}

/// JPEG cannot be written here, and names with other endings serve as well.
#[test]
fn lidc_folders_per_slice() {
    let folder = Folder::new();
    for slice in 0..2 {
        folder.image(&format!("training/{slice}/image_{}.png", slice + 1), [1, 1, 8, 8], slice);
        for rater in 0..4 {
            folder.labels(
                &format!("training/{slice}/label{rater}_.png"),
                [1, 8, 8],
                rater,
                128 - (rater == 3) as u8,
            );
        }
    }
    let dataset = opened(&folder, Layout::LidcJpeg);
    assert_eq!((ids(&dataset), dataset.entries[0].split), (vec!["0", "1"], None));
    let expected = [0, 1, 2, 0].map(|n| vec![64 - n, n]).to_vec();
    assert_eq!(facts(&dataset.load(0).unwrap(), 2), (1, [1, 8, 8], expected));
}

#[test]
fn a_folder_per_case() {
    let folder = Folder::new();
    for id in ["Brats17_A_1", "Brats17_B_1"] {
        let name = |part: &str| format!("{id}/{id}_{part}.nii.gz");
        ["flair", "t1", "t1ce", "t2"]
            .iter()
            .enumerate()
            .for_each(|(i, c)| folder.image(&name(c), [1, 2, 3, 4], i));
        folder.labels(&name("seg"), [2, 3, 4], 6, 4);
    }
    let dataset = opened(&folder, Layout::CaseFolders);
    assert_eq!(
        (ids(&dataset), dataset.channels.join(" ")),
        (vec!["Brats17_A_1", "Brats17_B_1"], "flair t1 t1ce t2".into())
    );
    assert_eq!(facts(&dataset.load(0).unwrap(), 2), (4, [2, 3, 4], vec![vec![18, 6]]));
}

#[test]
fn labels_without_a_telling_name_are_known_by_their_values() {
    let folder = Folder::new();
    for id in ["a", "b"] {
        let values = (0..24).map(|i| i as f32 * 0.3).collect();
        folder.volume(&format!("{id}/scan.nii"), Voxels::F32(values), [1, 2, 3, 4], Geometry::default());
        folder.labels(&format!("{id}/drawn.nii"), [2, 3, 4], 6, 1);
        folder.labels(&format!("{id}/brain_mask.nii"), [2, 3, 4], 23, 1);
    }
    let dataset = opened(&folder, Layout::CaseFolders);
    assert_eq!(dataset.channels, ["scan"]);
    assert!(dataset.load(0).unwrap().mask.is_some());
}

#[test]
fn a_pair_of_folders() {
    let folder = Folder::new();
    for id in ["case1", "case2"] {
        folder.image(&format!("images/{id}.png"), [1, 1, 3, 4], 1);
        folder.labels(&format!("labels/{id}_0.png"), [1, 3, 4], 2, 255);
        folder.labels(&format!("labels/{id}_1.png"), [1, 3, 4], 0, 255);
    }
    let dataset = opened(&folder, Layout::FolderPair);
    assert_eq!((ids(&dataset), dataset.channels.join(" ")), (vec!["case1", "case2"], "image".into()));
    assert_eq!(dataset.reading.coding, LabelCoding::Values(vec![0, 255]));
    assert_eq!(facts(&dataset.load(0).unwrap(), 2), (1, [1, 3, 4], vec![vec![10, 2], vec![12, 0]]));
}

#[test]
fn a_pair_of_folders_with_channels_raters_and_parts() {
    let folder = Folder::new();
    for (part, id) in [("train", "a"), ("val", "b")] {
        folder.image(&format!("{part}/images/{id}_0000.nii.gz"), [1, 2, 3, 4], 1);
        folder.image(&format!("{part}/images/{id}_0001.nii.gz"), [1, 2, 3, 4], 2);
        folder.labels(&format!("{part}/labels/{id}_r1.nii.gz"), [2, 3, 4], 2, 1);
        folder.labels(&format!("{part}/labels/{id}_r2.nii.gz"), [2, 3, 4], 3, 2);
    }
    let dataset = opened(&folder, Layout::FolderPair);
    assert_eq!(dataset.channels, ["channel_0", "channel_1"]);
    assert_eq!(facts(&dataset.load(1).unwrap(), 3), (2, [2, 3, 4], vec![vec![22, 2, 0], vec![21, 0, 3]]));
    assert_eq!(dataset.entries[1].split, Some(Split::Validation));
}

#[cfg(feature = "hdf5")]
#[test]
fn lidc_hdf5() {
    let files = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ssn-io/tests/hdf5_files");
    let open = |name: &str| Dataset::open(&files.join(name)).unwrap();
    let dataset = open("chunked.h5");
    assert_eq!((dataset.layout, dataset.len()), (Layout::LidcHdf5, 6));
    assert_eq!(dataset.entries.iter().filter(|entry| entry.split == Some(Split::Train)).count(), 3);
    let case = dataset.load(2).unwrap();
    assert_eq!(
        (case.shape, case.raters.len(), dataset.entries[2].group.as_str()),
        ([1, 5, 5], 4, "1.3.6.train.1")
    );
    assert_eq!(case.image[1], 26.0 * 0.25 - 3.0);
    // Values are i % 3 % 2 over the stored order, which differs between the two layouts.
    let stored = |place: usize| (place % 3 % 2) as u8;
    assert_eq!(case.raters[1][2], stored(100 + 2 * 4 + 1));
    let other = open("raters_first.h5").load(2).unwrap();
    assert_eq!(other.raters[1][2], stored(100 + 25 + 2));
}

/// Slices that are numbered with four digits are no channels if labels are named after them.
#[test]
fn numbered_slices_are_cases() {
    let folder = Folder::new();
    for number in 0..12 {
        folder.image(&format!("images/slice_{number:04}.png"), [1, 1, 3, 4], number);
        folder.labels(&format!("labels/slice_{number:04}.png"), [1, 3, 4], 2, 1);
    }
    let dataset = opened(&folder, Layout::FolderPair);
    assert_eq!((dataset.len(), dataset.channels.len()), (12, 1));
    // With several raters the names of labels are longer than those of images.
    let folder = Folder::new();
    for number in 0..3 {
        folder.image(&format!("images/slice_{number:04}.png"), [1, 1, 3, 4], number);
        ["A", "B"].iter().enumerate().for_each(|(marked, rater)| {
            folder.labels(&format!("labels/slice_{number:04}_{rater}.png"), [1, 3, 4], marked, 1);
        });
    }
    let dataset = opened(&folder, Layout::FolderPair);
    assert_eq!((dataset.len(), dataset.channels.len()), (3, 1));
    assert_eq!(facts(&dataset.load(0).unwrap(), 2).2, [[12, 0], [11, 1]]);
}

#[test]
fn a_missing_rater_shifts_nobody() {
    let folder = Folder::new();
    for id in ["a", "b"] {
        folder.image(&format!("images/{id}.png"), [1, 1, 3, 4], 1);
        for rater in 1..=3 {
            folder.labels(&format!("labels/{id}_r{rater}.png"), [1, 3, 4], rater, 1);
        }
    }
    std::fs::remove_file(folder.path().join("labels/b_r2.png")).unwrap();
    let dataset = opened(&folder, Layout::FolderPair);
    assert!(dataset.load(0).unwrap().rater_numbers.is_empty());
    assert_eq!(dataset.load(1).unwrap().rater_numbers, [0, 2]);
    // Two files of one rater: one is used, and the other is reported.
    folder.labels("labels/a_1.png", [1, 3, 4], 9, 1);
    let report = check(&Dataset::open(folder.path()).unwrap(), None, &unwatched);
    let reasons: Vec<&str> = report.findings.iter().map(|finding| finding.reason.as_str()).collect();
    assert!(reasons[0].contains("a_1.png and a_r1.png are of the same rater"), "{reasons:?}");
}

#[test]
fn a_missing_task_of_a_rater_is_not_another_task() {
    let folder = Folder::new();
    folder.image("case01/image.nii.gz", [1, 1, 4, 5], 1);
    folder.labels("case01/task01_seg01.nii.gz", [1, 4, 5], 9, 1);
    folder.labels("case01/task02_seg01.nii.gz", [1, 4, 5], 2, 1);
    folder.labels("case01/task02_seg02.nii.gz", [1, 4, 5], 3, 1);
    let dataset = opened(&folder, Layout::Qubiq);
    assert_eq!(facts(&dataset.load(0).unwrap(), 3).2, [[11, 7, 2], [17, 0, 3]]);
}

/// BraTS as it is handed out: grades above cases, tables beside them, and a file that is no dataset.
#[test]
fn grades_above_cases_and_files_beside_them() {
    let folder = Folder::new();
    for (grade, id) in
        [("HGG", "Brats18_A"), ("HGG", "Brats18_B"), ("LGG", "Brats18_C"), ("LGG", "Brats18_A")]
    {
        for (number, channel) in ["flair", "t1n", "t1c", "t2w"].iter().enumerate() {
            folder.image(&format!("{grade}/{id}/{id}_{channel}.nii.gz"), [1, 2, 3, 4], number);
        }
        folder.labels(&format!("{grade}/{id}/{id}_seg.nii.gz"), [2, 3, 4], 6, 4);
    }
    folder.text("name_mapping.csv", "Grade,BraTS_2017_subject_ID,BraTS_2018_subject_ID\nHGG,x,Brats18_A\n");
    folder.text("survival_info.csv", "BraTS18ID,Age,Survival\nBrats18_A,60.1,289\n");
    folder.text("survival_evaluation.csv", "BraTS18ID,Age\n");
    folder.pickle("plans.pkl", &common::list(vec![]));
    let dataset = opened(&folder, Layout::CaseFolders);
    assert_eq!(ids(&dataset), ["Brats18_A", "Brats18_B", "LGG/Brats18_A", "Brats18_C"]);
    assert_eq!(dataset.channels.join(" "), "flair t1c t1n t2w");
    assert!(dataset.findings.iter().any(|finding| finding.reason.contains("plans.pkl")));
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let shard = ssn_data::Shard::WHOLE;
    let options = ssn_data::prepare::BratsOptions { seed: 0, shard, overwrite: false, config_head: "" };
    assert_eq!(
        ssn_data::prepare::brats(&dataset, &out, &options, ssn_core::Control::default()).unwrap().prepared,
        4
    );
}

#[test]
fn a_mask_beside_labels_is_the_region_of_interest() {
    let folder = Folder::new();
    for id in ["a", "b"] {
        folder.image(&format!("{id}/image.nii.gz"), [1, 2, 3, 4], 1);
        folder.labels(&format!("{id}/seg.nii.gz"), [2, 3, 4], 6, 1);
        folder.labels(&format!("{id}/mask.nii.gz"), [2, 3, 4], 20, 1);
    }
    let dataset = opened(&folder, Layout::CaseFolders);
    let case = dataset.load(0).unwrap();
    assert_eq!((case.raters.len(), case.mask.is_some()), (1, true));
    // Labels of two structures are probably not those of two raters.
    for id in ["a", "b"] {
        folder.labels(&format!("{id}/tumor_seg.nii.gz"), [2, 3, 4], 6, 1);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let warning = &dataset.findings[0];
    assert_eq!(warning.severity, ssn_data::Severity::Warning);
    assert_eq!(warning.reason, "the label files seg, tumor_seg are taken for those of 2 raters");
}

#[test]
fn a_part_beside_images_hides_nothing() {
    let folder = Folder::new();
    for path in ["images/a", "test/images/b"] {
        folder.image(&format!("{path}.png"), [1, 1, 3, 4], 1);
        folder.labels(&format!("{}.png", path.replace("images", "labels")), [1, 3, 4], 2, 1);
    }
    let dataset = opened(&folder, Layout::FolderPair);
    assert_eq!(ids(&dataset), ["a", "b"]);
}

#[test]
fn what_belongs_to_no_case_is_listed_by_its_folder() {
    let folder = Folder::new();
    for id in ["a", "b"] {
        folder.image(&format!("images/{id}.png"), [1, 1, 3, 4], 1);
        folder.labels(&format!("labels/{id}.png"), [1, 3, 4], 2, 1);
    }
    let left_out = || {
        let findings = Dataset::open(folder.path()).unwrap().left_out();
        findings.into_iter().map(|finding| finding.reason).collect::<Vec<_>>()
    };
    assert_eq!(left_out(), Vec::<String>::new());
    for number in 0..4 {
        folder.image(&format!("more/{number}.png"), [1, 1, 3, 4], 1);
    }
    folder.labels("labels/seg_a.png", [1, 3, 4], 2, 1);
    folder.text("notes.txt", "");
    assert_eq!(
        left_out(),
        ["left out: 1 file in labels/ (seg_a.png)", "left out: 4 files in more/ (0.png, 1.png, 2.png, …)",]
    );
}
