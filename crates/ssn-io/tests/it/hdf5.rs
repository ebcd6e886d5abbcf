//! HDF5: the layouts of the LIDC file are read, and other files are refused with a sentence. That the bytes of a file are
//! understood is the library's matter.

#![cfg(feature = "hdf5")]
use std::fs;
use std::path::PathBuf;

use ssn_io::formats::hdf5;
use ssn_io::formats::hdf5::Dataset;
use ssn_io::{Array, FileError, Limits, Voxels};

type Datasets = Vec<(String, Dataset)>;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5_files").join(name)
}

fn file(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

fn read(name: &str) -> Result<Datasets, FileError> {
    hdf5::read(&path(name), &Limits::default())
}

/// Reads bytes as a file.
fn parse(bytes: &[u8]) -> Result<Datasets, FileError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    hdf5::read(file.path(), &Limits::default())
}

/// What `make.py` stores, computed by its rules.
fn expected(double: bool, raters_last: bool) -> Datasets {
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
fn bytes_of_a_user_may_stand_before_the_file() {
    let bytes = file("contiguous.h5");
    assert!(parse(&[vec![0; 512], bytes.clone()].concat()).is_ok());
    let misplaced = parse(&[vec![0; 500], bytes].concat());
    assert!(misplaced.unwrap_err().to_string().contains("file signature not found"));
    assert_eq!(read("user_block.h5").unwrap(), [("a".to_owned(), counted(&[3]))]);
}

/// Files that are refused, with a part of the sentence.
const REFUSED: [(&str, &str); 5] = [
    ("compound.h5", "the datatype (compound"),
    ("lzf.h5", "the HDF5 file is damaged"),
    ("external_data.h5", "values in another file of the dataset"),
    ("huge_claim.h5", "2147483648 bytes for `images`"),
    ("loop.h5", "20 levels deep"),
];

#[test]
fn the_library_reads_types_that_are_numbers_in_the_end() {
    let values = |name: &str| read(name).unwrap().remove(0).1;
    assert!(matches!(values("booleans.h5"), Dataset::Array(Array { voxels: Voxels::U8(_), .. })));
    assert!(matches!(values("narrow_integer.h5"), Dataset::Array(Array { voxels: Voxels::U16(_), .. })));
    assert!(matches!(values("odd_float.h5"), Dataset::Array(Array { voxels: Voxels::F32(_), .. })));
}

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
    let default = Limits::default;
    for (limits, name) in [
        (Limits { file_bytes: 100, ..default() }, "file_bytes"),
        (Limits { values: 20, ..default() }, "values"),
        (Limits { members: 5, ..default() }, "members"),
    ] {
        let message = hdf5::read(&path("contiguous.h5"), &limits).unwrap_err().to_string();
        assert!(message.contains(&format!("the limit `{name}`")), "{message}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    for (name, _) in GOOD {
        let bytes = file(name);
        for length in (0..bytes.len()).step_by(97) {
            assert!(parse(&bytes[..length]).is_err(), "{name} cut off at {length}");
        }
    }
}
