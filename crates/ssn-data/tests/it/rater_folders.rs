//! A folder of images beside a folder per rater, with the naming habits of many people.

use ssn_data::parallel::unwatched;
use ssn_data::{Cases, DataConfig, Dataset, LabelCoding, Layout, Severity, Split, check};
use ssn_io::{Geometry, Voxels};

use crate::common::Folder;

const SIZE: [usize; 3] = [1, 4, 6];

/// Pictures of three cases, and a mask of each rater, who marks one pixel more than the one before; names are made of the
/// number of the case.
fn set(image: impl Fn(usize) -> String, raters: &[&dyn Fn(usize) -> String]) -> Folder {
    let folder = Folder::new();
    for case in 1..=3 {
        folder.image(&image(case), [1, 1, 4, 6], case);
        for (number, rater) in raters.iter().enumerate() {
            folder.labels(&rater(case), SIZE, 3 * case + number, 255);
        }
    }
    folder
}

/// What the check tells, with how bad it is.
fn findings(dataset: &Dataset) -> Vec<(Severity, String)> {
    let found = check(dataset, None, &unwatched).findings;
    let text =
        |f: ssn_data::Finding| format!("{}{}", f.case.map_or(String::new(), |case| case + ": "), f.reason);
    found.into_iter().map(|finding| (finding.severity, text(finding))).collect()
}

/// The marked voxels of each rater in each case.
fn marked(dataset: &Dataset) -> Vec<Vec<usize>> {
    let count = |map: &Vec<u8>| map.iter().filter(|label| **label > 0).count();
    (0..dataset.len()).map(|case| dataset.load(case).unwrap().raters.iter().map(count).collect()).collect()
}

/// Opens a set of two raters in which every file has its place.
fn opened(folder: &Folder, raters: [&str; 2]) -> Dataset {
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(
        (dataset.layout, &dataset.rater_names[..]),
        (Layout::RaterFolders, &raters.map(str::to_owned)[..])
    );
    assert_eq!(findings(&dataset), []);
    assert_eq!(marked(&dataset), [[3, 4], [6, 7], [9, 10]]);
    dataset
}

#[test]
fn names_as_people_give_them() {
    type Habit<'a> = (&'a str, [&'a dyn Fn(usize) -> String; 2], [&'a str; 2]);
    let habits: [Habit<'_>; 9] = [
        (
            "images/case",
            [&|k| format!("alice/case{k}.png"), &|k| format!("bob/case{k}.png")],
            ["alice", "bob"],
        ),
        (
            "images/IMG_000",
            [&|k| format!("expert_2/img_000{k}_mask.tif"), &|k| format!("expert_10/Seg_IMG_{k}.nii.gz")],
            ["expert_2", "expert_10"],
        ),
        (
            "Images/p",
            [&|k| format!("annotator 1/p{k}_gt.png"), &|k| format!("annotator 2/p{k}_label.png")],
            ["annotator 1", "annotator 2"],
        ),
        (
            "images/case_",
            [&|k| format!("Seg_Rater1/case_{k}_Rater1.png"), &|k| format!("Seg_Rater2/Rater2_case_{k}.png")],
            ["Seg_Rater1", "Seg_Rater2"],
        ),
        (
            "img/c",
            [&|k| format!("labels/raterA/c{k}.png"), &|k| format!("labels/raterB/c{k}.png")],
            ["raterA", "raterB"],
        ),
        ("img/c", [&|k| format!("GT/1/c{k}_1.png"), &|k| format!("GT/2/c{k}_2.png")], ["1", "2"]),
        ("fundus/eye", [&|k| format!("A/eye{k}.png"), &|k| format!("B/eye{k}.png")], ["A", "B"]),
        ("slice-", [&|k| format!("A/slice-{k}.png"), &|k| format!("B/slice-{k}.png")], ["A", "B"]),
        (
            "stare-images/im",
            [&|k| format!("labels-ah/im{k}.ah.png"), &|k| format!("labels-vk/im{k}.vk.png")],
            ["labels-ah", "labels-vk"],
        ),
    ];
    for (image, raters, names) in habits {
        println!("{image}");
        let folder = Folder::new();
        for case in 1..=3 {
            // An image of many values, as the folder `fundus` has no telling name.
            let values = (0..20 * 24).map(|i| (i * 7 % 251) as u8).collect();
            folder.volume(
                &format!("{image}{case}.png"),
                Voxels::U8(values),
                [1, 1, 20, 24],
                Geometry::default(),
            );
            for (number, rater) in raters.iter().enumerate() {
                folder.labels(&rater(case), [1, 20, 24], 3 * case + number, 255);
            }
        }
        opened(&folder, names);
    }
}

#[test]
fn parts_are_above_or_below() {
    for (image, raters) in
        [("train/images/", ["train/a/", "train/b/"]), ("images/train/", ["a/train/", "b/train/"])]
    {
        let part = |path: &str, k: usize| {
            format!("{}c{k}.png", if k == 3 { path.replace("train", "val") } else { path.to_owned() })
        };
        let folder = set(|k| part(image, k), &[&|k| part(raters[0], k), &|k| part(raters[1], k)]);
        let dataset = opened(&folder, ["a", "b"]);
        let parts: Vec<_> = dataset.entries.iter().map(|entry| entry.split).collect();
        assert_eq!(parts, [Some(Split::Train), Some(Split::Train), Some(Split::Validation)]);
    }
}

#[test]
fn a_missing_rater_is_absent_or_empty_as_the_config_says() {
    let folder =
        set(|k| format!("images/c{k}.png"), &[&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")]);
    std::fs::remove_file(folder.path().join("a/c2.png")).unwrap();
    let open = |lines: &str| {
        DataConfig::parse(&format!("[data]\npath = {:?}\n{lines}\n", folder.path())).unwrap().open().unwrap()
    };
    let absent = open("");
    assert_eq!(marked(&absent), [vec![3, 4], vec![7], vec![9, 10]]);
    assert_eq!(absent.load(1).unwrap().rater_numbers, [1]);
    assert_eq!(findings(&absent), [(Severity::Note, "c2: there are no labels of a".to_owned())]);
    assert!(
        check(&absent, None, &unwatched).findings[0].advice.contains("set data.missing_rater = \"empty\"")
    );
    let empty = open("missing_rater = \"empty\"");
    assert_eq!(marked(&empty), [[3, 4], [0, 7], [9, 10]]);
    assert_eq!(
        findings(&empty),
        [(Severity::Note, "c2: there are no files of a: taken as empty".to_owned())]
    );
    // An empty map stays so where masks mark what is outside.
    let inverted = open("missing_rater = \"empty\"\ninvert_labels = true\nlabel_threshold = 127");
    assert_eq!(marked(&inverted), [[21, 20], [0, 17], [15, 14]]);
}

#[test]
fn what_fits_no_image_or_two_is_told() {
    let folder =
        set(|k| format!("images/c{k}.png"), &[&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")]);
    folder.image("images/C-3.png", [1, 1, 4, 6], 1);
    folder.labels("a/c9.png", SIZE, 1, 255);
    folder.labels("b/c_3_seg.png", SIZE, 1, 255);
    folder.image("overlay/c1.png", [3, 1, 4, 6], 1);
    folder.labels("consensus/c1.png", SIZE, 1, 255);
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.rater_names, ["a", "b"]);
    let told: Vec<String> =
        findings(&dataset).into_iter().map(|(severity, text)| format!("{severity}: {text}")).collect();
    assert_eq!(
        told,
        [
            "error: C-3: no rater's labels are there",
            "warning: the name fits several images, C-3, c3; the file is not used",
            "warning: left out: 1 file in a/ (c9.png)",
            "warning: left out: 1 file in b/ (c_3_seg.png)",
            "warning: left out: 1 file in consensus/ (c1.png)",
            "warning: left out: 1 file in overlay/ (c1.png)",
        ]
    );
}

#[test]
fn folders_without_a_common_name_are_explained() {
    let folder = set(
        |k| format!("images/c{k}.png"),
        &[&|k| format!("a/x{}.png", k + 5), &|k| format!("b/y{}.png", k + 5)],
    );
    let error = folder.anonymous(&Dataset::open(folder.path()).unwrap_err().to_string());
    assert!(
        error.starts_with(
            "FOLDER/a: the names of label files, such as x6.png, are those of no images, such as c1.png; name"
        ),
        "{error}"
    );
}

#[test]
fn labels_beside_raters_are_theirs_together() {
    let raters: [&dyn Fn(usize) -> String; 2] = [&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")];
    let folder = set(|k| format!("images/c{k}.png"), &raters);
    (1..=3).for_each(|k| folder.labels(&format!("masks/c{k}.png"), SIZE, 20, 255));
    let dataset = opened(&folder, ["a", "b"]);
    assert!(dataset.load(0).unwrap().mask.is_some(), "regions of interest");
    let folder = set(|k| format!("images/c{k}.png"), &raters);
    (1..=3).for_each(|k| folder.labels(&format!("gt/c{k}.png"), SIZE, 20, 255));
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.rater_names, ["a", "b"]);
    assert_eq!(dataset.left_out()[0].reason, "left out: 3 files in gt/ (c1.png, c2.png, c3.png)");
    // With one folder beside it, it is a pair, unless that one is a second of the kind.
    let folder =
        set(|k| format!("images/c{k}.png"), &[&|k| format!("gt/c{k}.png"), &|k| format!("old/c{k}.png")]);
    assert_eq!(Dataset::open(folder.path()).unwrap().layout, Layout::FolderPair);
    let folder =
        set(|k| format!("images/c{k}.png"), &[&|k| format!("gt/c{k}.png"), &|k| format!("gt2/c{k}.png")]);
    opened(&folder, ["gt", "gt2"]);
}

#[test]
fn structures_are_classes_with_the_inner_one_on_top() {
    let habits: [fn(&str, &str, usize) -> String; 3] = [
        |rater, structure, k| format!("{rater}/c{k}_{structure}.png"),
        |rater, structure, k| format!("{rater}/{structure}/c{k}.png"),
        |rater, structure, k| format!("labels/{rater}/{structure}_mask_c{k}_{rater}.png"),
    ];
    for name in habits {
        println!("{}", name("rater1", "cup", 1));
        let folder = Folder::new();
        for k in 1..=3 {
            folder.image(&format!("images/c{k}.png"), [1, 1, 4, 6], k);
            for rater in ["rater1", "rater2"] {
                folder.labels(&name(rater, "cup", k), SIZE, k, 255);
                folder.labels(&name(rater, "disc", k), SIZE, 10 + k, 255);
            }
        }
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.classes, ["background", "disc", "cup"]);
        let told = findings(&dataset);
        assert_eq!((told.len(), told[0].0), (1, Severity::Note));
        assert!(
            told[0].1.contains("disc, cup, the largest first; where they overlap, the later one counts"),
            "{told:?}"
        );
        let case = dataset.load(1).unwrap();
        assert_eq!(&case.raters[1][..13], [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
        // The config's order says which one is on top, and names that it changes keep their order.
        let open = |classes: &str| {
            let text = format!("[data]\npath = {:?}\nclasses = {classes}\n", folder.path());
            DataConfig::parse(&text).unwrap().open()
        };
        let other = open("[\"background\", \"cup\", \"disc\"]").unwrap();
        assert_eq!(&other.load(1).unwrap().raters[1][..3], [2, 2, 2]);
        let renamed = open("[\"other\", \"rim\", \"inner\"]").unwrap();
        assert_eq!(renamed.load(1).unwrap().raters, case.raters);
        let error = open("[\"background\", \"cup\"]").unwrap_err().to_string();
        assert!(error.contains("there are masks of 2 structures, but 2 classes are named"), "{error}");
        // A structure that a rater lacks.
        std::fs::remove_file(folder.path().join(name("rater2", "disc", 3))).unwrap();
        let told = findings(&Dataset::open(folder.path()).unwrap());
        assert!(told[0].1.starts_with("rater2 has files of other structures, but not of disc"), "{told:?}");
        assert!(told[0].1.ends_with(": c3"), "{told:?}");
    }
}

#[test]
fn a_second_version_of_a_file_is_no_structure() {
    let folder =
        set(|k| format!("images/c{k}.png"), &[&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")]);
    folder.labels("a/c1_old.png", SIZE, 1, 255);
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!((dataset.classes.len(), marked(&dataset)), (2, vec![vec![3, 4], vec![6, 7], vec![9, 10]]));
    assert_eq!(findings(&dataset), [(Severity::Warning, "left out: 1 file in a/ (c1_old.png)".to_owned())]);
}

#[test]
fn images_may_differ_in_size_but_not_from_their_masks() {
    let folder = Folder::new();
    for k in 1..=3 {
        folder.image(&format!("images/c{k}.png"), [1, 1, 4 + k, 6], k);
        ["a", "b"]
            .iter()
            .for_each(|rater| folder.labels(&format!("{rater}/c{k}.png"), [1, 4 + k, 6], k, 255));
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(findings(&dataset), []);
    folder.labels("b/c2.png", [1, 6, 7], 2, 255);
    let error = folder.anonymous(&dataset.load(1).unwrap_err().to_string());
    assert!(
        error.contains(
            "FOLDER/b/c2.png: the size is 1 × 6 × 7, but that of FOLDER/images/c2.png is 1 × 6 × 6"
        ),
        "{error}"
    );
}

/// Masks in red, masks with smooth edges, and masks in several colors.
#[test]
fn masks_are_drawn_in_many_ways() {
    let raters: [&dyn Fn(usize) -> String; 2] = [&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")];
    let folder = set(|k| format!("images/c{k}.png"), &raters);
    let color = |name: &str, shape: [usize; 4], value: &dyn Fn(usize) -> u8| {
        folder.volume(
            name,
            Voxels::U8((0..shape.iter().product()).map(value).collect()),
            shape,
            Geometry::default(),
        );
    };
    for k in 1..=3 {
        color(&format!("a/c{k}.png"), [3, 1, 4, 6], &|i| if i < 3 * k { 255 } else { 0 });
    }
    opened(&folder, ["a", "b"]);
    // An edge of two pixels, one of which is above the threshold.
    let edge = |i: usize| [255, 255, 255, 200, 100, 3].get(i).copied().unwrap_or(0);
    color("a/c1.png", [1, 1, 4, 6], &edge);
    (4..40).for_each(|k| {
        folder.image(&format!("images/c{k}.png"), [1, 1, 4, 6], k);
        folder.labels(&format!("a/c{k}.png"), SIZE, 5, 255);
    });
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!((&dataset.reading.coding, marked(&dataset)[0][0]), (&LabelCoding::Threshold(127), 4));
    let told = "values above 127 are foreground (data.label_threshold); 2 voxels in 1 file are neither near 0 nor near 255";
    assert!(dataset.findings[0].reason.ends_with(told), "{:?}", dataset.findings);
    // A config that has the threshold tells the same.
    let text =
        format!("[data]\npath = {:?}\nclasses = [\"a\", \"b\"]\nlabel_threshold = 127\n", folder.path());
    let known = DataConfig::parse(&text).unwrap().open().unwrap();
    assert!(findings(&known).iter().any(|(_, reason)| reason.ends_with(told)));
    // Red and green are two classes.
    color("a/c2.png", [3, 1, 4, 6], &|i| if i < 4 || (28..32).contains(&i) { 255 } else { 0 });
    let error = dataset.load(1).unwrap_err().to_string();
    assert!(error.contains("the mask has several colors"), "{error}");
    assert!(
        error.contains(
            "store a gray value for each class, or a mask for each structure in a folder of its own"
        ),
        "{error}"
    );
}

/// Patients with several slices each: folders below those of images and raters, which splits keep together.
#[test]
fn patients_may_have_folders() {
    let folder = set(
        |k| format!("images/Patient{}/slice{k}.png", k / 2),
        &[&|k| format!("a/patient{}/slice{k}.png", k / 2), &|k| {
            format!("b/Patient{}/slice{k}_mask.png", k / 2)
        }],
    );
    let dataset = opened(&folder, ["a", "b"]);
    let entries: Vec<(&str, &str)> =
        dataset.entries.iter().map(|e| (e.id.as_str(), e.group.as_str())).collect();
    assert_eq!(
        entries,
        [("Patient0/slice1", "Patient0"), ("Patient1/slice2", "Patient1"), ("Patient1/slice3", "Patient1")]
    );
}

/// The folders of structures may lie above those of raters.
#[test]
fn structures_above_raters_are_classes() {
    let folder = Folder::new();
    for case in 1..=3 {
        folder.image(&format!("images/c{case}.png"), [1, 1, 4, 6], case);
        for rater in 1..=2 {
            folder.labels(&format!("disc/rater{rater}/c{case}.png"), SIZE, 9 + rater, 255);
            folder.labels(&format!("cup/rater{rater}/c{case}.png"), SIZE, 4, 255);
        }
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.classes, ["background", "disc", "cup"]);
    assert_eq!(dataset.rater_names, ["rater1", "rater2"]);
    let raters = dataset.load(0).unwrap().raters;
    let count = |rater: usize, class: u8| raters[rater].iter().filter(|label| **label == class).count();
    assert_eq!([count(0, 1), count(0, 2), count(1, 1), count(1, 2)], [6, 4, 7, 4]);
}

/// Pictures that show what a rater marked are no label maps.
#[test]
fn previews_beside_masks_are_left_out() {
    let raters: [&dyn Fn(usize) -> String; 2] = [&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")];
    let folder = set(|k| format!("images/c{k}.png"), &raters);
    (1..=3).for_each(|k| folder.image(&format!("a/c{k}_overlay.png"), [3, 1, 4, 6], k));
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(marked(&dataset), [[3, 4], [6, 7], [9, 10]]);
    let left_out = "left out: 3 files in a/ (c1_overlay.png, c2_overlay.png, c3_overlay.png)";
    assert_eq!(findings(&dataset), [(Severity::Warning, left_out.to_owned())]);
}

#[test]
fn formats_that_are_not_read_are_told() {
    let folder = Folder::new();
    for case in 1..=3 {
        folder.image(&format!("images/c{case}.png"), [1, 1, 4, 6], case);
        folder.text(&format!("a/c{case}.bmp"), "BM");
        folder.text(&format!("b/c{case}.gif"), "GIF89a");
    }
    let error = folder.anonymous(&Dataset::open(folder.path()).unwrap_err().to_string());
    let told = "files such as a/c1.bmp have a format that is not read; save them as PNG or TIFF";
    assert!(error.ends_with(told), "{error}");
    (1..=3).for_each(|case| folder.labels(&format!("b/c{case}.png"), SIZE, 5, 255));
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(
        findings(&dataset),
        [
            (
                Severity::Warning,
                "left out: 3 files in a/ (c1.bmp, c2.bmp, c3.bmp), in a format that is not read".to_owned()
            ),
            (
                Severity::Warning,
                "left out: 3 files in b/ (c1.gif, c2.gif, c3.gif), in a format that is not read".to_owned()
            ),
        ]
    );
}

/// A TIFF of 4 × 6 pixels in red, green, blue and opacity, of which the first ones are opaque.
fn tiff_with_opacity(opaque: usize, red: u8) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    let tags: [(u16, u16, u32, u32); 9] = [
        (256, 4, 1, 6),
        (257, 4, 1, 4),
        (258, 3, 4, 200),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 208),
        (277, 3, 1, 4),
        (279, 4, 1, 96),
        (338, 3, 1, 2),
    ];
    bytes.extend((tags.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in tags {
        bytes.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    bytes.resize(200, 0);
    bytes.extend([8, 0].repeat(4));
    bytes.extend((0..24).flat_map(|i| if i < opaque { [red, 0, 0, 255] } else { [red, 0, 0, 0] }));
    bytes
}

/// As PNG masks: opacity counts where nothing else varies.
#[test]
fn tiff_masks_may_have_opacity() {
    let raters: [&dyn Fn(usize) -> String; 2] = [&|k| format!("a/c{k}.png"), &|k| format!("b/c{k}.png")];
    let folder = set(|k| format!("images/c{k}.png"), &raters);
    for k in 1..=3 {
        std::fs::remove_file(folder.path().join(format!("a/c{k}.png"))).unwrap();
        std::fs::write(folder.file(&format!("a/c{k}.tif")), tiff_with_opacity(3 * k, 255)).unwrap();
    }
    opened(&folder, ["a", "b"]);
}

/// Raters who drew the same structures with 3D Slicer in another order, and left one out.
#[test]
fn segments_are_matched_by_name() {
    let folder = Folder::new();
    let (names, others) = ([("tumor", 1), ("edema", 2)], [("Edema", 1), (" tumor", 3)]);
    for case in 1..=3 {
        folder.image(&format!("images/c{case}.nii"), [1, 1, 1, 6], case);
        folder.segments(&format!("alice/c{case}.seg.nrrd"), &[0, 1, 1, 2, 0, 0], [1, 6], &names);
        folder.segments(&format!("bob/c{case}.seg.nrrd"), &[0, 3, 3, 1, 1, 0], [1, 6], &others);
    }
    folder.segments("bob/c2.seg.nrrd", &[0, 5, 0, 0, 0, 0], [1, 6], &[("tumor", 5)]);
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.classes, ["background", "tumor", "edema"]);
    let raters = |dataset: &Dataset, case: usize| dataset.load(case).unwrap().raters;
    assert_eq!(raters(&dataset, 0), [[0, 1, 1, 2, 0, 0], [0, 1, 1, 2, 2, 0]]);
    assert_eq!(raters(&dataset, 1)[1], [0, 1, 0, 0, 0, 0]);
    assert_eq!(findings(&dataset), []);
    // The classes of a config are found by name as well, in its order.
    let config = |lines: &str| {
        DataConfig::parse(&format!("[data]\npath = {:?}\n{lines}\n", folder.path())).unwrap().open()
    };
    let known = config("classes = [\"background\", \"EDEMA\", \"tumor\"]").unwrap();
    assert_eq!(raters(&known, 0), [[0, 2, 2, 1, 0, 0], [0, 2, 2, 1, 1, 0]]);
    // A voxel of no segment.
    folder.segments("bob/c3.seg.nrrd", &[0, 3, 3, 1, 1, 9], [1, 6], &others);
    let error = dataset.load(2).unwrap_err().to_string();
    assert!(
        error.contains(
            "1 voxels have the label 9, but it must be that of one of its segments: Edema = 1, tumor = 3"
        ),
        "{error}"
    );
    // Classes of other names need values with the same names everywhere.
    let error = config("classes = [\"background\", \"a\", \"b\"]").unwrap_err().to_string();
    let told = "bob/c1.seg.nrrd: its segments are Edema = 1, tumor = 3, but those of FOLDER/alice/c1.seg.nrrd are tumor = 1, edema = 2";
    assert!(folder.anonymous(&error).contains(told), "{error}");
}

#[test]
fn segments_of_other_names_are_not_mixed() {
    let folder = Folder::new();
    for case in 1..=3 {
        folder.image(&format!("images/c{case}.nii"), [1, 1, 1, 4], case);
        folder.segments(&format!("a/c{case}.seg.nrrd"), &[0, 1, 2, 0], [1, 4], &[("tumor", 1), ("edema", 2)]);
        folder.segments(
            &format!("b/c{case}.seg.nrrd"),
            &[0, 1, 2, 0],
            [1, 4],
            &[("edema", 1), ("tumour", 2)],
        );
    }
    let error = folder.anonymous(&Dataset::open(folder.path()).unwrap_err().to_string());
    assert_eq!(
        error,
        "FOLDER/b/c1.seg.nrrd: its segments are edema = 1, tumour = 2, but those of FOLDER/a/c1.seg.nrrd are tumor = 1, \
         edema = 2; name the segments alike in 3D Slicer, or name all classes in the config (data.classes)"
    );
    // Values without names beside values with names have to be the same.
    for case in 1..=3 {
        std::fs::remove_file(folder.path().join(format!("b/c{case}.seg.nrrd"))).unwrap();
        folder.labels(&format!("b/c{case}.nii"), [1, 1, 4], 2, 2);
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.load(0).unwrap().raters, [[0, 1, 2, 0], [2, 2, 0, 0]]);
    folder.segments("a/c3.seg.nrrd", &[0, 1, 2, 0], [1, 4], &[("edema", 1), ("tumor", 2)]);
    let error = folder.anonymous(&Dataset::open(folder.path()).unwrap_err().to_string());
    let told = "FOLDER/a/c3.seg.nrrd: its segments are edema = 1, tumor = 2, but FOLDER/b/c1.nii has values without names, \
                which are read as background = 0, tumor = 1, edema = 2";
    assert!(error.contains(told), "{error}");
}
