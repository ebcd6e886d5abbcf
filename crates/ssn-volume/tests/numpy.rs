//! NumPy arrays: what is written is read back, hostile files are refused with a sentence, and no bytes panic.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod changed_numbers;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use changed_numbers::{apply, change};
use proptest::prelude::*;
use ssn_volume::numpy::{encode_npy, encode_npz, parse_npy, parse_npz};
use ssn_volume::{Array, ByteOrder, Limits, Problem, VoxelType, Voxels};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/numpy")
}

fn attack(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

fn parse(name: &str, bytes: &[u8]) -> Result<Vec<(String, Array)>, Problem> {
    let limits = Limits::default();
    if name.ends_with(".npz") {
        return parse_npz(bytes, &limits);
    }
    parse_npy(bytes, &limits).map(|array| vec![("array".to_owned(), array)])
}

/// Every hostile file with a part of the sentence that refuses it; an empty one is read.
const ATTACKS: [(&str, &str); 30] = [
    ("good-fortran.npy", ""),
    ("good.npy", ""),
    ("good.npz", ""),
    ("npy-bad-boolean.npy", "7 at value 1"),
    ("npy-deep.npy", "whole numbers"),
    ("npy-huge-claim.npy", "needs 8000000000 bytes, but only 8"),
    ("npy-key-twice.npy", "\"descr\" twice"),
    ("npy-long-header.npy", "raise the limit `header_bytes`"),
    ("npy-longer-data.npy", "exactly as long"),
    ("npy-negative.npy", "whole numbers"),
    ("npy-objects.npy", "hold programs and are never read"),
    ("npy-overflow.npy", "raise the limit `values`"),
    ("npy-program.npy", "a quoted name"),
    ("npy-records.npy", "an array of records"),
    ("npy-strings.npy", "\"<U3\""),
    ("npz-absolute.npz", "/etc/a.npy"),
    ("npz-backslash.npz", "a relative name"),
    ("npz-before.npz", "the archive is damaged"),
    ("npz-bomb.npz", "needs 8000000000 bytes, but only 7000000"),
    ("npz-bzip2.npz", "the compression Bzip2"),
    ("npz-check-sum.npz", "Invalid checksum"),
    ("npz-cut.npz", "the archive is damaged"),
    ("npz-encrypted.npz", "the encrypted member"),
    ("npz-many-members.npz", "the archive is damaged"),
    ("npz-nested-as-npy.npz", "this is not an .npy file"),
    ("npz-nested.npz", "archives in archives are not read"),
    ("npz-overlap.npz", "inconsistency"),
    ("npz-same-name.npz", "duplicate file names"),
    ("npz-size-claim.npz", "size mismatch"),
    ("npz-up.npz", "../a.npy"),
];

#[test]
fn hostile_files_are_refused_with_a_sentence() {
    let names = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut there: BTreeSet<String> = fs::read_dir(folder()).unwrap().map(names).collect();
    assert!(there.remove("README.md"));
    assert_eq!(there, ATTACKS.iter().map(|(name, _)| name.to_string()).collect());
    for (name, expected) in ATTACKS {
        match parse(name, &attack(name)) {
            Ok(_) => assert!(expected.is_empty(), "{name} is read"),
            Err(problem) => {
                let message = problem.to_string();
                assert!(!expected.is_empty() && message.contains(expected), "{name}: {message}");
            }
        }
    }
}

#[test]
fn good_files_have_the_values_they_were_made_with() {
    let first = Array { voxels: Voxels::I16((0..6).collect()), shape: vec![2, 3] };
    assert_eq!(parse_npy(&attack("good.npy"), &Limits::default()).unwrap(), first);
    let second = Array { voxels: Voxels::U8(b"wxyz".to_vec()), shape: vec![4] };
    let both = parse_npz(&attack("good.npz"), &Limits::default()).unwrap();
    assert_eq!(both, [("a".to_owned(), first), ("b".to_owned(), second)]);
    let fortran = parse_npy(&attack("good-fortran.npy"), &Limits::default()).unwrap();
    assert_eq!(fortran.voxels, Voxels::F32(vec![0.0, 2.0, 4.0, 1.0, 3.0, 5.0]));
}

#[test]
fn every_flipped_bit_of_an_archive_is_noticed_or_harmless() {
    let bytes = attack("good.npz");
    let whole = parse("good.npz", &bytes).unwrap();
    let mut refused = 0;
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match parse("good.npz", &flipped) {
            // Dates, versions and attributes of members mean nothing here.
            Ok(read) => assert_eq!(read, whole, "bit {bit}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 4 * bytes.len(), "{refused} of {}", 8 * bytes.len());
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
        let name = seed.0;
        let mut bytes = attack(name);
        changes.iter().for_each(|change| apply(&mut bytes, change));
        if let Ok(arrays) = parse(name, &bytes) {
            let encoded = encode_npz(arrays.iter().map(|(name, array)| (name.as_str(), array))).unwrap();
            let again = parse_npz(&encoded, &Limits::default()).unwrap();
            prop_assert_eq!(again.len(), arrays.len());
            for ((name, array), (name_again, array_again)) in arrays.iter().zip(&again) {
                prop_assert_eq!(name, name_again);
                prop_assert_eq!(&array.shape, &array_again.shape);
                prop_assert_eq!(array.voxels.to_le_bytes(), array_again.voxels.to_le_bytes());
            }
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
        let again = parse_npy(&encode_npy(&array).unwrap(), &Limits::default()).unwrap();
        prop_assert_eq!(&again.shape, &array.shape);
        prop_assert_eq!(again.voxels.kind(), kind);
        prop_assert_eq!(again.voxels.to_le_bytes(), array.voxels.to_le_bytes());
    }
}
