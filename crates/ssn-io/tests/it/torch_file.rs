//! PyTorch files: tensors are read right, and hostile archives are refused with a sentence.

use std::path::Path;

use proptest::prelude::*;
use ssn_io::formats::torch_file;
use ssn_io::{Limits, Voxels};

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pickle_files").join(name)).unwrap()
}

fn checkpoint() -> Vec<u8> {
    fixture("checkpoint.pt")
}

/// The same in the format of before PyTorch 1.6.
fn old_checkpoint() -> Vec<u8> {
    fixture("checkpoint_1_5.pt")
}

#[test]
fn tensors_of_a_checkpoint_have_names_shapes_and_values() {
    let tensors = torch_file::parse(&checkpoint(), &Limits::default()).unwrap();
    let floats = |values: &[f32]| Voxels::F32(values.to_vec());
    let expected = [
        ("model.weight", floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), vec![2, 3]),
        ("model.turned", floats(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]), vec![3, 2]),
        ("model.part", floats(&[4.0, 5.0]), vec![1, 2]),
        ("model.wide", floats(&[1.0; 4]), vec![2, 2]),
        ("model.half", floats(&[1.5]), vec![1]),
        ("model.steps", Voxels::I64(vec![3]), vec![]),
        ("p.0", Voxels::F64(vec![1.0]), vec![1]),
        ("p.1", Voxels::U8(vec![1]), vec![1]),
    ];
    assert_eq!(tensors.len(), expected.len());
    for ((name, array), (expected_name, values, shape)) in tensors.iter().zip(expected) {
        assert_eq!((name.as_str(), &array.voxels, &array.shape), (expected_name, &values, &shape));
    }
}

#[test]
fn files_of_before_pytorch_1_6_hold_the_same() {
    let parse = |bytes: &[u8]| torch_file::parse(bytes, &Limits::default());
    let old = old_checkpoint();
    assert_eq!(parse(&old).unwrap(), parse(&checkpoint()).unwrap());
    for length in 0..old.len() {
        assert!(parse(&old[..length]).is_err(), "{length} of {} bytes", old.len());
    }
    let longer = [&old[..], &[0]].concat();
    assert!(parse(&longer).unwrap_err().to_string().contains("bytes behind the last storage"));
    // There are no checksums: a flipped bit may be one of a number, but reading goes on or ends in a sentence.
    for place in 0..8 * old.len() {
        let mut bad = old.clone();
        bad[place / 8] ^= 1 << (place % 8);
        let _ = parse(&bad);
    }
}

#[test]
fn a_flipped_bit_in_a_record_is_refused_or_has_no_effect() {
    let good = checkpoint();
    let tensors = torch_file::parse(&good, &Limits::default()).unwrap();
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 1 << (place % 8);
        // Padding between the records, and fields like dates, belong to nothing.
        if let Ok(read) = torch_file::parse(&bad, &Limits::default()) {
            assert_eq!(read, tensors, "byte {place}");
        }
    }
}

#[test]
fn hostile_archives_are_refused() {
    let expected = [
        ("os_system.pt", "\"os.system\""),
        ("outside_the_storage.pt", "[1] from element 1, but it must be inside its storage"),
        ("stride_overflows.pt", "inside its storage"),
        ("negative_stride.pt", "not as PyTorch writes them"),
        ("expands_to_16_gigabytes.pt", "the memory that the file asks for"),
        ("bomb.pt", "the compressed record"),
        ("storage_too_short.pt", "\"0\" of 12 bytes for 4 elements"),
        ("storage_missing.pt", "without the record \"data/0\""),
        ("storage_of_two_types.pt", "\"0\" with two types or lengths"),
        ("unknown_storage.pt", "\"torch.ComplexDoubleStorage\""),
        ("path_outside.pt", "without the record \"data/../../x\""),
        ("same_name_twice.pt", "two records of the same name"),
        ("overlapping_records.pt", "records that overlap"),
        ("wrong_crc.pt", "the archive is damaged"),
        ("two_pickles.pt", "one with two pickles"),
        ("joined_names_collide.pt", "\"x.y\" twice"),
        ("no_zip.pt", "the start of the file is [80, 02, 8a, 0a]"),
    ];
    hostile_files::all("torch_file", &expected, |path| {
        torch_file::parse(&std::fs::read(path).unwrap(), &Limits::default()).unwrap_err().to_string()
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn damaged_archives_are_refused_or_read(
        changes in prop::collection::vec(change(any::<u8>()), 1..4),
        old in any::<bool>()
    ) {
        let bytes = if old { old_checkpoint() } else { checkpoint() };
        let _ = torch_file::parse(&changed(bytes, &changes), &Limits::default());
    }
}
