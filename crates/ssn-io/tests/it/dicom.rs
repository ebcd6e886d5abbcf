//! DICOM series: folders are read as SimpleITK reads them, and every damage
//! ends in a sentence that names the file and what to do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ssn_io::{Limits, Voxels, dicom, files_of, read};
use tempfile::TempDir;

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

type Tag = (u16, u16);

const SYNTAX: Tag = (0x0002, 0x0010);
const DESCRIPTION: Tag = (0x0008, 0x103e);
const SERIES: Tag = (0x0020, 0x000e);
const NUMBER: Tag = (0x0020, 0x0011);
const POSITION: Tag = (0x0020, 0x0032);
const ORIENTATION: Tag = (0x0020, 0x0037);
const PHOTOMETRIC: Tag = (0x0028, 0x0004);
const FRAMES: Tag = (0x0028, 0x0008);
const ROWS: Tag = (0x0028, 0x0010);
const COLUMNS: Tag = (0x0028, 0x0011);
const SPACING: Tag = (0x0028, 0x0030);
const ALLOCATED: Tag = (0x0028, 0x0100);
const STORED: Tag = (0x0028, 0x0101);
const HIGH: Tag = (0x0028, 0x0102);
const SIGNED: Tag = (0x0028, 0x0103);
const INTERCEPT: Tag = (0x0028, 0x1052);
const SLOPE: Tag = (0x0028, 0x1053);
const PIXELS: Tag = (0x7fe0, 0x0010);

/// The elements of a file, in the order of their tags.
#[derive(Clone)]
struct File(BTreeMap<Tag, (&'static [u8; 2], Vec<u8>)>);

impl File {
    /// A slice of 2 × 3 values of 16 bits at a height: 100 · height + 0 … 5.
    fn slice(height: i16) -> Self {
        let mut file = Self(BTreeMap::new());
        file.text(SYNTAX, b"UI", "1.2.840.10008.1.2.1");
        file.text((0x0008, 0x0060), b"CS", "CT")
            .text(DESCRIPTION, b"LO", "chest")
            .text(SERIES, b"UI", "1.2.3");
        file.text(NUMBER, b"IS", "4").text(POSITION, b"DS", &format!("10\\20\\{height}"));
        file.text(ORIENTATION, b"DS", "1\\0\\0\\0\\1\\0").text(SPACING, b"DS", "0.5\\0.25");
        file.short((0x0028, 0x0002), 1).text(PHOTOMETRIC, b"CS", "MONOCHROME2");
        file.short(ROWS, 2)
            .short(COLUMNS, 3)
            .short(ALLOCATED, 16)
            .short(STORED, 16)
            .short(HIGH, 15)
            .short(SIGNED, 1);
        file.bytes(PIXELS, b"OW", (0..6).flat_map(|x: i16| (100 * height + x).to_le_bytes()).collect());
        file
    }

    fn text(&mut self, tag: Tag, kind: &'static [u8; 2], text: &str) -> &mut Self {
        let padding = if kind == b"UI" { "\0" } else { " " };
        self.bytes(tag, kind, format!("{text}{}", &padding[..text.len() % 2]).into_bytes())
    }

    fn short(&mut self, tag: Tag, number: u16) -> &mut Self {
        self.bytes(tag, b"US", number.to_le_bytes().to_vec())
    }

    fn bytes(&mut self, tag: Tag, kind: &'static [u8; 2], bytes: Vec<u8>) -> &mut Self {
        self.0.insert(tag, (kind, bytes));
        self
    }

    fn without(&mut self, tag: Tag) -> &mut Self {
        self.0.remove(&tag);
        self
    }

    fn encoded(&self) -> Vec<u8> {
        let element = |(tag, (kind, value)): (&Tag, &(&[u8; 2], Vec<u8>))| {
            let mut bytes = [tag.0.to_le_bytes(), tag.1.to_le_bytes(), **kind].concat();
            match (tag, *kind) {
                // Of encapsulated data: a table, the fragment, and the end.
                (&PIXELS, b"OB") => {
                    bytes.extend([
                        0, 0, 255, 255, 255, 255, 0xfe, 0xff, 0, 0xe0, 0, 0, 0, 0, 0xfe, 0xff, 0, 0xe0,
                    ]);
                    bytes.extend((value.len() as u32).to_le_bytes());
                    bytes.extend(value);
                    bytes.extend([0xfe, 0xff, 0xdd, 0xe0, 0, 0, 0, 0]);
                }
                (_, b"OW") => {
                    bytes.extend([0, 0]);
                    bytes.extend((value.len() as u32).to_le_bytes());
                    bytes.extend(value);
                }
                _ => {
                    bytes.extend((value.len() as u16).to_le_bytes());
                    bytes.extend(value);
                }
            }
            bytes
        };
        let [meta, rest] = [true, false].map(|is_meta| {
            self.0.iter().filter(|(tag, _)| (tag.0 == 2) == is_meta).flat_map(element).collect::<Vec<u8>>()
        });
        let length = (meta.len() as u32).to_le_bytes();
        [&[0; 128][..], b"DICM\x02\0\0\0UL\x04\0", &length, &meta, &rest].concat()
    }
}

/// A folder `series` with slices of these heights, named by their numbers, with something changed in one.
fn series(heights: &[i16], number: usize, change: impl Fn(&mut File) -> &mut File) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("series")).unwrap();
    for (place, &height) in heights.iter().enumerate() {
        let mut file = File::slice(height);
        if place == number {
            change(&mut file);
        }
        fs::write(folder.path().join(format!("series/{place}.dcm")), file.encoded()).unwrap();
    }
    folder
}

fn inside(folder: &TempDir) -> PathBuf {
    folder.path().join("series")
}

/// What is said about a folder, with its place left out.
fn said(path: &Path, limits: &Limits) -> String {
    let message = read(path, limits).unwrap_err().to_string();
    message.replace(&path.parent().unwrap().display().to_string(), "…")
}

#[test]
fn a_series_is_sorted_along_its_normal() {
    let folder = series(&[4, 0, 2], 9, |file| file);
    fs::write(inside(&folder).join("README"), "no slice").unwrap();
    fs::write(
        inside(&folder).join("DICOMDIR"),
        File(BTreeMap::from([(SYNTAX, (b"UI", b"1.2.840.10008.1.2.1\0".to_vec()))])).encoded(),
    )
    .unwrap();
    let image = read(&inside(&folder), &Limits::default()).unwrap();
    assert_eq!(image.shape, [1, 3, 2, 3]);
    assert_eq!(
        image.voxels,
        Voxels::I16([0, 200, 400].iter().flat_map(|h| (0..6).map(move |x| h + x)).collect())
    );
    // From LPS to RAS, and the columns of a row are the nearer ones.
    assert_eq!(image.geometry.spacing, [0.25, 0.5, 2.0]);
    assert_eq!(image.geometry.origin, [-10.0, -20.0, 0.0]);
    assert_eq!(image.geometry.direction, [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]);
    let files = files_of(&inside(&folder), &Limits::default()).unwrap();
    assert_eq!(files, ["1.dcm", "2.dcm", "0.dcm"].map(|name| inside(&folder).join(name)));
    let found = dicom::find_series(folder.path(), None, &Limits::default()).unwrap();
    assert_eq!((found.files.len(), found.number), (3, Some(4)));
    assert_eq!((&*found.description, &*found.modality, &*found.uid), ("chest", "CT", "1.2.3"));
    assert!(dicom::is_series_folder(&inside(&folder)) && !dicom::is_series_folder(folder.path()));
    let one = read(&inside(&folder).join("1.dcm"), &Limits::default()).unwrap();
    assert_eq!((one.shape, one.geometry.spacing), ([1, 1, 2, 3], [0.25, 0.5, 1.0]));
}

#[test]
fn slopes_apply_to_their_slices() {
    fn scaled(file: &mut File) -> &mut File {
        file.text(SLOPE, b"DS", "0.5").text(INTERCEPT, b"DS", "-3")
    }
    let folder = series(&[0, 1], 1, scaled);
    let image = read(&inside(&folder), &Limits::default()).unwrap();
    let expected = (0..6).map(|x| x as f32).chain((0..6).map(|x| 0.5 * (100 + x) as f32 - 3.0));
    assert_eq!((image.voxels, image.slope), (Voxels::F32(expected.collect()), 1.0));
    let folder = series(&[0], 0, scaled);
    let image = read(&inside(&folder), &Limits::default()).unwrap();
    assert_eq!((image.voxels.len(), image.slope, image.intercept), (6, 0.5, -3.0));
    assert_eq!(image.to_f32().data[2], -2.0);
}

#[test]
fn unused_bits_do_not_count() {
    let values = [0xf7ffu16, 0x0800, 0x1fff, 0x8001, 0, 0xffff].map(u16::to_le_bytes).concat();
    let read = |signed| {
        let folder = series(&[0], 0, |file| {
            file.short(STORED, 12).short(HIGH, 11).short(SIGNED, signed).bytes(PIXELS, b"OW", values.clone())
        });
        read(&inside(&folder), &Limits::default()).unwrap()
    };
    assert_eq!(read(0).voxels, Voxels::U16(vec![0x7ff, 0x800, 0xfff, 1, 0, 0xfff]));
    assert_eq!(read(1).voxels, Voxels::I16(vec![2047, -2048, -1, 1, 0, -1]));
}

#[test]
fn run_lengths_are_expanded() {
    // High bytes 1, 1, 1, 2, 2, 2, low bytes 5, 6, 7, 0, 0, 0.
    let mut data = [2u32, 64, 68].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    data.resize(64, 0);
    data.extend([254, 1, 254, 2, 2, 5, 6, 7, 128, 254, 0, 0]);
    let packed = |data: &[u8]| {
        let data = data.to_vec();
        series(&[0], 0, move |file| {
            file.text(SYNTAX, b"UI", "1.2.840.10008.1.2.5").bytes(PIXELS, b"OB", data.clone())
        })
    };
    let image = read(&inside(&packed(&data)), &Limits::default()).unwrap();
    assert_eq!(image.voxels, Voxels::I16(vec![261, 262, 263, 512, 512, 512]));
    for cut in 1..data.len() - 1 {
        let message = said(&inside(&packed(&data[..cut])), &Limits::default());
        assert!(message.starts_with("…/series/0.dcm: the DICOM file is damaged"), "{cut}: {message}");
    }
}

#[test]
fn a_series_is_chosen_by_name() {
    let folder = series(&[0, 1, 2, 3], 9, |file| file);
    for (place, height) in [(4, 0), (5, 1)] {
        let mut file = File::slice(height);
        file.text(SERIES, b"UI", "1.2.4").text(DESCRIPTION, b"LO", "Scout \x1b[2J").text(NUMBER, b"IS", "1");
        fs::write(inside(&folder).join(format!("{place}")), file.encoded()).unwrap();
    }
    let path = inside(&folder);
    let chosen = |name: &str| path.with_file_name(format!("series#{name}"));
    for name in ["chest", "CHEST", "4", "1.2.3"] {
        assert_eq!(read(&chosen(name), &Limits::default()).unwrap().shape[1], 4, "{name}");
    }
    assert_eq!(read(&chosen("1"), &Limits::default()).unwrap().shape[1], 2);
    insta::assert_snapshot!(
        [said(&path, &Limits::default()), said(&chosen("head"), &Limits::default()),].join("\n")
    );
}

#[test]
fn damage_ends_in_a_sentence() {
    let usual = Limits::default();
    let changed =
        |change: &dyn Fn(&mut File) -> &mut File| said(&inside(&series(&[0, 1, 2, 3], 2, change)), &usual);
    let heights = |heights: &[i16]| said(&inside(&series(heights, 9, |file| file)), &usual);
    let bytes = |change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let folder = series(&[0, 1, 2], 9, |file| file);
        let path = inside(&folder).join("1.dcm");
        fs::write(&path, change(fs::read(&path).unwrap())).unwrap();
        said(&inside(&folder), &usual)
    };
    let syntax = |uid: &str| changed(&|file| file.text(SYNTAX, b"UI", uid));
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join("series")).unwrap();
    let small = Limits { values: 23, ..Limits::default() };
    let few = Limits { members: 3, ..Limits::default() };
    let messages = [
        ("a missing slice", heights(&[0, 1, 2, 4, 5])),
        ("a slice twice", heights(&[0, 1, 2, 1])),
        ("uneven", heights(&[0, 10, 21, 30])),
        ("another size", changed(&|file| file.short(ROWS, 3))),
        ("another orientation", changed(&|file| file.text(ORIENTATION, b"DS", "1\\0\\0\\0\\0.6\\0.8"))),
        ("no orientation", changed(&|file| file.text(ORIENTATION, b"DS", "1\\0\\0\\1\\0\\0"))),
        ("zero orientation", changed(&|file| file.text(ORIENTATION, b"DS", "0\\0\\0\\0\\0\\0"))),
        ("another spacing", changed(&|file| file.text(SPACING, b"DS", "0.5\\0.26"))),
        ("no spacing", changed(&|file| file.text(SPACING, b"DS", "0\\x"))),
        ("tilted", changed(&|file| file.text(POSITION, b"DS", "10\\20.5\\2"))),
        ("no position", changed(&|file| file.without(POSITION))),
        ("no pixel spacing", changed(&|file| file.without(SPACING))),
        ("no pixel data", changed(&|file| file.without(PIXELS))),
        ("short pixel data", changed(&|file| file.bytes(PIXELS, b"OW", vec![0; 10]))),
        ("long pixel data", changed(&|file| file.bytes(PIXELS, b"OW", vec![0; 24]))),
        ("another type", changed(&|file| file.short(SIGNED, 0))),
        ("JPEG 2000", syntax("1.2.840.10008.1.2.4.90")),
        ("deflated", syntax("1.2.840.10008.1.2.1.99")),
        ("unknown syntax", syntax("1.2.3")),
        ("colors", changed(&|file| file.text(PHOTOMETRIC, b"CS", "RGB"))),
        ("inverted", changed(&|file| file.text(PHOTOMETRIC, b"CS", "MONOCHROME1"))),
        ("many frames", changed(&|file| file.text(FRAMES, b"IS", "40"))),
        ("12 bits", changed(&|file| file.short(ALLOCATED, 12))),
        ("high bit", changed(&|file| file.short(HIGH, 11))),
        ("slope 0", changed(&|file| file.text(SLOPE, b"DS", "0"))),
        ("cut off", bytes(&|bytes| bytes[..bytes.len() - 5].to_vec())),
        ("cut off in the header", bytes(&|bytes| bytes[..300].to_vec())),
        ("cut off at the start", bytes(&|bytes| bytes[..135].to_vec())),
        ("empty", bytes(&|_| vec![])),
        ("not DICOM", bytes(&|_| b"<html>".repeat(50))),
        (
            "claims 4 GB",
            bytes(&|mut bytes| {
                let at = bytes.len() - 12 - 4;
                bytes[at..at + 4].copy_from_slice(&[0xf0, 255, 255, 255]);
                bytes
            }),
        ),
        ("an empty folder", said(&empty.path().join("series"), &usual)),
        ("absurd size", said(&inside(&series(&[0, 1, 2, 3], 9, |file| file)), &small)),
        ("many files", said(&inside(&series(&[0, 1, 2, 3], 9, |file| file)), &few)),
    ];
    let lines: Vec<String> =
        messages.iter().map(|(damage, message)| format!("{damage}: {message}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

const ATTACKS: [(&str, &str); 22] = [
    ("columns-zero.dcm", "positive along every axis"),
    ("cut-in-sequence.dcm", "ImagePositionPatient is missing"),
    ("deep-sequences.dcm", "PixelData is missing"),
    ("element-claims-much.dcm", "an element of the header needs 4294967280 bytes"),
    ("escape-sequence.dcm", r#""\u{1b}]0;owned\u{7}""#),
    ("fragment-claims-much.dcm", "the pixel data needs 4294967280 bytes"),
    ("jpeg-huge-claim.dcm", "65535 × 65535 pixels in a file of 17 bytes"),
    ("jpeg-other-size.dcm", "another size than it says"),
    ("many-fragments.dcm", "PixelData is missing"),
    ("meta-length-huge.dcm", "the length of its first group"),
    ("meta-length-into-data.dcm", "an element of the header needs"),
    ("pixel-data-claims-much.dcm", "the pixel data needs 4294967280 bytes"),
    ("pixel-data-twice.dcm", "the pixel data is 24 bytes long"),
    ("position-infinite.dcm", "finite numbers"),
    ("position-too-far.dcm", "at most 1e12 mm from zero"),
    ("rows-claim-much.dcm", "the pixel data needs 8589672450 bytes"),
    ("run-lengths-claim-much.dcm", "run lengths do not fit"),
    ("run-lengths-outside.dcm", "run lengths do not fit"),
    ("run-lengths-too-long.dcm", "run lengths do not fit"),
    ("spacing-nan.dcm", "finite numbers"),
    ("spacing-negative.dcm", "a distance from 1e-9 to 1e9 mm"),
    ("syntax-missing.dcm", "the transfer syntax is not supported"),
];

#[test]
fn hostile_files_are_refused_with_a_reason() {
    let refusal = |path: &Path| read(path, &Limits::default()).unwrap_err().problem.to_string();
    hostile_files::all("dicom", &ATTACKS, refusal);
}

/// A size that a header claims is refused before memory is taken for it.
#[test]
fn claims_cost_nothing() {
    let folder = series(&[0], 0, |file| file.short(ROWS, 65535).short(COLUMNS, 65535));
    let message = said(&inside(&folder), &Limits::default());
    assert!(message.contains("the pixel data needs 8589672450 bytes, but only 12"), "{message}");
}

#[test]
fn pipes_are_not_opened() {
    let folder = series(&[0, 1], 9, |file| file);
    let pipe = inside(&folder).join("pipe.dcm");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(read(&inside(&folder), &Limits::default()).unwrap().shape[1], 2);
    assert!(said(&pipe, &Limits::default()).contains("no plain file"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_attacks_never_panic(
        changes in proptest::collection::vec(change(any::<u8>()), 1..6),
        seed in proptest::sample::select(ATTACKS.to_vec()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dcm");
        let attack = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/dicom").join(seed.0);
        fs::write(&path, changed(fs::read(attack).unwrap(), &changes)).unwrap();
        if let Ok(image) = read(&path, &Limits::default()) {
            prop_assert_eq!(image.voxels.len(), image.shape.iter().product::<usize>());
        }
    }

    #[test]
    fn changed_bytes_never_panic(changes in proptest::collection::vec(change(any::<u8>()), 1..6), packed: bool) {
        let mut file = File::slice(3);
        if packed {
            let data = [&[2, 0, 0, 0, 64, 0, 0, 0, 68][..], &[0; 55], &[254, 1, 254, 2, 250, 0]].concat();
            file.text(SYNTAX, b"UI", "1.2.840.10008.1.2.5").bytes(PIXELS, b"OB", data);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dcm");
        fs::write(&path, changed(file.encoded(), &changes)).unwrap();
        if let Ok(image) = read(&path, &Limits::default()) {
            prop_assert_eq!(image.voxels.len(), image.shape.iter().product::<usize>());
        }
    }
}
