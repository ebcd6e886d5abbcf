//! The resolver reads folders like the code before it: small datasets made at random, and hashes of the old results.
//! It goes when the old code is gone.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use ssn_data::{Dataset, DatasetOverrides, FileContent, FilesByCase};
use ssn_io::{Geometry, Voxels};

use crate::common::Folder;

const EXPECTED: &str = include_str!("resolver_agrees.txt");
const TREES: u64 = 400;

/// A generator of numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Files of a dataset: each a path, and whether it is a label map.
type Files = Vec<(String, bool)>;

fn id(style: usize, k: usize) -> String {
    match style {
        0 => format!("case{k}"),
        1 => format!("Case_0{k}"),
        2 => format!("IMG_000{k}"),
        3 => format!("p-{k}"),
        4 => format!("case_{}_{}", k.div_ceil(2), if k.is_multiple_of(2) { "left" } else { "right" }),
        5 => format!("{k}"),
        6 => format!("slice_000{k}"),
        7 => format!("sub {k}.x"),
        _ => format!("tumour_{k}"),
    }
}

const IMAGES: [&str; 10] =
    ["images", "Images", "img", "imagesTr", "scans", "fundus", "stare-images", "raw", "image_1", "."];
const LABELS: [&str; 10] = [
    "labels",
    "Label",
    "gt",
    "masks",
    "mask",
    "segmentations",
    "annotation",
    "GroundTruth",
    "ground_truth",
    "seg",
];
const RATERS: [&str; 22] = [
    "alice",
    "bob",
    "Rater1",
    "rater2",
    "expert_1",
    "Expert_2",
    "A",
    "B",
    "1",
    "2",
    "reader 1",
    "gt2",
    "observer",
    "labels-ah",
    "consensus",
    "STAPLE",
    "overlay",
    "predictions",
    "masks",
    "gt",
    "roi",
    "mean",
];
const MARKS: [&str; 26] = [
    "{}",
    "{}",
    "{}",
    "{}_0",
    "{}_1",
    "{}_2",
    "{}_r1",
    "{}_r2",
    "{}_A",
    "{}_B",
    "{}-l1",
    "{}_seg",
    "Seg_{}",
    "{}_mask",
    "{}_rater1",
    "{}_seg_2",
    "{}_cup",
    "{}_disc",
    "cup_mask_{}",
    "{}_alice",
    "{}_overlay",
    "{}_old",
    "mask-{}",
    "{} seg",
    "{}_expert3",
    "{}.gt",
];
const CHANNELS: [&[&str]; 6] =
    [&["{}"], &["{}"], &["{}_0000", "{}_0001"], &["{}_flair", "{}_t1"], &["flair", "t1"], &["image"]];
const CASE_MARKS: [&str; 20] = [
    "seg",
    "{}_seg",
    "seg_1",
    "seg_2",
    "annotation_1",
    "annotation_2",
    "mask",
    "{}_mask",
    "brainmask",
    "brain_mask",
    "roi",
    "label",
    "gt",
    "OTMultiClass",
    "tumor_seg",
    "drawn",
    "seg_alice",
    "seg_bob",
    "manual",
    "rater3",
];

/// Paths of a random dataset with `cases` cases.
fn files(dice: &mut Dice) -> Files {
    let (mut found, cases, style) = (Files::new(), 1 + dice.below(4), dice.below(9));
    let ending = dice.pick(&["png", "png", "png", "tif", "nii", "mha"]);
    let kind = dice.below(9);
    let (pictures, labels) = (dice.pick(&IMAGES), dice.pick(&LABELS));
    let channels = CHANNELS[if kind < 5 { dice.below(4) } else { dice.below(6) }];
    let marks: Vec<&str> = (0..1 + dice.below(3)).map(|_| dice.pick(&MARKS)).collect();
    let case_marks: Vec<&str> = (0..1 + dice.below(3)).map(|_| dice.pick(&CASE_MARKS)).collect();
    let raters: Vec<&str> = (0..1 + dice.below(4)).map(|_| dice.pick(&RATERS)).collect();
    let (parts, below, nested) = (dice.one_in(4), dice.one_in(2), dice.one_in(3));
    let (structures, patients, grades) = (dice.one_in(5), dice.one_in(5), dice.one_in(4));
    for k in 1..=cases {
        let id = id(style, k);
        let part = if parts { format!("{}/", ["train", "val", "Test_set"][k % 3]) } else { String::new() };
        let (above, below) = if below { (String::new(), part) } else { (part, String::new()) };
        let patient = if patients { format!("P{}/", k / 2) } else { String::new() };
        let named = |name: &str| name.replace("{}", &id);
        let mut add = |path: String, is_map: bool| found.push((format!("{path}.{ending}"), is_map));
        match kind {
            0 | 1 => {
                channels.iter().for_each(|c| add(format!("{above}{pictures}/{below}{}", named(c)), false));
                marks.iter().for_each(|m| add(format!("{above}{labels}/{below}{}", named(m)), true));
            }
            2..=4 => {
                channels
                    .iter()
                    .for_each(|c| add(format!("{above}{pictures}/{below}{patient}{}", named(c)), false));
                for (number, rater) in raters.iter().enumerate() {
                    let folder = if nested { format!("{labels}/{rater}") } else { (*rater).to_owned() };
                    if structures {
                        for structure in ["cup", "disc"] {
                            add(format!("{above}{folder}/{structure}/{below}{patient}{}", named("{}")), true);
                        }
                    } else {
                        let mark = marks[number % marks.len()];
                        add(format!("{above}{folder}/{below}{patient}{}", named(mark)), true);
                    }
                }
            }
            5 | 6 => {
                let grade = if grades { ["HGG/", "LGG/"][k % 2] } else { "" };
                channels.iter().for_each(|c| add(format!("{above}{grade}{id}/{}", named(c)), false));
                case_marks.iter().for_each(|m| add(format!("{above}{grade}{id}/{}", named(m)), true));
            }
            7 => {
                let folder = if nested { String::new() } else { format!("{above}{}/", raters[0]) };
                channels.iter().for_each(|c| add(format!("{folder}{}", named(c)), false));
                marks.iter().for_each(|m| add(format!("{folder}{}", named(m)), true));
            }
            _ => match dice.below(4) {
                0 => {
                    add(format!("{above}{id}/image"), false);
                    (1..=2).for_each(|r| add(format!("{above}{id}/task01_seg0{r}"), true));
                    (1..=2).for_each(|r| add(format!("{above}{id}/task02_seg0{r}"), true));
                }
                1 => {
                    add(format!("{above}{id}/image_{k}"), false);
                    (0..2).for_each(|r| add(format!("{above}{id}/label{r}_"), true));
                }
                2 => {
                    add(format!("{above}images/P{}/{id}", k / 2), false);
                    (1..=2).for_each(|r| add(format!("{above}gt/P{}/{id}_l{r}", k / 2), true));
                }
                _ => {
                    let session = if patients { "/ses-1" } else { "" };
                    let name = format!("sub-{k}{}", session.replace('/', "_"));
                    add(format!("sub-{k}{session}/anat/{name}_T1w"), false);
                    add(format!("derivatives/anna/sub-{k}{session}/anat/{name}_dseg"), true);
                    add(format!("derivatives/ben/sub-{k}{session}/anat/{name}_desc-x_mask"), true);
                }
            },
        }
    }
    // What people do to datasets.
    while dice.one_in(2) && !found.is_empty() {
        let place = dice.below(found.len());
        match dice.below(7) {
            0 | 1 => drop(found.remove(place)),
            2 => {
                let (path, is_map) = found[place].clone();
                found.push((path.replace(&format!(".{ending}"), &format!("_old.{ending}")), is_map));
            }
            3 => found[place].0 = found[place].0.replace(&format!(".{ending}"), ".tif"),
            4 => found.push((format!("{}/stray.{ending}", pictures), false)),
            5 => {
                let (path, is_map) = found[place].clone();
                found.push((path.replace("case", "CASE"), is_map));
            }
            _ => found.push((format!("other/{}.bmp", id(style, 1)), false)),
        }
    }
    found
}

fn write_files(folder: &Folder, files: &Files) -> BTreeSet<String> {
    let mut written = BTreeSet::new();
    for (number, (path, is_map)) in files.iter().enumerate() {
        let path = path.replace("./", "");
        if path.ends_with(".bmp") {
            folder.text(&path, "BM");
        } else if !written.contains(&path) {
            let value = |i: usize| match is_map {
                true => 255 * u8::from(i < 20 + number),
                false => (i * 7 % 251) as u8,
            };
            let voxels = Voxels::U8((0..480).map(value).collect());
            folder.volume(&path, voxels, [1, 1, 20, 24], Geometry::default());
        }
        written.insert(path);
    }
    written
}

/// Everything that recognition answers for a folder.
fn answers(folder: &Folder, cases: &[String]) -> String {
    let mut text = String::new();
    let mut tell = |name: &str, value: &dyn Debug| writeln!(text, "{name}: {value:?}").unwrap();
    tell("recognized", &Dataset::is_recognized(folder.path()));
    let opened = Dataset::open(folder.path()).map_err(|error| error.to_string());
    tell("left out", &opened.as_ref().map(Dataset::left_out));
    tell("open", &opened);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let paths: [PathBuf; 1] = [folder.path().to_owned()];
    for channels in [&["image"][..], &["flair", "t1"], &["channel_0", "channel_1"]] {
        let images = Dataset::of_images(&paths, &texts(channels), &texts(&["background", "foreground"]));
        tell("images", &images.map_err(|error| error.to_string()));
    }
    let labels = Dataset::of_labels(folder.path(), &DatasetOverrides::default());
    tell("labels", &labels.map_err(|error| error.to_string()));
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    for known in [None, Some(&cases[..])] {
        let mut below = vec![folder.path().to_owned()];
        below.extend(std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()));
        below.sort();
        for path in below {
            let found = FilesByCase::find(&path, FileContent::Labels, known);
            tell("files", &found.map_err(|error| error.to_string()));
        }
    }
    let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
    folder.anonymous(&text).replace(&name, "FOLDER")
}

#[test]
fn folders_are_read_as_before() {
    let count = std::env::var("SSN_AGREE_TREES").map_or(TREES, |count| count.parse().unwrap());
    let (mut hashes, mut all) = (String::new(), String::new());
    for seed in 0..count {
        let folder = Folder::new();
        let mut dice = Dice(seed << 32);
        let written = write_files(&folder, &files(&mut dice));
        let cases: Vec<String> = (1..=3).map(|k| id(seed as usize % 9, k)).collect();
        let answers = answers(&folder, &cases);
        let hash: String =
            Sha256::digest(&answers).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        writeln!(hashes, "{seed} {hash}").unwrap();
        writeln!(all, "## {seed}\n{written:?}\n{answers}").unwrap();
    }
    if let Some(path) = std::env::var_os("SSN_AGREE_OUT") {
        std::fs::write(path, all).unwrap();
    }
    if std::env::var_os("SSN_AGREE_RECORD").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/resolver_agrees.txt"), hashes).unwrap();
    } else if count == TREES {
        assert_eq!(hashes.lines().count(), EXPECTED.lines().count());
        let differing: Vec<&str> = hashes
            .lines()
            .zip(EXPECTED.lines())
            .filter(|(new, old)| new != old)
            .map(|(new, _)| new)
            .collect();
        assert!(differing.is_empty(), "{differing:?}");
    }
}
