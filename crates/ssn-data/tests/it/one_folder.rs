//! Images and label maps in one folder, and parts and patients below a pair of folders.

use ssn_data::{Cases, DataConfig, Dataset, Layout, Split};
use ssn_io::{Geometry, Voxels};

use crate::common::Folder;

const SIZE: [usize; 3] = [1, 20, 24];

fn image(folder: &Folder, name: &str, number: usize) {
    folder.image(name, [1, 1, 20, 24], number);
}

/// Id, group, part and marked voxels of each rater, of all cases.
fn cases(dataset: &Dataset) -> Vec<(&str, &str, Option<Split>, Vec<usize>)> {
    let count = |map: &Vec<u8>| map.iter().filter(|label| **label > 0).count();
    let of = |case: usize| {
        let entry = &dataset.entries[case];
        let marked = dataset.load(case).unwrap().raters.iter().map(count).collect();
        (entry.id.as_str(), entry.group.as_str(), entry.split, marked)
    };
    (0..dataset.len()).map(of).collect()
}

#[test]
fn masks_follow_the_names_of_their_images() {
    for (first, second) in [
        ("_mask", None),
        (" (seg)", None),
        ("_rater1", Some("_rater2")),
        ("_GT_anna", Some("_GT_ben")),
        ("_1stHO", Some("_2ndHO")),
        ("_A", Some("_B")),
    ] {
        let folder = Folder::new();
        for case in 1..=3 {
            image(&folder, &format!("scan{case}.png"), case);
            folder.labels(&format!("scan{case}{first}.png"), SIZE, 9 * case, 255);
            second
                .inspect(|second| folder.labels(&format!("scan{case}{second}.png"), SIZE, 9 * case + 1, 255));
        }
        image(&folder, "overview.png", 7);
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.layout, Layout::OneFolder, "{first}");
        let config =
            DataConfig::parse(&format!("[data]\npath = {:?}\nexclude = [\"overview\"]", folder.path()));
        let dataset = config.unwrap().open().unwrap();
        let expected = |case: usize| match second {
            Some(_) => vec![9 * case, 9 * case + 1],
            None => vec![9 * case],
        };
        let found: Vec<_> = cases(&dataset).into_iter().map(|(.., marked)| marked).collect();
        assert_eq!(found, [1, 2, 3].map(expected), "{first}");
    }
}

#[test]
fn the_folder_of_a_dataset_is_read_alike_for_training_and_for_prediction() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("scan{case}.png"), case);
        folder.labels(&format!("scan{case}_mask.png"), SIZE, 9 * case, 255);
        folder.labels(&format!("scan{case}_roi.png"), SIZE, 300, 1);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let paths = [folder.path().to_owned()];
    let mut images = Dataset::of_images(&paths, &dataset.channels, &dataset.classes).unwrap();
    images.read_labels_as(&dataset.classes, None);
    for dataset in [dataset, images] {
        let cases: Vec<_> = (0..dataset.len()).map(|case| dataset.load_raw(case).unwrap()).collect();
        let inside = |case: &ssn_data::Case| case.mask.as_ref().unwrap().iter().filter(|m| **m > 0).count();
        let found: Vec<_> =
            cases.iter().map(|case| (case.id.as_str(), case.raters.len(), inside(case))).collect();
        assert_eq!(found, [("scan1", 1, 300), ("scan2", 1, 300), ("scan3", 1, 300)]);
    }
}

#[test]
fn slices_of_patients_stay_together() {
    let folder = Folder::new();
    for (patient, slice) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)] {
        let name = format!("patient{patient}/p{patient}_{slice}");
        image(&folder, &format!("{name}.tif"), slice);
        folder.labels(&format!("{name}_mask.tif"), SIZE, 10 * patient + slice, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.layout, Layout::OneFolder);
    let groups: Vec<_> = cases(&dataset).into_iter().map(|(id, group, ..)| (id, group)).collect();
    assert_eq!(groups[1..3], [("p1_2", "patient1"), ("p2_1", "patient2")]);
    assert_eq!(dataset.load(4).unwrap().raters[0].iter().filter(|label| **label > 0).count(), 23);
}

#[test]
fn folders_of_kinds_are_no_patients() {
    for [images, labels, ending] in [["", "", "_mask"], ["images/", "masks/", ""]] {
        let folder = Folder::new();
        for (kind, scan) in [("benign", 1), ("benign", 2), ("malignant", 3), ("malignant", 4)] {
            image(&folder, &format!("{images}{kind}/scan ({scan}).png"), scan);
            folder.labels(&format!("{labels}{kind}/scan ({scan}){ending}.png"), SIZE, scan, 255);
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        assert!(dataset.entries.iter().all(|entry| entry.group == entry.id), "{images}");
        let note = "the folders benign, malignant are taken for kinds of images";
        assert!(
            dataset.findings.iter().any(|finding| finding.reason.starts_with(note)),
            "{:?}",
            dataset.findings
        );
    }
}

#[test]
fn a_folder_per_case_is_no_patient() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("case{case}/scan.png"), case);
        folder.labels(&format!("case{case}/scan_mask.png"), SIZE, 9 * case, 255);
    }
    assert_eq!(Dataset::open(folder.path()).unwrap().layout, Layout::CaseFolders);
}

#[test]
fn parts_and_patients_lie_below_a_pair_of_folders() {
    let folder = Folder::new();
    for (part, name) in [("train", "a"), ("train", "b"), ("val", "c")] {
        image(&folder, &format!("images/{part}/{name}.png"), 1);
        folder.labels(&format!("labels/{part}/{name}.png"), SIZE, 5, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.layout, Layout::FolderPair);
    let [train, validation] = [Split::Train, Split::Validation].map(Some);
    let expected = [("a", "a", train, vec![5]), ("b", "b", train, vec![5]), ("c", "c", validation, vec![5])];
    assert_eq!(cases(&dataset), expected);

    let folder = Folder::new();
    for (part, patient, slice) in
        [("TRAIN", "p1", 1), ("TRAIN", "p1", 2), ("TRAIN", "p2", 1), ("Test", "p3", 1)]
    {
        image(&folder, &format!("{part}/Images/{patient}/s{slice}.png"), slice);
        folder.labels(&format!("{part}/GroundTruth/{patient}/s{slice}_GT.png"), SIZE, 4 + slice, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let expected = [
        ("p1/s1", "p1", train, vec![5]),
        ("p1/s2", "p1", train, vec![6]),
        ("p2/s1", "p2", train, vec![5]),
        ("p3/s1", "p3", Some(Split::Test), vec![5]),
    ];
    assert_eq!((dataset.layout, cases(&dataset)), (Layout::FolderPair, expected.to_vec()));
}

#[test]
fn accents_may_be_apart_from_their_letters() {
    let folder = Folder::new();
    for (composed, apart) in [("M\u{fc}ller", "Mu\u{308}ller"), ("se\u{f1}or", "sen\u{303}or")] {
        image(&folder, &format!("images/{composed}.png"), 1);
        folder.labels(&format!("anna/{apart}.png"), SIZE, 5, 255);
        folder.labels(&format!("ben/{composed}.png"), SIZE, 6, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(
        cases(&dataset).iter().map(|(.., marked)| marked.clone()).collect::<Vec<_>>(),
        [[5, 6], [5, 6]]
    );
}

#[test]
fn a_rater_with_inverted_masks_is_noticed() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/c{case}.png"), case);
        folder.labels(&format!("anna/c{case}.png"), SIZE, 40 + case, 255);
        folder.labels(&format!("ben/c{case}.png"), SIZE, 430 + case, 255);
    }
    let report =
        ssn_data::check(&Dataset::open(folder.path()).unwrap(), None, &ssn_data::parallel::unwatched);
    let reasons: Vec<&str> = report.findings.iter().map(|finding| finding.reason.as_str()).collect();
    let expected = "ben marks 90 % of all voxels, other raters 9 %: are the masks of ben inverted?";
    assert!(reasons.contains(&expected), "{reasons:?}");
}

fn reasons(folder: &Folder) -> Vec<String> {
    let report =
        ssn_data::check(&Dataset::open(folder.path()).unwrap(), None, &ssn_data::parallel::unwatched);
    report.findings.into_iter().map(|finding| finding.reason).collect()
}

#[test]
fn label_maps_in_folders_of_their_cases_have_raters_by_name() {
    for (image_name, label) in
        [("images/cN", "labels/cN/cN_r"), ("images/p1/sN", "labels/p1/sN/r"), ("images/cN", "masks/cN/rater")]
    {
        let folder = Folder::new();
        for case in 1..=3 {
            let name = |text: &str| text.replace('N', &case.to_string());
            image(&folder, &format!("{}.png", name(image_name)), case);
            for rater in 1..=3 {
                folder.labels(&format!("{}{rater}.png", name(label)), SIZE, 10 * case + rater, 255);
            }
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        let marked: Vec<_> = cases(&dataset).into_iter().map(|(.., marked)| marked).collect();
        assert_eq!(marked, [[11, 12, 13], [21, 22, 23], [31, 32, 33]], "{label}");
    }
    // Folders of raters may have the names of cases.
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/{case}.png"), case);
        (1..=3).for_each(|rater| {
            folder.labels(&format!("labels/{rater}/{case}.png"), SIZE, 10 * case + rater, 255)
        });
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let marked: Vec<_> = cases(&dataset).into_iter().map(|(.., marked)| marked).collect();
    assert_eq!(marked, [[11, 12, 13], [21, 22, 23], [31, 32, 33]]);
}

#[test]
fn a_field_of_view_next_to_manual_labels_is_a_region() {
    for (manual, view) in [("1st_manual", "mask"), ("manual1", "masks"), ("labels", "fov"), ("anna", "fov")] {
        let folder = Folder::new();
        for case in 1..=3 {
            image(&folder, &format!("images/{case}_dr.png"), case);
            folder.labels(&format!("{manual}/{case}_dr.png"), SIZE, 10 * case, 255);
            folder.labels(&format!("{view}/{case}_dr_mask.png"), SIZE, 300, 255);
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        for case in 0..3 {
            let loaded = dataset.load_raw(case).unwrap();
            let count = |map: &Vec<u8>| map.iter().filter(|label| **label > 0).count();
            let found =
                (loaded.raters.iter().map(count).collect::<Vec<_>>(), loaded.mask.as_ref().map(count));
            assert_eq!(found, (vec![10 * (case + 1)], Some(300)), "{manual} {view}");
        }
    }
}

#[test]
fn a_consensus_is_no_rater_by_the_end_of_its_name() {
    for labels in ["labels/", ""] {
        let folder = Folder::new();
        for case in 1..=3 {
            image(
                &folder,
                &format!("{}scan{case}.png", if labels.is_empty() { "" } else { "images/" }),
                case,
            );
            for (number, rater) in ["rater1", "rater2", "consensus", "staple"].iter().enumerate() {
                folder.labels(&format!("{labels}scan{case}_{rater}.png"), SIZE, 10 * case + number, 255);
            }
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        let marked: Vec<_> = cases(&dataset).into_iter().map(|(.., marked)| marked).collect();
        assert_eq!(marked, [[10, 11], [20, 21], [30, 31]], "{labels}");
        assert!(dataset.left_out()[0].reason.contains("6 files"), "{:?}", dataset.left_out());
    }
}

#[test]
fn raters_who_mark_different_places_may_be_structures() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/c{case}.png"), case);
        folder.labels(&format!("heart/c{case}.png"), SIZE, 40 + case, 255);
        let values = (0..480).map(|at| if at > 400 { 255 } else { 0 }).collect();
        folder.volume(&format!("lung/c{case}.png"), Voxels::U8(values), [1, 1, 20, 24], Default::default());
    }
    let expected = "in 3 of 3 cases the masks of the raters do not overlap: do they show structures or instances, rather than opinions?";
    assert!(reasons(&folder).contains(&expected.to_owned()), "{:?}", reasons(&folder));
}

#[test]
fn a_label_map_among_the_channels_is_noticed() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("c{case}/t1.nii.gz"), case);
        folder.labels(&format!("c{case}/lesions_old.nii.gz"), SIZE, 30, 1);
        folder.labels(&format!("c{case}/edema.nii.gz"), SIZE, 90, 2);
        folder.labels(&format!("c{case}/seg.nii.gz"), SIZE, 40, 1);
    }
    let found = reasons(&folder);
    assert!(
        found.contains(&"the channel \"edema\" has a few whole numbers alone: is it a label map?".to_owned()),
        "{found:?}"
    );
}

#[test]
fn all_datasets_in_a_folder_are_named() {
    let folder = Folder::new();
    for site in ["siteA", "siteB"] {
        image(&folder, &format!("{site}/images/c.png"), 1);
        folder.labels(&format!("{site}/labels/c.png"), SIZE, 5, 255);
    }
    let error = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("one in each of its 2 folders: siteA, siteB"), "{error}");
}

#[test]
fn files_that_name_raters_below_folders_of_structures_are_theirs() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/{case}.png"), case);
        for (structure, marked) in [("cup", 20), ("disc", 60)] {
            for rater in 1..=3 {
                folder.labels(
                    &format!("masks/{structure}/{case}_rater{rater}.png"),
                    SIZE,
                    marked + rater,
                    255,
                );
            }
        }
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(
        (dataset.rater_names.len(), &dataset.classes[1..]),
        (3, &["disc".to_owned(), "cup".to_owned()][..])
    );
    let first = dataset.load(0).unwrap();
    let count = |map: &Vec<u8>, class: u8| map.iter().filter(|label| **label == class).count();
    let found: Vec<_> = first.raters.iter().map(|map| [count(map, 1), count(map, 2)]).collect();
    assert_eq!(found, [[40, 21], [40, 22], [40, 23]]);
}

#[test]
fn a_table_of_files_that_is_no_index_is_noticed() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/c{case}.png"), case);
        folder.labels(&format!("labels/c{case}.png"), SIZE, 9, 255);
    }
    folder.text("train.csv", "id,image,mask\n1,images/c1.png,labels/c2.png\n");
    folder.text("ages.csv", "id,age\nc1,40\n");
    let tables: Vec<_> =
        reasons(&folder).into_iter().filter(|reason| reason.starts_with("the table")).collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
}

#[test]
fn images_and_label_maps_may_share_numbers_alone() {
    for above in ["", "Batch 1/"] {
        let folder = Folder::new();
        for case in 0..3 {
            image(&folder, &format!("{above}volume-{case}.png"), case);
            folder.labels(&format!("{above}segmentation-{case}.png"), SIZE, 9 + case, 1);
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        let found: Vec<_> = cases(&dataset).into_iter().map(|(id, .., marked)| (id, marked)).collect();
        assert_eq!(found, [("volume-0", vec![9]), ("volume-1", vec![10]), ("volume-2", vec![11])], "{above}");
        assert!(dataset.entries.iter().all(|entry| entry.group == entry.id), "a batch is no patient");
    }
}

/// Folder of three images, each with label maps whose names have `N` for the number of their image.
fn labeled(image_name: &str, labels: &[&str]) -> Folder {
    let folder = Folder::new();
    for case in 1..=3 {
        let name = |text: &str| format!("{}.png", text.replace('N', &case.to_string()));
        image(&folder, &name(image_name), case);
        for (number, label) in labels.iter().enumerate() {
            folder.labels(&name(label), SIZE, 10 * case + number, 255);
        }
    }
    folder
}

/// Marked voxels of each rater, of all cases.
fn marked(folder: &Folder) -> Vec<Vec<usize>> {
    let dataset = Dataset::open(folder.path()).unwrap();
    cases(&dataset).into_iter().map(|(.., marked)| marked).collect()
}

#[test]
fn raters_stand_behind_kinds_of_files() {
    for labels in ["cN_seg_R#", "cN_mask_#", "cN.rater#", "cN rater #", "rater#_cN", "cN_GT-anna#"] {
        let labels = ["1", "2"].map(|rater| format!("labels/{}", labels.replace('#', rater)));
        let folder = labeled("images/cN", &[&labels[0], &labels[1]]);
        assert_eq!(marked(&folder), [[10, 11], [20, 21], [30, 31]], "{labels:?}");
    }
    // A copy is not a rater.
    let folder = labeled("images/cN", &["labels/cN", "labels/cN (1)", "labels/cN - Copy"]);
    assert_eq!(marked(&folder), [[10], [20], [30]]);
}

#[test]
fn kinds_of_files_name_no_raters() {
    let folder = labeled("images/cN", &[]);
    for (case, kind) in [(1, "_seg"), (2, "_GT"), (3, "-label")] {
        folder.labels(&format!("labels/c{case}{kind}.png"), SIZE, 10 * case, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let numbers: Vec<_> = (0..3).map(|case| dataset.load(case).unwrap().rater_number(0)).collect();
    assert_eq!((numbers, dataset.rater_names.len()), (vec![0, 0, 0], 0));
    let note =
        "label files that end in gt, label, seg are taken for those of one rater: no case has two of them";
    assert!(reasons(&folder).iter().any(|reason| reason == note));
    // If a case has two of them, they are of two raters.
    let folder = labeled("images/cN", &["labels/cN_mask", "labels/cN_seg"]);
    assert_eq!(marked(&folder), [[10, 11], [20, 21], [30, 31]]);
}

#[test]
fn an_image_may_be_named_like_a_rater_of_another() {
    let folder = Folder::new();
    for (case, id) in ["c1", "c1_1", "c2"].iter().enumerate() {
        image(&folder, &format!("images/{id}.png"), case);
        (1..=2).for_each(|rater| {
            folder.labels(&format!("labels/{id}_{rater}.png"), SIZE, 10 * case + rater, 255)
        });
    }
    assert_eq!(marked(&folder), [[1, 2], [11, 12], [21, 22]]);
    folder.labels("labels/c2.png", SIZE, 9, 255);
    let reasons = reasons(&folder);
    let open = "the name could be of a rater of c1, but is taken for that of the image c1_1";
    assert!(reasons.iter().any(|reason| reason == open), "{reasons:?}");
}

#[test]
fn a_consensus_is_no_rater_in_any_layout() {
    for (image_name, label) in [
        ("cN/image", "cN/#"),
        ("cN/image", "cN/seg_#"),
        ("cN/cN_t1", "cN/cN_seg_#"),
        ("images/cN", "labels/cN/#"),
        ("images/cN", "#/cN"),
        ("sub-N/anat/sub-N_T1w", "derivatives/manual/sub-N/anat/sub-N_desc-#_dseg"),
        ("sub-N/anat/sub-N_T1w", "derivatives/#/sub-N/anat/sub-N_dseg"),
    ] {
        for made in ["consensus", "gold_standard", "union", "majority-vote"] {
            if label.contains("sub-") && made.contains('_') {
                continue;
            }
            let labels = ["rater1", "rater2", made].map(|rater| label.replace('#', rater));
            let folder = labeled(image_name, &[&labels[0], &labels[1], &labels[2]]);
            assert_eq!(marked(&folder), [[10, 11], [20, 21], [30, 31]], "{labels:?}");
            let dataset = Dataset::open(folder.path()).unwrap();
            assert_eq!(dataset.channels.len(), 1, "{labels:?}");
            assert!(!dataset.left_out().is_empty(), "{labels:?}");
        }
    }
    // Without raters, it is the reference.
    for (image_name, label) in [("cN/image", "cN/consensus"), ("images/cN", "labels/cN/consensus")] {
        assert_eq!(marked(&labeled(image_name, &[label])), [[10], [20], [30]]);
    }
}

#[test]
fn slices_of_patients_may_have_the_same_names() {
    let folder = Folder::new();
    for (patient, slice) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let name = format!("patient{patient}/slice_{slice}");
        image(&folder, &format!("{name}.tif"), slice);
        folder.labels(&format!("{name}_mask.tif"), SIZE, 10 * patient + slice, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.layout, Layout::OneFolder);
    let found: Vec<_> =
        cases(&dataset).into_iter().map(|(id, group, _, marked)| (id, group, marked[0])).collect();
    let expected = [
        ("slice_1", "patient1", 11),
        ("slice_2", "patient1", 12),
        ("patient2/slice_1", "patient2", 21),
        ("patient2/slice_2", "patient2", 22),
    ];
    assert_eq!(found, expected);
    // Channels are not slices, even with a mask each.
    let folder = Folder::new();
    for (case, channel) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        image(&folder, &format!("case{case}/t{channel}.tif"), channel);
        folder.labels(&format!("case{case}/t{channel}_mask.tif"), SIZE, 9, 255);
    }
    assert_eq!(Dataset::open(folder.path()).unwrap().layout, Layout::CaseFolders);
}

#[test]
fn labels_without_a_background_are_noticed() {
    let folder = Folder::new();
    for case in 1..=3 {
        image(&folder, &format!("images/c{case}.png"), case);
        let values = (0..480).map(|i| if i < 10 * case { 2 } else { 1 }).collect();
        folder.volume(
            &format!("labels/c{case}.png"),
            Voxels::U8(values),
            [1, 1, 20, 24],
            Geometry::default(),
        );
    }
    let reasons = reasons(&folder);
    let lacking = "no voxel is \"background\": the labels lack the value 0";
    assert!(reasons.iter().any(|reason| reason == lacking), "{reasons:?}");
}

#[test]
fn a_folder_per_case_is_read_alike_for_training_and_for_prediction() {
    for (image_name, labels) in [
        ("cN/image", ["cN/rater1", "cN/rater2", "cN/staple"]),
        ("cN/image", ["cN/seg_anna", "cN/seg_ben", "cN/consensus"]),
        ("cN/cN", ["cN/cN_seg_1", "cN/cN_seg_2", "cN/cN_seg_majority"]),
    ] {
        let folder = labeled(image_name, &labels);
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!((dataset.layout, dataset.channels.join(" ")), (Layout::CaseFolders, "image".into()));
        let paths = [folder.path().to_owned()];
        let mut images = Dataset::of_images(&paths, &dataset.channels, &dataset.classes).unwrap();
        images.read_labels_as(&dataset.classes, None);
        for dataset in [dataset, images] {
            let found: Vec<_> =
                cases(&dataset).into_iter().map(|(id, _, _, marked)| (id.to_owned(), marked)).collect();
            let expected = |case: usize| (format!("c{case}"), vec![10 * case, 10 * case + 1]);
            assert_eq!(found, [1, 2, 3].map(expected), "{labels:?}");
        }
    }
}

#[test]
fn patients_may_be_above_a_pair_of_folders() {
    let folder = Folder::new();
    for (patient, slice) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        image(&folder, &format!("patient{patient}/images/{slice}.png"), slice);
        folder.labels(&format!("patient{patient}/masks/{slice}.png"), SIZE, 10 * patient + slice, 255);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.layout, Layout::FolderPair);
    let paths = [folder.path().to_owned()];
    let mut images = Dataset::of_images(&paths, &dataset.channels, &dataset.classes).unwrap();
    images.read_labels_as(&dataset.classes, None);
    for dataset in [dataset, images] {
        let found: Vec<_> =
            cases(&dataset).into_iter().map(|(id, group, _, marked)| (id, group, marked[0])).collect();
        let expected = [
            ("patient1/1", "patient1", 11),
            ("patient1/2", "patient1", 12),
            ("patient2/1", "patient2", 21),
            ("patient2/2", "patient2", 22),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn folders_of_label_maps_are_no_images() {
    for [images, labels] in [["siteA/images", "siteA/masks"], ["p1/ct", "p1/rater1"], ["ct", "pred"]] {
        let folder = Folder::new();
        for case in 1..=3 {
            image(&folder, &format!("all/{images}/{case}.png"), case);
            folder.labels(&format!("all/{labels}/{case}_x.png"), SIZE, 10 * case, 255);
        }
        let classes = ["background".to_owned(), "foreground".to_owned()];
        let dataset =
            Dataset::of_images(&[folder.path().to_owned()], &["image".to_owned()], &classes).unwrap();
        assert_eq!(dataset.len(), 3, "{labels}");
        let told = |dataset: &Dataset| {
            dataset.findings.iter().any(|finding| finding.reason.contains("3 files are label maps or masks"))
        };
        assert!(told(&dataset), "{:?}", dataset.findings);
    }
}
