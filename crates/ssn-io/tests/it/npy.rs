//! NumPy arrays: what is written is read back, hostile files are refused with a sentence, and no bytes panic.

use std::fs;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use ssn_io::formats::npy::{encode, parse, parse_npz};
use ssn_io::{Array, ByteOrder, Limits, VoxelType, Voxels};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

fn attack(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/npy").join(name)).unwrap()
}

/// A file of a version, with a header and data.
fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u32).to_le_bytes();
    let length = if version == 1 { &length[..2] } else { &length[..] };
    [&b"\x93NUMPY"[..], &[version, 0], length, header.as_bytes(), data].concat()
}

fn message(bytes: &[u8]) -> String {
    parse(bytes, &Limits::default()).unwrap_err().to_string()
}

/// Every hostile file with a part of the sentence that refuses it; an empty one is read.
const ATTACKS: [(&str, &str); 14] = [
    ("good-fortran.npy", ""),
    ("good.npy", ""),
    ("npy-bad-boolean.npy", "7 at value 1"),
    ("npy-deep.npy", "other things than numbers"),
    ("npy-huge-claim.npy", "needs 8000000000 bytes, but only 8"),
    ("npy-key-twice.npy", ""),
    ("npy-long-header.npy", "4294967295 bytes, but it must be at most 10,000"),
    ("npy-longer-data.npy", "exactly as long"),
    ("npy-negative.npy", "dimension cannot be negative"),
    ("npy-objects.npy", "hold programs and are never read"),
    // `npyz` multiplies before anybody can check: with overflow checks it panics, which is caught.
    ("npy-overflow.npy", if cfg!(debug_assertions) { "multiply with overflow" } else { "`values`" }),
    ("npy-program.npy", "other things than numbers"),
    ("npy-records.npy", "an array of records, dates"),
    ("npy-strings.npy", "'<U3'"),
];

#[test]
fn hostile_files_are_refused_with_a_sentence() {
    hostile_files::all("npy", &ATTACKS, |path| {
        let read = parse(&fs::read(path).unwrap(), &Limits::default());
        read.map_or_else(|problem| problem.to_string(), |_| String::new())
    });
}

#[test]
fn good_files_have_the_values_they_were_made_with() {
    let array = Array { voxels: Voxels::I16((0..6).collect()), shape: vec![2, 3] };
    assert_eq!(parse(&attack("good.npy"), &Limits::default()).unwrap(), array);
    let fortran = parse(&attack("good-fortran.npy"), &Limits::default()).unwrap();
    assert_eq!(fortran.voxels, Voxels::F32(vec![0.0, 2.0, 4.0, 1.0, 3.0, 5.0]));
}

#[test]
fn versions_and_half_precision_are_read() {
    let header = "{'descr': '>f2', 'fortran_order': True, 'shape': (2, 2)}\n";
    let data = [0x3c, 0, 0x40, 0, 0xc0, 0, 0x7c, 0];
    for version in 1..=3 {
        let array = parse(&file(version, header, &data), &Limits::default()).unwrap();
        assert_eq!(array.voxels, Voxels::F32(vec![1.0, -2.0, 2.0, f32::INFINITY]));
    }
    assert!(message(&file(4, header, &data)).contains("unsupported version: (4, 0)"));
}

#[test]
fn three_axes_follow_the_formula() {
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}\n";
    let fortran: Vec<u8> = (0..24).collect();
    let array = parse(&file(1, header, &fortran), &Limits::default()).unwrap();
    let Voxels::U8(values) = array.voxels else { panic!("{array:?}") };
    for (i, j, k) in (0..24).map(|n| (n / 12, n / 4 % 3, n % 4)) {
        assert_eq!(values[(i * 3 + j) * 4 + k], fortran[i + 2 * (j + 3 * k)]);
    }
}

/// An archive of arrays, as `numpy.savez` writes it, or `numpy.savez_compressed`.
fn archive(arrays: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

const METHODS: [CompressionMethod; 2] = [CompressionMethod::Stored, CompressionMethod::Deflated];
/// What probabilities are called.
const NAMES: [&str; 2] = ["probabilities", "softmax"];

fn numbers(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    file(1, &format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}}}\n"), data)
}

#[test]
fn one_array_of_an_archive_is_read() {
    let other = numbers("|u1", "False", "(1,)", &[9]);
    let single: Vec<u8> = [0.5f32, 0.25, 1.0, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let double: Vec<u8> = [0.5f64, 0.25, 1.0, 0.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let half = [0x00, 0x38, 0x00, 0x34, 0x00, 0x3c, 0x00, 0x00];
    let in_fortran: Vec<u8> = [0.5f32, 1.0, 0.25, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    for (what, array) in [
        ("single", numbers("<f4", "False", "(2, 2)", &single)),
        ("double", numbers(">f8", "False", "(2, 2)", &double)),
        ("half", numbers("<f2", "False", "(2, 2)", &half)),
        ("Fortran", numbers("<f4", "True", "(2, 2)", &in_fortran)),
    ] {
        for method in METHODS {
            for arrays in [
                &[("probabilities", &array[..])][..],
                &[("softmax", &array[..]), ("other", &other[..])],
                &[("softmax", &other[..]), ("probabilities", &array[..])],
                &[("arr_0", &array[..])],
            ] {
                let found = parse_npz(&archive(arrays, method), &NAMES, &Limits::default()).unwrap();
                assert_eq!(found.shape, [2, 2], "{what}");
                assert_eq!(found.voxels.scaled_f32(1.0, 0.0), [0.5, 0.25, 1.0, 0.0], "{what}, {method:?}");
            }
            let two = archive(&[("a", &array), ("b", &other)], method);
            let message = parse_npz(&two, &NAMES, &Limits::default()).unwrap_err().to_string();
            assert!(
                message.contains("a.npy, b.npy, but it must be one, or one that is called probabilities"),
                "{message}"
            );
        }
    }
}

#[test]
fn a_changed_byte_of_an_archive_is_noticed() {
    let data: Vec<u8> = (0..400).map(|i| (i * 7 % 251) as u8).collect();
    let array = numbers("|u1", "False", "(400,)", &data);
    for method in METHODS {
        let whole = archive(&[("probabilities", &array)], method);
        let expected = parse_npz(&whole, &NAMES, &Limits::default()).unwrap();
        // Names, lengths and dates stand before and behind the data.
        let start = 30 + "probabilities.npy".len();
        for at in start..start + if method == CompressionMethod::Stored { array.len() } else { 100 } {
            let mut changed = whole.clone();
            changed[at] ^= 0x04;
            let found = parse_npz(&changed, &NAMES, &Limits::default());
            assert!(found.is_err(), "{method:?}, byte {at}: {found:?}");
        }
        assert_eq!(expected.voxels, Voxels::U8(data.clone()));
    }
}

#[test]
fn lengths_must_agree() {
    let header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}\n";
    assert!(message(&file(1, header, &[1, 0])).contains("needs 3 bytes, but only 2"));
    assert!(message(&file(1, header, &[1, 0, 1, 0])).contains("exactly as long"));
    for end in 0..file(1, header, &[]).len() {
        assert!(parse(&file(1, header, &[])[..end], &Limits::default()).is_err(), "cut at {end}");
    }
}

#[test]
fn other_types_and_headers_are_refused() {
    for (descr, expected) in [
        ("'<c8'", "descr of the array"),
        ("'<f16'", "descr of the array"),
        ("'<M8[D]'", "an array of records, dates"),
        ("'<M8'", "invalid type string"),
        ("'|f4'", "invalid type string"),
        ("'=f4'", "invalid type string"),
        ("4", "must be string or list"),
    ] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,)}}\n");
        let message = message(&file(1, &header, &[0; 16]));
        assert!(message.contains(expected), "{descr}: {message}");
    }
    for header in ["", "{", "[1]\n", "{'descr': '<f4', 'shape': (1,)}\n", "{'descr': '<f4'}x\n"] {
        assert!(
            message(&file(1, header, &[0; 4])).contains("the header of the array is damaged"),
            "{header}"
        );
    }
}

#[test]
fn axes_are_as_many_as_in_numpy() {
    let header =
        |axes| format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({})}}\n", "1,".repeat(axes));
    assert_eq!(parse(&file(1, &header(64), &[7]), &Limits::default()).unwrap().shape, [1; 64]);
    assert!(message(&file(1, &header(65), &[7])).contains("65 axes"));
}

/// The time that the parser of headers takes doubles with each bracket.
#[test]
fn brackets_are_counted_before_a_header_is_parsed() {
    for (bracket, count) in [("(", 2), ("[", 60), ("{", 9000)] {
        let header = format!("{{'descr': '<f4', 'shape': {}\n", bracket.repeat(count));
        assert!(message(&file(1, &header, &[])).contains("other things than numbers"));
    }
}

/// The bytes that are set where bytes are changed: those of a header's numbers, more often than by chance.
fn telling_byte() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), Just(0), Just(0xff), b'0'..=b'9', Just(b','), Just(b')')]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn changed_bytes_never_panic(
        seed in prop::sample::select(ATTACKS.to_vec()),
        changes in prop::collection::vec(change(telling_byte()), 1..6),
    ) {
        if let Ok(array) = parse(&changed(attack(seed.0), &changes), &Limits::default()) {
            let again = parse(&encode(&array).unwrap(), &Limits::default()).unwrap();
            prop_assert_eq!(&array.shape, &again.shape);
            prop_assert_eq!(array.voxels.to_le_bytes(), again.voxels.to_le_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arrays_go_round(
        kind in prop::sample::select(VoxelType::ALL.to_vec()),
        shape in prop::collection::vec(0..6usize, 0..5),
        bytes in prop::collection::vec(any::<u8>(), 625 * 8),
    ) {
        let count: usize = shape.iter().product();
        let voxels = Voxels::from_bytes(kind, &bytes[..count * kind.bytes()], ByteOrder::Little);
        let array = Array { voxels, shape };
        let encoded = encode(&array).unwrap();
        // The data start at a multiple of 64, as NumPy's do.
        prop_assert_eq!((encoded.len() - count * kind.bytes()) % 64, 0);
        let again = parse(&encoded, &Limits::default()).unwrap();
        prop_assert_eq!(&again.shape, &array.shape);
        prop_assert_eq!(again.voxels.kind(), kind);
        prop_assert_eq!(again.voxels.to_le_bytes(), array.voxels.to_le_bytes());
        let wrong = Array { shape: vec![count + 1], ..array };
        prop_assert!(encode(&wrong).is_err());
    }
}
