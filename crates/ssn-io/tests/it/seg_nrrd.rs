//! Segmentations of 3D Slicer: names and labels are read, layers are refused, and what is written reads the same.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use ssn_io::{Geometry, Image, Limits, Segment, Voxels, read, read_segments, seg_nrrd, write, write_labels};

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

/// A file as 3D Slicer writes it, without compression.
fn slicer(sizes: &str, kinds: &str, segments: &str, data: &[u8]) -> Vec<u8> {
    let none = if kinds.starts_with("list") { "none " } else { "" };
    let axes = sizes.split(' ').count();
    let header = format!(
        "NRRD0004\n# Complete NRRD file format specification at:\n# http://teem.sourceforge.net/nrrd/format.html\n\
         type: unsigned char\ndimension: {axes}\nspace: left-posterior-superior\nsizes: {sizes}\n\
         space directions: {none}(1,0,0) (0,1,0) (0,0,2)\nkinds: {kinds}\nencoding: raw\nspace origin: (1,2,3)\n\
         Segmentation_ContainedRepresentationNames:=Binary labelmap|\nSegmentation_MasterRepresentation:=Binary labelmap\n\
         {segments}\n"
    );
    [header.as_bytes(), data].concat()
}

const SEGMENTS: &str = "Segment0_Color:=1 0 0\nSegment0_Extent:=0 1 0 1 0 0\nSegment0_ID:=Segment_1\nSegment0_LabelValue:=2\n\
                        Segment0_Layer:=0\nSegment0_Name:=edema: left\nSegment0_Tags:=Segmentation.Status:inprogress|\n\
                        Segment1_ID:=s\nSegment1_LabelValue:=5\nSegment1_Layer:=0\nSegment1_Name:=tumor\\\\core\\n2\n";

fn segment(name: &str, label: u8) -> Segment {
    Segment { name: name.to_owned(), label }
}

#[test]
fn labels_and_names_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.seg.nrrd");
    fs::write(&path, slicer("2 2 1", "domain domain domain", SEGMENTS, &[0, 2, 5, 2])).unwrap();
    let image = read(&path, &Limits::default()).unwrap();
    assert_eq!((image.shape, image.to_labels().unwrap().data), ([1, 1, 2, 2], vec![0, 2, 5, 2]));
    assert_eq!((image.geometry.spacing, image.geometry.origin), ([1.0, 1.0, 2.0], [-1.0, -2.0, 3.0]));
    let segments = read_segments(&path, &Limits::default()).unwrap();
    assert_eq!(segments, [segment("edema: left", 2), segment("tumor\\core\n2", 5)]);
    assert_eq!(read_segments(&folder.path().join("other.nrrd"), &Limits::default()).unwrap(), []);
}

#[test]
fn what_is_no_label_map_is_refused() {
    let layers = "Segment0_LabelValue:=1\nSegment0_Layer:=0\nSegment1_LabelValue:=1\nSegment1_Layer:=1\n";
    let said = |bytes: Vec<u8>| seg_nrrd::parse(&bytes, &Limits::default()).unwrap_err().to_string();
    let one = |segments: &str| said(slicer("1 1 1", "domain domain domain", segments, &[0]));
    insta::assert_snapshot!(
        [
            said(slicer("2 1 1 1", "list domain domain domain", layers, &[0, 0])),
            one("Segment0_Name:=a\nSegment0_LabelValue:=256\n"),
            one("Segment0_Name:=a\nSegment0_LabelValue:=0\n"),
            one("Segment0_LabelValue:=3\nSegment1_LabelValue:=3\nSegment1_Name:=b\n"),
        ]
        .join("\n")
    );
}

#[test]
fn hostile_files_are_refused_with_a_reason() {
    let refusal = |path: &Path| read(path, &Limits::default()).unwrap_err().problem.to_string();
    hostile_files::all("seg_nrrd", &ATTACKS, refusal);
}

const ATTACKS: [(&str, &str); 11] = [
    ("escape-sequence.seg.nrrd", r#""\u{1b}[2J" of "\u{1b}]0;owned\u{7}""#),
    ("gzip-bomb.seg.nrrd", "as long as the header says"),
    ("key-twice.seg.nrrd", r#""Segment0_LabelValue" twice, first as "1""#),
    ("label-huge.seg.nrrd", "from 1 to 255"),
    ("label-is-background.seg.nrrd", "from 1 to 255"),
    ("label-negative.seg.nrrd", "from 1 to 255"),
    ("label-twice.seg.nrrd", "another one for every segment"),
    ("layers-claim-much.seg.nrrd", "2000000000 layers, which may overlap"),
    ("layers-overlap.seg.nrrd", "2 layers, which may overlap"),
    ("short-by-one.seg.nrrd", "cut off"),
    ("sizes-claim-much.seg.nrrd", "cut off"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec(change(any::<u8>()), 1..6),
        seed in proptest::sample::select(ATTACKS.to_vec()),
        is_good: bool,
    ) {
        let attack = format!("{}/tests/attacks/seg_nrrd/{}", env!("CARGO_MANIFEST_DIR"), seed.0);
        let good = slicer("2 2 1", "domain domain domain", SEGMENTS, &[0, 2, 5, 2]);
        let bytes = changed(if is_good { good } else { fs::read(attack).unwrap() }, &changes);
        if let Ok(image) = seg_nrrd::parse(&bytes, &Limits::default()) {
            prop_assert_eq!(image.voxels.len(), image.shape.iter().product::<usize>());
            let segments = seg_nrrd::parse_segments(&bytes, &Limits::default()).unwrap();
            if image.to_labels().is_ok() {
                let again = seg_nrrd::encode(&image, &segments).unwrap();
                prop_assert_eq!(seg_nrrd::parse_segments(&again, &Limits::default()).unwrap(), segments);
            }
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.seg.nrrd");
    let geometry = Geometry { spacing: [0.5, 0.75, 2.0], origin: [-10.0, 20.0, 30.5], ..Geometry::default() };
    let labels = vec![0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1];
    let image = Image::new(Voxels::U8(labels.clone()), [1, 2, 2, 3], geometry, &Limits::default()).unwrap();
    let segments = [segment("a \\ b\nc", 1), segment("empty", 7)];
    write_labels(&path, &image, &segments).unwrap();
    let back = read(&path, &Limits::default()).unwrap();
    assert_eq!((back.voxels, back.geometry), (image.voxels.clone(), geometry));
    assert_eq!(read_segments(&path, &Limits::default()).unwrap(), segments);
    let bytes = fs::read(&path).unwrap();
    let header =
        String::from_utf8_lossy(&bytes[..bytes.windows(2).position(|pair| pair == b"\n\n").unwrap()]);
    insta::assert_snapshot!(header);
    // Without names it is a label map all the same.
    write(&path, &image).unwrap();
    assert_eq!(read(&path, &Limits::default()).unwrap().to_labels().unwrap().data, labels);
    assert!(write_labels(&path, &image, &[segment("x", 0)]).unwrap_err().to_string().contains("background"));
}
