//! HDF5: the layouts of the LIDC file are read, other files are refused with a sentence, and no bytes panic.
#![cfg(feature = "hdf5")]
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use ssn_volume::hdf5::{Dataset, parse};
use ssn_volume::{Array, Limits, Problem, Voxels};

fn file(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5_files").join(name)).unwrap()
}

fn read(name: &str) -> Result<Vec<(String, Dataset)>, Problem> {
    parse(&file(name), &Limits::default())
}

/// What `make.py` stores, computed by its rules.
fn expected(double: bool, raters_last: bool) -> Vec<(String, Dataset)> {
    let label_shape = |n| if raters_last { vec![n, 5, 5, 4] } else { vec![n, 4, 5, 5] };
    let split = |(name, n): (&str, usize)| {
        let values = (0..n * 25).map(|i| i as f64 * 0.25 - 3.0);
        let voxels = match double {
            true => Voxels::F64(values.collect()),
            false => Voxels::F32(values.map(|x| x as f32).collect()),
        };
        let images = Array { voxels, shape: vec![n, 5, 5] };
        let labels = Array {
            voxels: Voxels::U8((0..n * 100).map(|i| (i % 3 % 2) as u8).collect()),
            shape: label_shape(n),
        };
        let uids = (0..n).map(|i| format!("1.3.6.{name}.{i}")).collect();
        [
            (format!("{name}/images"), Dataset::Array(images)),
            (format!("{name}/labels"), Dataset::Array(labels)),
            (format!("{name}/uids"), Dataset::Text(uids)),
        ]
    };
    [("test", 1), ("train", 3), ("val", 2)].into_iter().flat_map(split).collect()
}

const GOOD: [(&str, bool); 6] = [
    ("big_endian.h5", false),
    ("chunked.h5", false),
    ("contiguous.h5", false),
    ("gzip.h5", false),
    ("gzip_shuffle.h5", true),
    ("raters_first.h5", true),
];

#[test]
fn all_layouts_of_storage_give_the_same_datasets() {
    for (name, double) in GOOD {
        assert_eq!(read(name).unwrap(), expected(double, name != "raters_first.h5"), "{name}");
    }
}

/// The bytes that `make.py` stores under most names: 0, 1, 2 and so on.
fn counted(shape: &[usize]) -> Dataset {
    let voxels = Voxels::U8((0..shape.iter().product::<usize>()).map(|i| i as u8).collect());
    Dataset::Array(Array { voxels, shape: shape.to_vec() })
}

#[test]
fn all_indexes_of_chunks_lead_to_the_same_values() {
    for name in ["indexes.h5", "older_indexes.h5"] {
        let found = read(name).unwrap();
        assert_eq!(found.len(), 17, "{name}");
        for (path, dataset) in found {
            let expected = match path.as_str() {
                "pages" => counted(&[1100]),
                "growing_long" => counted(&[700]),
                "tree_deep" | "tree_deep_gzip" => counted(&[30, 30]),
                "shrunk" => {
                    let values = (0..5).flat_map(|row| (0..3).map(move |column| row * 7 + column)).collect();
                    Dataset::Array(Array { voxels: Voxels::U8(values), shape: vec![5, 3] })
                }
                "sparse" | "never" => {
                    let mut values = vec![-7i16; 42];
                    if path == "sparse" {
                        values[20] = 20;
                    }
                    Dataset::Array(Array { voxels: Voxels::I16(values), shape: vec![6, 7] })
                }
                _ => counted(&[6, 7]),
            };
            assert_eq!(dataset, expected, "{path} of {name}");
        }
    }
}

#[test]
fn large_groups_are_read_in_all_forms() {
    for name in ["groups.h5", "ordered_groups.h5", "older_groups.h5"] {
        let found = read(name).unwrap();
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        let expected: Vec<String> =
            (0..300).map(|i| format!("large/{i:03}")).chain((0..3).map(|i| format!("small/{i}"))).collect();
        assert_eq!(paths, expected, "{name}");
        assert!(found.iter().all(|(_, dataset)| *dataset == counted(&[3])), "{name}");
    }
}

#[test]
fn bytes_of_a_user_may_stand_before_the_file() {
    let bytes = file("contiguous.h5");
    assert!(parse(&[vec![0; 512], bytes.clone()].concat(), &Limits::default()).is_ok());
    let misplaced = parse(&[vec![0; 500], bytes].concat(), &Limits::default());
    assert!(misplaced.unwrap_err().to_string().contains("is this an HDF5 file?"));
    assert_eq!(read("user_block.h5").unwrap(), [("a".to_owned(), counted(&[3]))]);
}

/// Files that are refused, with a part of the sentence.
const REFUSED: [(&str, &str); 8] = [
    ("booleans.h5", "the datatype of the dataset `mask` (enumeration)"),
    ("compound.h5", "the datatype of the dataset `records` (compound)"),
    ("lzf.h5", "filter 32000 of a dataset"),
    ("external_data.h5", "a dataset with its values in another file"),
    ("huge_claim.h5", "2147483648 bytes for `images`"),
    ("loop.h5", "the group `a/again`, which is linked twice"),
    ("narrow_integer.h5", "the datatype of the dataset `odd`"),
    ("odd_float.h5", "the datatype of the dataset `odd`"),
];

#[test]
fn what_is_not_understood_is_refused_with_a_sentence() {
    for (name, sentence) in REFUSED {
        let message =
            read(name).map_or_else(|problem| problem.to_string(), |found| format!("read {found:?}"));
        assert!(message.contains(sentence), "{name}: {message}");
    }
}

#[test]
fn links_are_followed_inside_the_file_only() {
    assert_eq!(read("dangling_link.h5").unwrap(), []);
    assert_eq!(read("external_link.h5").unwrap(), []);
    let a = Dataset::Array(Array { voxels: Voxels::U8(vec![0, 1, 2]), shape: vec![3] });
    assert_eq!(read("soft_link.h5").unwrap(), [("a".to_owned(), a.clone()), ("b".to_owned(), a)]);
}

#[test]
fn limits_are_asked_before_reading() {
    let bytes = file("contiguous.h5");
    let default = Limits::default;
    for (limits, name) in [
        (Limits { file_bytes: 100, ..default() }, "file_bytes"),
        (Limits { values: 20, ..default() }, "values"),
        (Limits { members: 5, ..default() }, "members"),
        (Limits { expanded_bytes: 300, ..default() }, "expanded_bytes"),
        (Limits { header_bytes: 100, ..default() }, "header_bytes"),
        (Limits { memory_base: 10_000, memory_ratio: Some(0), ..default() }, "memory_ratio"),
    ] {
        let message = parse(&bytes, &limits).unwrap_err().to_string();
        assert!(message.contains(&format!("the limit `{name}`")), "{message}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    for (name, _) in GOOD {
        let bytes = file(name);
        for length in (0..bytes.len()).step_by(7) {
            assert!(parse(&bytes[..length], &Limits::default()).is_err(), "{name} cut off at {length}");
        }
    }
}

#[test]
fn no_flipped_byte_changes_numbers_under_a_check_sum() {
    for (name, double) in [("gzip.h5", false), ("gzip_shuffle.h5", true)] {
        let (bytes, right) = (file(name), expected(double, true));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let found = parse(&changed, &Limits::default()).unwrap_or_default();
            // A changed path is noticed by whoever asks for it; text has no check sum.
            let wrong = found.iter().find(|(path, dataset)| {
                matches!(dataset, Dataset::Array(_)) && right.iter().any(|(p, d)| p == path && d != dataset)
            });
            assert_eq!(wrong, None, "{name}, byte {at}");
        }
    }
}

/// Parses changed bytes; what is read has as many values as its shape says.
fn parse_changed(bytes: &[u8]) {
    for (path, dataset) in parse(bytes, &Limits::default()).unwrap_or_default() {
        if let Dataset::Array(array) = dataset {
            assert_eq!(array.voxels.len(), array.shape.iter().product::<usize>(), "{path}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn changed_bytes_do_not_panic(
        which in 0..GOOD.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        splice in prop::option::weighted(0.2, any::<[prop::sample::Index; 3]>()),
    ) {
        let mut bytes = file(GOOD[which].0);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some([from, to, count]) = splice {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let count = count.index(64).min(bytes.len() - from.max(to));
            bytes.copy_within(from..from + count, to);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        parse_changed(&bytes);
    }
}
