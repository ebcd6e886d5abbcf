//! NRRD: hand-made files read as they should, images go round, and hostile or damaged bytes are refused.

use proptest::prelude::*;
use ssn_io::formats::nrrd;
use ssn_io::{Image, Limits, Tolerance, VoxelType, Voxels};

use crate::changed_bytes::{change, changed};
use crate::text_format::{TextFormat, gzip};

/// Distances and directions are computed from vectors in the file; only their last digits may change.
const CLOSE: Tolerance = Tolerance { spacing: 1e-12, origin: 1e-12, direction: 1e-12 };
const NRRD: TextFormat = TextFormat {
    name: "nrrd",
    parse: nrrd::parse,
    parse_header: nrrd::parse_header,
    encode: nrrd::encode,
    encode_compressed: nrrd::encode_gzip,
    tolerance: CLOSE,
};

fn file(lines: &[&str], data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("NRRD0004\n{}\n\n", lines.join("\n")).into_bytes();
    bytes.extend_from_slice(data);
    bytes
}

fn parse(lines: &[&str], data: &[u8]) -> Image {
    NRRD.read(&file(lines, data)).unwrap()
}

fn refusal(lines: &[&str], data: &[u8]) -> String {
    NRRD.refusal(&file(lines, data))
}

const SHORTS: [&str; 5] = ["type: short", "dimension: 3", "sizes: 2 1 2", "endian: little", "encoding: raw"];

#[test]
fn every_type_goes_round() {
    NRRD.every_type_goes_round();
}

#[test]
fn a_scaled_image_is_written_as_its_values() {
    NRRD.a_scaled_image_is_written_as_its_values();
}

#[test]
fn a_hand_made_file_is_read() {
    let lines =
        ["# note", "type: uint16", "dimension: 3", "sizes: 2 1 2", "endian: big", "encoding: RAW", "k:=v: w"];
    let image = parse(&lines, &[0, 1, 0, 2, 0, 3, 1, 0]);
    assert_eq!(image.voxels, Voxels::U16(vec![1, 2, 3, 256]));
    assert_eq!(image.shape, [1, 2, 1, 2]);
    assert_eq!(image.geometry.direction, [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]);
}

#[test]
fn lines_become_fields() {
    let rest = "dimension: 2\nsizes: 1 1\nencoding: raw\nspace:=x\na: b:=c: d\ncontent: a:=b";
    let text = format!("NRRD0005\r\n# note\r\nType: float\r\nENDIAN: little\n{rest}\r\n\r\n\0\0\u{1}\0");
    let image = NRRD.read(text.as_bytes()).unwrap();
    assert_eq!(image.voxels, Voxels::F32(vec![f32::from_bits(1 << 16)]));
    let header = |text: &str| nrrd::parse_header(text.as_bytes(), &Limits::default()).unwrap().shape();
    assert_eq!(header(&format!("NRRD0001\ntype: uchar\n{rest}")), [1, 1, 1, 1], "without an empty line");
}

#[test]
fn what_is_no_header_is_refused() {
    for (text, fragment) in [
        ("", "is this a NRRD file"),
        ("NRRD0006\n", "NRRD0001 to NRRD0005"),
        ("NRRD0000\n", "NRRD0001 to NRRD0005"),
        ("NRRD00041\n", "is this a NRRD file"),
        ("NRRD0004\ntype: float\nTYPE: short\n\n", "second line for a field, \"TYPE: short\""),
        ("NRRD0004\nbyte skip: 1\nbyteskip: 1\n\n", "second line for a field"),
        ("NRRD0004\ncenters: cell\ncenterings: cell\n\n", "second line for a field"),
        ("NRRD0004\ntype: float\ncontent: x\u{1b}\ncontent: y\u{1b}\n\n", r#"field, "content: y\u{1b}""#),
        ("NRRD0004\ntype:float\n\n", "`field: text`"),
        ("NRRD0004\nkind: domain\n\n", "with a field of the format"),
        ("NRRD0004\ndata file: LIST\na.raw\nb.raw\n", "several files"),
        ("NRRD0004\ndimension: 2\n\n", "type is missing"),
        ("NRRD0004\ntype: float\n\n", "dimension is missing"),
    ] {
        let message = NRRD.refusal(text.as_bytes());
        assert!(message.contains(fragment), "{text:?}: {message}");
    }
    assert!(NRRD.refusal(b"NRRD0004\ncontent: \xff\n\n").contains("a line of the header"));
    let long = format!("NRRD0004\ntype: \u{1b}[2J{}\n\n", "x".repeat(1000));
    let message = NRRD.refusal(long.as_bytes());
    assert!(message.len() < 300 && !message.contains('\u{1b}') && message.contains("xxx\"…"), "{message}");
}

#[test]
fn a_long_header_meets_the_limit() {
    let lines = format!("NRRD0004\n# {}\n\n", "x".repeat(200)).into_bytes();
    NRRD.a_long_header_meets_the_limit(&[lines, vec![b'x'; 200]]);
}

#[test]
fn only_plain_names_of_data_files_pass() {
    NRRD.only_plain_names_of_data_files_pass(|name| {
        file(&[&SHORTS[..], &[&format!("data file: {name}")]].concat(), &[])
    });
}

#[test]
fn numbers_are_counted_and_parsed() {
    for bad in ["4 3", "4 3 2 1", "4 3 x", "4 3 -2", "4 3 2.0", ""] {
        let sizes = format!("sizes: {bad}");
        let message = refusal(&["type: uchar", "dimension: 3", &sizes, "encoding: raw"], &[]);
        assert!(
            message.contains("sizes is") && message.contains("one whole number for each axis"),
            "{message}"
        );
    }
    assert_eq!(
        parse(&["type: int8", "dimension: 3", "sizes:  4  3\t2 ", "encoding: raw"], &[0; 24]).shape,
        [1, 2, 3, 4]
    );
}

#[test]
fn axes_are_in_space_or_hold_channels() {
    let shape = |sizes: &str, lines: &[&str]| {
        let dimension = format!("dimension: {}", sizes.split(' ').count());
        let sizes = format!("sizes: {sizes}");
        let all = [&["type: uchar", &dimension, &sizes, "encoding: raw"], lines].concat();
        nrrd::parse_header(&file(&all, &[]), &Limits::default()).map(|header| header.shape())
    };
    let found = |sizes: &str, lines: &[&str]| shape(sizes, lines).unwrap();
    assert_eq!(found("3 4 5 6", &["kinds: vector domain domain domain"]), [3, 6, 5, 4]);
    assert_eq!(found("4 5 6 2", &["kinds: space space space list"]), [2, 6, 5, 4]);
    assert_eq!(found("3 4 5", &["kinds: RGB-color domain domain"]), [3, 1, 5, 4]);
    assert_eq!(found("1 4 5", &["kinds: Scalar domain domain"]), [1, 1, 5, 4]);
    assert_eq!(found("4 5", &[]), [1, 1, 5, 4]);
    assert_eq!(found("4 5 6", &["kinds: ??? none domain"]), [1, 6, 5, 4]);
    let undirected = ["space: LPS", "space directions: none (1,0,0) (0,1,0) (0,0,1)"];
    assert_eq!(found("3 4 5 6", &undirected), [3, 6, 5, 4]);
    let vectors = ["space: LPS", "space directions: (1,0,0) (0,1,0) (0,0,1)"];
    let cases: [(&str, &[&str], &str); 9] = [
        ("3 4 5 6", &[], "4 axes of which 4 lie in space, but it must be 2 or 3 axes in space"),
        ("3 4 5", &["kinds: domain list domain"], "first or the last"),
        ("3 4 5", &["kinds: list domain list"], "3 axes of which 1 lie in space"),
        ("3 4", &["kinds: list domain"], "first or the last"),
        ("4 4 5", &["kinds: RGB-color domain domain"], "sizes is 4 on an axis of kind RGB-color"),
        ("2 4 5", &["kinds: complex domain domain"], "channels of real numbers"),
        ("2 4 5", &["kinds: domain domain"], "one word for each axis"),
        ("2 4 5", &[vectors[0], vectors[1], "kinds: list domain domain"], "in space directions"),
        (
            "2 4 5",
            &[vectors[0], "space directions: none (1,0,0) (0,1,0)", "kinds: space space space"],
            "kinds is",
        ),
    ];
    for (sizes, lines, fragment) in cases {
        let message = shape(sizes, lines).unwrap_err().to_string();
        assert!(message.contains(fragment), "{sizes}, {lines:?}: {message}");
    }
}

#[test]
fn spacings_that_cannot_be_worked_with_are_refused() {
    NRRD.spacings_that_cannot_be_worked_with_are_refused(|spacing| {
        file(&[&SHORTS[..], &[&format!("spacings: 1 {spacing} 1")]].concat(), &[0; 8])
    });
}

#[test]
fn channels_first_and_last_are_told_apart() {
    let lines = |sizes, kinds| ["type: uchar", "dimension: 4", sizes, kinds, "encoding: raw"];
    let data = [1, 2, 3, 4, 5, 6];
    let first = parse(&lines("sizes: 2 3 1 1", "kinds: vector domain domain domain"), &data);
    assert_eq!((first.shape, first.voxels), ([2, 1, 1, 3], Voxels::U8(vec![1, 3, 5, 2, 4, 6])));
    let last = parse(&lines("sizes: 3 1 1 2", "kinds: domain domain domain list"), &data);
    assert_eq!((last.shape, last.voxels), ([2, 1, 1, 3], Voxels::U8(data.to_vec())));
    assert!(
        refusal(&lines("sizes: 3 1 1 2", "kinds: ??? ??? ??? ???"), &data).contains("2 or 3 axes in space")
    );
}

#[test]
fn spaces_point_where_they_say() {
    let with = |space: &str| {
        let lines = [space, "space directions: (2,0,0) (0,3,0) (0,0,4)", "space origin: (10,20,30)"];
        parse(&[&SHORTS[..], &lines].concat(), &[0; 8]).geometry
    };
    for (space, x, y) in [("LPS", -1.0, -1.0), ("left-anterior-superior", -1.0, 1.0), ("ras", 1.0, 1.0)] {
        let geometry = with(&format!("space: {space}"));
        assert_eq!(geometry.spacing, [2.0, 3.0, 4.0]);
        assert_eq!(geometry.origin, [10.0 * x, 20.0 * y, 30.0]);
        assert_eq!(geometry.direction, [[x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, 1.0]]);
    }
    for space in ["space: scanner-xyz", "space: LPST", "space: 3D-right-handed", "space dimension: 3"] {
        let lines = [space, "space directions: (2,0,0) (0,3,0) (0,0,4)"];
        assert!(refusal(&[&SHORTS[..], &lines].concat(), &[0; 8]).contains("space"));
    }
}

#[test]
fn a_slice_lies_in_space() {
    let lines = ["type: uchar", "dimension: 2", "sizes: 2 1", "encoding: raw", "space: RAS"];
    let plane = parse(&[&lines[..], &["space directions: (0,2,0) (0,0,3)"]].concat(), &[1, 2]).geometry;
    assert_eq!((plane.spacing, plane.direction[0]), ([2.0, 3.0, 1.0], [0.0, 0.0, 1.0]));
    let lines = ["type: uchar", "dimension: 2", "sizes: 2 1", "encoding: raw", "space dimension: 2"];
    let lines = [&lines[..], &["space directions: (2,0) (0,3)", "space origin: (5,6)"]].concat();
    let flat = parse(&lines, &[1, 2]).geometry;
    assert_eq!((flat.spacing, flat.origin), ([2.0, 3.0, 1.0], [-5.0, -6.0, 0.0]));
    let lines = ["type: uchar", "dimension: 2", "sizes: 2 1", "encoding: raw", "space: RAS"];
    for directions in ["space directions: (2,0,0) (4,0,0)", "space directions: (0,0,0) (4,0,0)"] {
        let message = refusal(&[&lines[..], &[directions]].concat(), &[1, 2]);
        assert!(message.contains("space directions is \"flat\""), "{message}");
    }
}

#[test]
fn places_that_contradict_are_refused() {
    let vectors = ["space: LPS", "space directions: (1,0,0) (0,1,0) (0,0,1)"];
    let cases: [(&[&str], &str); 12] = [
        (&["space: LPS"], "space directions is missing"),
        (&["space: LPS", "spacings: 1 1 1"], "space directions is missing"),
        (&["space directions: (1,0,0) (0,1,0) (0,0,1)"], "space is missing"),
        (&[vectors[0], vectors[1], "spacings: 1 1 1"], "the vectors hold the spacing"),
        (&[vectors[0], vectors[1], "space dimension: 3"], "remove one of them"),
        (&[vectors[0], vectors[1], "space units: \"cm\" \"cm\" \"cm\""], "millimeters"),
        (&[vectors[0], vectors[1], "space origin: (0,0)"], "one number for each axis of the space"),
        (&[vectors[0], vectors[1], "space origin: (0,0,0) x"], "one vector"),
        (&[vectors[0], "space directions: (1,0,0) (0,1,0)"], "for each axis"),
        (&["spacings: 1 -1 1"], "1e-9 to 1e9"),
        (&["units: \"m\" \"m\" \"m\""], "millimeters"),
        (&["axis mins: 0 0 0"], "axis mins"),
    ];
    for (lines, fragment) in cases {
        let message = refusal(&[&SHORTS[..], lines].concat(), &[0; 8]);
        assert!(message.contains(fragment), "{lines:?}: {message}");
    }
    let unsaid = ["spacings: 1 2 3", "axis mins: nan NaN nan", "units: \"mm\" \"\" \"mm\""];
    assert_eq!(parse(&[&SHORTS[..], &unsaid].concat(), &[0; 8]).geometry.spacing, [1.0, 2.0, 3.0]);
}

#[test]
fn millimeters_are_known_by_every_spelling() {
    for unit in ["mm", "MM", "millimeter", "millimeters", "Millimetre", "millimetres", "???", ""] {
        let lines = ["spacings: 1 2 3", &format!("units: \"{unit}\" \"mm\" \"{unit}\"")];
        assert_eq!(
            parse(&[&SHORTS[..], &lines].concat(), &[0; 8]).geometry.spacing,
            [1.0, 2.0, 3.0],
            "{unit}"
        );
    }
}

#[test]
fn what_comes_before_the_data_is_skipped() {
    let data = [1, 0, 2, 0, 3, 0, 4, 0];
    let wanted = Voxels::I16(vec![1, 2, 3, 4]);
    let skipped =
        |line: &[&str], before: &[u8]| parse(&[&SHORTS[..], line].concat(), &[before, &data].concat()).voxels;
    assert_eq!(skipped(&["byte skip: 2"], b"xx"), wanted);
    assert_eq!(skipped(&["line skip: 2", "byte skip: 1"], b"x\n\nx"), wanted);
    assert_eq!(skipped(&["byte skip: -1"], b"anything"), wanted);
    let lines = ["type: short", "dimension: 3", "sizes: 2 1 2", "endian: little", "encoding: gz"];
    let packed = gzip(&[&b"xx"[..], &data].concat());
    assert_eq!(parse(&[&lines[..], &["byte skip: 2"]].concat(), &packed).voxels, wanted);
    assert!(refusal(&[&lines[..], &["byte skip: -1"]].concat(), &packed).contains("byte skip is \"-1\""));
    assert!(refusal(&[&SHORTS[..], &["byte skip: -2"]].concat(), &data).contains("byte skip is \"-2\""));
    assert!(refusal(&[&SHORTS[..], &["byte skip: -1"]].concat(), &data[1..]).contains("cut off"));
    assert!(refusal(&[&SHORTS[..], &["line skip: 1"]].concat(), &data).contains("no line to skip"));
    assert!(refusal(&[&SHORTS[..], &["line skip: 2"]].concat(), b"x\n").contains("fewer lines"));
}

#[test]
fn encodings_and_types_that_are_not_read_are_named() {
    for encoding in ["text", "ascii", "hex", "bzip2", "zrl"] {
        let line = format!("encoding: {encoding}");
        let message = refusal(&["type: uchar", "dimension: 2", "sizes: 1 1", &line], &[0]);
        assert!(message.contains("raw or gzip") && message.contains(encoding), "{message}");
    }
    for name in ["char", "block", "long", "half", ""] {
        let message =
            refusal(&[&format!("type: {name}"), "dimension: 2", "sizes: 1 1", "encoding: raw"], &[0]);
        assert!(message.starts_with(&format!("type is {name:?}")), "{message}");
    }
    let lines = ["type: Unsigned Short Int", "dimension: 2", "sizes: 1 1", "endian: big", "encoding: raw"];
    assert_eq!(parse(&lines, &[1, 0]).voxels, Voxels::U16(vec![256]));
}

#[test]
fn a_detached_header_names_its_data() {
    let limits = Limits::default();
    let header = file(&[&SHORTS[..], &["data file: scan 1.raw"]].concat(), &[]);
    // The empty line at the end is optional here.
    for header in [&header[..], &header[..header.len() - 2]] {
        let found = nrrd::parse_header(header, &limits).unwrap();
        assert_eq!(found.data_file(), Some("scan 1.raw"));
        let image = found.image(&[1, 0, 2, 0, 3, 0, 4, 0], &limits).unwrap();
        assert_eq!(image.voxels, Voxels::I16(vec![1, 2, 3, 4]));
        let message = nrrd::parse(header, &limits).unwrap_err().to_string();
        assert!(message.contains("scan 1.raw") && message.contains("beside it"), "{message}");
    }
    let inline = file(&SHORTS, &[0; 8]);
    assert_eq!(nrrd::parse_header(&inline, &limits).unwrap().data_file(), None);
}

#[test]
fn hostile_files_are_refused_with_a_reason() {
    NRRD.attacks_are_refused(&[
        ("axes-parallel.nrrd", "point in different directions"),
        ("axis-without-length.nrrd", "of a positive length"),
        ("byte-skip-huge.nrrd", "cut off"),
        ("byte-skip-huge-gzip.nrrd", "`expanded_bytes`"),
        ("data-file-list.nhdr", "data in several files"),
        ("data-file-pattern.nhdr", "data in several files"),
        ("data-file-up.nhdr", "the plain name of one file"),
        ("dimension-huge.nrrd", "2, 3 or 4"),
        ("endian-missing.nrrd", "endian is missing"),
        ("escape-sequence.nrrd", r#"type is "\u{1b}]0;owned\u{7}""#),
        ("field-twice.nrrd", "second line for a field"),
        ("gzip-bomb.nrrd", "as long as the header says"),
        ("gzip-check-sum.nrrd", "damaged"),
        ("gzip-claims-much.nrrd", "cut off"),
        ("line-skip-huge.nrrd", "line"),
        ("long-by-one.nrrd", "do not belong together"),
        ("origin-nan.nrrd", "finite"),
        ("short-by-one.nrrd", "cut off"),
        ("sizes-claim-much.nrrd", "cut off"),
        ("sizes-negative.nrrd", "one whole number for each axis"),
        ("sizes-overflow.nrrd", "`values`"),
        ("sizes-zero.nrrd", "positive along every axis"),
    ]);
}

#[test]
fn every_cut_is_refused() {
    NRRD.every_cut_is_refused();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        form in 0usize..4,
        kind in proptest::sample::select(VoxelType::ALL.to_vec()),
        changes in proptest::collection::vec(change(any::<u8>()), 1..5),
    ) {
        let own = file(&["type: uchar", "dimension: 2", "sizes: 2 2", "encoding: raw", "byte skip: -1"], b"abcdef");
        NRRD.any_bytes_are_refused_or_go_round(&changed(NRRD.sample(form, kind, own), &changes));
    }
}
