//! PyTorch files: tensors are read right, and hostile archives are refused with a sentence.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ssn_io::formats::torch_file;
use ssn_io::{Limits, Voxels};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn checkpoint() -> Vec<u8> {
    std::fs::read(folder("pickle_files").join("checkpoint.pt")).unwrap()
}

/// The same in the format of before PyTorch 1.6.
fn old_checkpoint() -> Vec<u8> {
    std::fs::read(folder("pickle_files").join("checkpoint_1_5.pt")).unwrap()
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
    let fragments = [
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
    let mut files = 0;
    for entry in std::fs::read_dir(folder("attacks/torch_file")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "README.md" {
            continue;
        }
        files += 1;
        let (_, fragment) = fragments.iter().find(|(known, _)| *known == name).unwrap();
        let message = match torch_file::parse(&std::fs::read(&path).unwrap(), &Limits::default()) {
            Ok(_) => panic!("{name} was read"),
            Err(problem) => problem.to_string(),
        };
        assert!(message.contains(fragment), "{name}: {message}");
    }
    assert_eq!(files, fragments.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn damaged_archives_are_refused_or_read(
        edits in prop::collection::vec((0..4u8, any::<prop::sample::Index>(), any::<u8>()), 1..4),
        old in any::<bool>()
    ) {
        let mut bytes = if old { old_checkpoint() } else { checkpoint() };
        for (kind, place, byte) in edits {
            let place = place.index(bytes.len() + 1);
            match kind {
                0 if place < bytes.len() => bytes[place] ^= byte,
                1 => bytes.truncate(place.max(bytes.len().saturating_sub(usize::from(byte)))),
                2 => drop(bytes.splice(place..place, [byte])),
                _ => bytes.extend(vec![byte; place % 50]),
            }
        }
        let _ = torch_file::parse(&bytes, &Limits::default());
    }
}
