//! MetaImage: hand-made files read as they should, images go round, and hostile or damaged bytes are refused.

use std::io::Write;

use proptest::prelude::*;
use ssn_io::formats::metaimage;
use ssn_io::{Image, Limits, Tolerance, VoxelType, Voxels};

use crate::changed_bytes::{change, changed};
use crate::text_format::{TextFormat, gzip};

const METAIMAGE: TextFormat = TextFormat {
    name: "metaimage",
    parse: metaimage::parse,
    parse_header: metaimage::parse_header,
    encode: metaimage::encode,
    encode_compressed: metaimage::encode_zlib,
    tolerance: Tolerance { spacing: 0.0, origin: 0.0, direction: 0.0 },
};

fn file(lines: &[&str], data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{}\nElementDataFile = LOCAL\n", lines.join("\n")).into_bytes();
    bytes.extend_from_slice(data);
    bytes
}

fn parse(lines: &[&str], data: &[u8]) -> Image {
    METAIMAGE.read(&file(lines, data)).unwrap()
}

fn refusal(lines: &[&str], data: &[u8]) -> String {
    METAIMAGE.refusal(&file(lines, data))
}

fn packed(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut zlib = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::default());
    zlib.write_all(bytes).unwrap();
    [zlib.finish().unwrap(), gzip(bytes)]
}

#[test]
fn every_type_goes_round() {
    METAIMAGE.every_type_goes_round();
}

#[test]
fn a_scaled_image_is_written_as_its_values() {
    METAIMAGE.a_scaled_image_is_written_as_its_values();
}

const SHORTS: [&str; 5] = [
    "ObjectType = Image",
    "NDims = 3",
    "DimSize = 2 1 2",
    "BinaryDataByteOrderMSB = False",
    "ElementType = MET_SHORT",
];
const DATA: [u8; 8] = [1, 0, 2, 0, 3, 0, 4, 0];

fn with(lines: &[&str], data: &[u8]) -> Image {
    parse(&[&SHORTS[..], lines].concat(), data)
}

fn refusal_with(lines: &[&str], data: &[u8]) -> String {
    refusal(&[&SHORTS[..], lines].concat(), data)
}

#[test]
fn a_hand_made_file_is_read() {
    let lines = [
        "NDims = 2",
        "DimSize = 2 1",
        "ElementByteOrderMSB = True",
        "Note = a = b",
        "ElementType = MET_USHORT",
    ];
    let image = parse(&lines, &[0, 1, 1, 0]);
    assert_eq!((image.voxels, image.shape), (Voxels::U16(vec![1, 256]), [1, 1, 1, 2]));
    assert_eq!(image.geometry.direction, [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]);
}

#[test]
fn lines_become_fields() {
    let rest = b"Note = a = b\nName = \xff\nElementType = MET_CHAR\nElementDataFile = LOCAL\r\ndata";
    let image = METAIMAGE.read(&[&b"NDims = 2\r\n\nDimSize=2 2\n"[..], rest].concat()).unwrap();
    assert_eq!((image.voxels, image.shape), (Voxels::I8(b"data".map(|x| x as i8).to_vec()), [1, 1, 2, 2]));
}

#[test]
fn what_is_no_header_is_refused() {
    for (text, fragment) in [
        ("", "ElementDataFile is missing"),
        ("NDims = 3\n", "ElementDataFile is missing"),
        ("ElementDataFile = LOCAL\n", "NDims is missing"),
        ("NDims 3\n", "`Field = text`"),
        ("Ndims = 3\n", "upper and lower case"),
        ("NDims = 3\nNDims = 3\n", "second line"),
        ("Offset = 0 0\nOrigin = 1 1\n", "\"Origin = 1 1\""),
    ] {
        let message = METAIMAGE.refusal(text.as_bytes());
        assert!(message.contains(fragment), "{text:?}: {message}");
    }
    assert!(METAIMAGE.refusal(b"NDims = \xff\n").contains("UTF-8"));
}

#[test]
fn a_long_header_meets_the_limit() {
    let lines = format!("NDims = 2\nNote = {}\nElementDataFile = LOCAL", "x".repeat(200)).into_bytes();
    METAIMAGE.a_long_header_meets_the_limit(&[lines, vec![b'x'; 200]]);
}

#[test]
fn only_plain_names_of_data_files_pass() {
    METAIMAGE.only_plain_names_of_data_files_pass(|name| {
        format!("{}\nElementDataFile = {name}\n", SHORTS.join("\n")).into_bytes()
    });
}

#[test]
fn spacings_that_cannot_be_worked_with_are_refused() {
    METAIMAGE.spacings_that_cannot_be_worked_with_are_refused(|spacing| {
        file(&[&SHORTS[..], &[&format!("ElementSpacing = 1 {spacing} 1")]].concat(), &DATA)
    });
}

#[test]
fn types_that_are_not_read_are_named() {
    for name in ["MET_ASCII_CHAR", "MET_FLOAT_ARRAY", "MET_OTHER", "float", "met_float", ""] {
        let message = refusal(&["NDims = 2", "DimSize = 1 1", &format!("ElementType = {name}")], &[0]);
        assert!(message.starts_with(&format!("ElementType is {name:?}")), "{message}");
    }
}

#[test]
fn channels_are_interleaved_or_a_fourth_axis() {
    let bytes = |lines: &[&str]| parse(&[lines, &["ElementType = MET_UCHAR"]].concat(), &[1, 2, 3, 4, 5, 6]);
    let image = bytes(&["NDims = 2", "DimSize = 3 1", "ElementNumberOfChannels = 2"]);
    assert_eq!((image.shape, image.voxels), ([2, 1, 1, 3], Voxels::U8(vec![1, 3, 5, 2, 4, 6])));
    let four = ["NDims = 4", "DimSize = 3 1 1 2", "Offset = 1 2 3 9", "ElementSpacing = 1 2 3 9"];
    let image = bytes(&four);
    assert_eq!((image.shape, image.voxels), ([2, 1, 1, 3], Voxels::U8(vec![1, 2, 3, 4, 5, 6])));
    assert_eq!((image.geometry.origin, image.geometry.spacing), ([-1.0, -2.0, 3.0], [1.0, 2.0, 3.0]));
    let mixed = ["TransformMatrix = 1 0 0 0 0 1 0 0 0 0 0 1 0 0 1 0", "ElementType = MET_UCHAR"];
    assert!(refusal(&[&four[..], &mixed].concat(), &[0; 6]).contains("stands apart"));
    let twice = ["ElementNumberOfChannels = 2", "ElementType = MET_UCHAR"];
    assert!(refusal(&[&four[..], &twice].concat(), &[0; 12]).contains("1 where NDims is 4"));
}

#[test]
fn the_matrix_lists_one_axis_after_the_other() {
    let turn = ["TransformMatrix = 0.8 0.6 0 -0.6 0.8 0 0 0 1", "Position = 10 20 30", "ElementSize = 1 2 3"];
    let geometry = with(&turn, &DATA).geometry;
    assert_eq!(geometry.spacing, [1.0, 2.0, 3.0]);
    assert_eq!(geometry.origin, [-10.0, -20.0, 30.0]);
    assert_eq!(geometry.direction, [[-0.8, 0.6, 0.0], [-0.6, -0.8, 0.0], [0.0, 0.0, 1.0]]);
    let rounded = with(&["Rotation = 0.8 0.6001 0 -0.6001 0.8 0 0 0 1"], &DATA).geometry;
    let length = (0.8f64 * 0.8 + 0.6001 * 0.6001).sqrt();
    assert_eq!(rounded.direction[0][0], -0.8 / length);
}

#[test]
fn fields_that_contradict_or_are_not_understood_are_refused() {
    let cases: [(&[&str], &str); 13] = [
        (&["ObjectType = Mesh"], "second line"),
        (&["AnatomicalOrientation = LPI"], "RAI where there is no TransformMatrix"),
        (&["DistanceUnits = cm"], "millimeters"),
        (&["Offset = 0 0"], "as many numbers"),
        (&["Offset = 0 0 0", "Origin = 1 0 0"], "second line"),
        (&["ElementSpacing = 1 -1 1"], "1e-9 to 1e9"),
        (&["TransformMatrix = 1 0 0 1"], "as many numbers"),
        (&["CompressedData = maybe"], "True or False"),
        (&["HeaderSize = -2"], "HeaderSize is \"-2\""),
        (&["HeaderSize = 8"], "HeaderSize is \"8\""),
        (&["HeaderSize = -1", "CompressedData = True"], "HeaderSize is \"-1\""),
        (&["ElementToIntensityFunctionOffset = 3"], "store the scaled values"),
        (&["ElementNumberOfChannels = 0"], "positive along every axis"),
    ];
    for (lines, fragment) in cases {
        let message = refusal_with(lines, &DATA);
        assert!(message.contains(fragment), "{lines:?}: {message}");
    }
    assert!(refusal(&["ObjectType = Mesh"], &[]).contains("must be Image"));
    let fine = ["AnatomicalOrientation = RAI", "DistanceUnits = mm", "ElementToIntensityFunctionSlope = 1.0"];
    assert_eq!(with(&fine, &DATA).voxels, Voxels::I16(vec![1, 2, 3, 4]));
}

#[test]
fn zlib_and_gzip_are_told_apart() {
    for packed in packed(&DATA) {
        let size = format!("CompressedDataSize = {}", packed.len());
        for lines in [&["CompressedData = True", &size][..], &["CompressedData = True"]] {
            assert_eq!(with(lines, &packed).voxels, Voxels::I16(vec![1, 2, 3, 4]));
        }
        let longer = [&packed[..], b"x"].concat();
        assert!(refusal_with(&["CompressedData = True", &size], &longer).contains("CompressedDataSize"));
    }
}

#[test]
fn a_header_names_its_data_file() {
    let limits = Limits::default();
    let header = |lines: &[&str]| {
        format!("{}\nElementDataFile = a b.raw", [&SHORTS[..], lines].concat().join("\r\n")).into_bytes()
    };
    let wanted = Voxels::I16(vec![1, 2, 3, 4]);
    let plain = header(&[]);
    assert_eq!(metaimage::parse_header(&plain, &limits).unwrap().data_file(), Some("a b.raw"));
    let read = |lines: &[&str], data: &[u8]| {
        metaimage::parse_header(&header(lines), &limits).and_then(|header| header.image(data, &limits))
    };
    assert_eq!(read(&[], &DATA).unwrap().voxels, wanted);
    assert_eq!(read(&["HeaderSize = 2"], &[&b"xx"[..], &DATA].concat()).unwrap().voxels, wanted);
    assert_eq!(read(&["HeaderSize = -1"], &[&b"xxx"[..], &DATA].concat()).unwrap().voxels, wanted);
    for packed in packed(&DATA) {
        let data = [&b"xx"[..], &packed].concat();
        assert_eq!(read(&["HeaderSize = 2", "CompressedData = True"], &data).unwrap().voxels, wanted);
    }
    assert!(metaimage::parse(&plain, &limits).unwrap_err().to_string().contains("a b.raw"));
    let more = [&plain[..], b"\nmore"].concat();
    assert!(metaimage::parse_header(&more, &limits).unwrap_err().to_string().contains("must be LOCAL"));
    let inline = file(&SHORTS, &DATA);
    assert_eq!(metaimage::parse_header(&inline, &limits).unwrap().data_file(), None);
}

#[test]
fn a_type_of_doubtful_size_needs_an_exact_length() {
    let lines = ["NDims = 2", "DimSize = 1 1", "BinaryDataByteOrderMSB = False", "ElementType = MET_LONG"];
    assert_eq!(parse(&lines, &[1, 0, 0, 0]).voxels, Voxels::I32(vec![1]));
    assert!(refusal(&lines, &[0; 8]).contains("do not belong together"));
    assert!(refusal(&[&lines[..], &["HeaderSize = -1"]].concat(), &[0; 8]).contains("MET_LONG_LONG"));
}

#[test]
fn hostile_files_are_refused_with_a_reason() {
    METAIMAGE.attacks_are_refused(&[
        ("axes-parallel.mha", "point in different directions"),
        ("byte-order-missing.mha", "BinaryDataByteOrderMSB is missing"),
        ("center-of-rotation.mha", "readers differ"),
        ("channels-overflow.mha", "`values`"),
        ("compressed-size-huge.mha", "cut off"),
        ("data-file-absolute.mhd", "the plain name of one file"),
        ("data-file-list.mhd", "data in several files"),
        ("data-file-pattern.mhd", "data in several files"),
        ("data-file-windows.mhd", "the plain name of one file"),
        ("escape-sequence.mha", r#"ElementType is "\u{1b}]0;owned\u{7}""#),
        ("field-in-other-case.mha", "upper and lower case"),
        ("field-twice.mha", "second line for a field"),
        ("header-size-huge.mhd", "cut off"),
        ("header-size-in-itself.mha", "in another file"),
        ("long-by-one.mha", "do not belong together"),
        ("matrix-scaled.mha", "vectors of length 1"),
        ("ndims-huge.mha", "2, 3 or 4"),
        ("offset-nan.mha", "finite"),
        ("short-by-one.mha", "cut off"),
        ("sizes-claim-much.mha", "cut off"),
        ("sizes-overflow.mha", "`values`"),
        ("slope.mha", "store the scaled values"),
        ("spacing-zero.mha", "a distance from"),
        ("text-data.mha", "in binary form"),
        ("zlib-bomb.mha", "as long as the header says"),
        ("zlib-check-sum.mha", "damaged"),
        ("zlib-claims-much.mha", "cut off"),
    ]);
}

#[test]
fn every_cut_is_refused() {
    METAIMAGE.every_cut_is_refused();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        form in 0usize..4,
        kind in proptest::sample::select(VoxelType::ALL.to_vec()),
        changes in proptest::collection::vec(change(any::<u8>()), 1..5),
    ) {
        let own = file(&["NDims = 2", "DimSize = 2 2", "HeaderSize = -1", "ElementType = MET_UCHAR"], b"abcdef");
        METAIMAGE.any_bytes_are_refused_or_go_round(&changed(METAIMAGE.sample(form, kind, own), &changes));
    }
}
