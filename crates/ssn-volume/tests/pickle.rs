//! Pickles: what Python writes is read right, and what is hostile is refused with a sentence.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use ssn_volume::pickle::{Value, encode, parse};
use ssn_volume::{Array, Limits, Voxels};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(folder("pickle_files").join(name)).unwrap()
}

fn read(bytes: &[u8]) -> Result<Value, String> {
    parse(bytes, &Limits::default()).map_err(|problem| problem.to_string())
}

fn text(text: &str) -> Value {
    Value::Text(Arc::new(text.into()))
}

fn list(items: Vec<Value>) -> Value {
    Value::List(Arc::new(items))
}

fn tuple(items: Vec<Value>) -> Value {
    Value::Tuple(Arc::new(items))
}

fn dict(pairs: Vec<(&str, Value)>) -> Value {
    Value::Dict(Arc::new(pairs.into_iter().map(|(key, value)| (text(key), value)).collect()))
}

fn array(values: Voxels, shape: &[usize]) -> Value {
    Value::Array(Arc::new(Array { voxels: values, shape: shape.to_vec() }))
}

/// The object that the files in `pickle_files` hold.
fn expected() -> Value {
    let mask = || array(Voxels::U8(vec![0, 1, 2, 3, 4, 5]), &[2, 3]);
    let image = Voxels::F64((0..6).map(|x| f64::from(x) / 4.0).collect());
    let case = dict(vec![
        ("image", array(image, &[2, 3])),
        ("masks", list(vec![mask(), mask(), mask(), array(Voxels::U8(vec![0, 3, 1, 4, 2, 5]), &[3, 2])])),
        ("series_uid", text("1.2.é")),
    ]);
    let mut numbers = [0, -1, 70_000, 1 << 40, i64::MIN].map(Value::Int).to_vec();
    numbers.extend([Value::Float(1.5), Value::Bool(true), Value::None, Value::Float(0.25), Value::Int(-3)]);
    dict(vec![
        ("case", case),
        ("half", array(Voxels::F32(vec![0.5, -2.0]), &[2])),
        ("flags", array(Voxels::U8(vec![1, 0]), &[2])),
        ("empty", array(Voxels::I32(vec![]), &[0, 2])),
        ("single", array(Voxels::I64(vec![7]), &[])),
        ("numbers", list(numbers)),
        ("bytes", Value::Bytes(Arc::new(vec![0, 255]))),
        ("mutable", Value::Bytes(Arc::new(b"ab".to_vec()))),
        ("tuple", tuple(vec![Value::Int(1), tuple(vec![Value::Int(2)]), tuple(vec![])])),
        ("set", Value::Set(Arc::new(vec![Value::Int(5)]))),
        ("ordered", dict(vec![("b", Value::Int(1)), ("a", Value::Int(2))])),
    ])
}

#[test]
fn every_protocol_gives_the_same_object() {
    for protocol in 0..=5 {
        let value = read(&fixture(&format!("protocol{protocol}.pickle"))).unwrap();
        assert_eq!(value, expected(), "protocol {protocol}");
    }
    assert_eq!(read(&fixture("protocol4.pickle.gz")).unwrap(), expected());
}

#[test]
fn shared_parts_stay_shared() {
    let value = read(&fixture("protocol4.pickle")).unwrap();
    let masks = value.get("case").and_then(|case| case.get("masks")).and_then(Value::as_list).unwrap();
    assert!(Arc::ptr_eq(masks[0].as_array().unwrap(), masks[1].as_array().unwrap()));
    let again = read(&encode(&value)).unwrap();
    assert_eq!(again, value);
    assert_eq!(encode(&again), encode(&value));
}

#[test]
fn python_2_strings_are_text_or_the_content_of_arrays() {
    assert_eq!(read(b"\x80\x02U\x02ab.").unwrap(), text("ab"));
    assert!(read(b"\x80\x02U\x02a\xff.").unwrap_err().contains("string of Python 2"));
    let array_of_strings = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\
        K\x00\x85U\x01b\x87R\
        (K\x01K\x02\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\
        (K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\
        \x89U\x02\xfe\xfftb.";
    assert_eq!(read(array_of_strings).unwrap(), array(Voxels::U8(vec![254, 255]), &[2]));
}

#[test]
fn limits_are_kept() {
    let pickle = fixture("protocol4.pickle");
    let refuse = |limits: Limits, fragment: &str| {
        let message = parse(&pickle, &limits).unwrap_err().to_string();
        assert!(message.contains(fragment), "{message}");
    };
    refuse(Limits { objects: 20, ..Limits::default() }, "raise the limit `objects`");
    refuse(Limits { values: 5, ..Limits::default() }, "raise the limit `values`");
    refuse(Limits { file_bytes: 5, ..Limits::default() }, "raise the limit `file_bytes`");
    let limits = Limits { expanded_bytes: 100, ..Limits::default() };
    let message = parse(&fixture("protocol4.pickle.gz"), &limits).unwrap_err().to_string();
    assert!(message.contains("raise the limit `expanded_bytes`"), "{message}");
}

#[test]
fn a_flipped_bit_in_a_gzipped_pickle_is_refused() {
    let good = fixture("protocol4.pickle.gz");
    // The first ten bytes are gzip's header, whose time and system carry no content; the last byte before the
    // check sum ends in bits that fill it up.
    let padding = good.len() - 9;
    for place in (10..good.len()).filter(|&place| place != padding) {
        let mut bad = good.clone();
        bad[place] ^= 1 << (place % 8);
        assert!(read(&bad).is_err(), "byte {place}");
    }
}

/// 40 MB of zeros in 40 kB: more than is kept before the check sum is known to be right.
#[test]
fn much_content_from_a_small_file_is_verified_first() {
    use std::io::Write;
    let mut pickle = b"\x80\x04B".to_vec();
    pickle.extend(40_000_000u32.to_le_bytes());
    pickle.resize(pickle.len() + 40_000_000, 0);
    pickle.push(b'.');
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    gzip.write_all(&pickle).unwrap();
    let mut gzip = gzip.finish().unwrap();
    let Value::Bytes(bytes) = read(&gzip).unwrap() else { panic!("bytes") };
    assert_eq!(bytes.len(), 40_000_000);
    let end = gzip.len();
    gzip[end - 5] ^= 1;
    assert!(read(&gzip).unwrap_err().contains("damaged"));
}

#[test]
fn hostile_files_are_refused() {
    let fragments = [
        ("os_system.pickle", "\"os.system\""),
        ("eval.pickle", "\"builtins.eval\" in a pickle is not supported; this reader builds data only"),
        ("getattr.pickle", "\"builtins.getattr\""),
        ("reconstructor.pickle", "\"copyreg._reconstructor\""),
        ("dotted_name.pickle", "\"numpy.ndarray.tofile\""),
        ("instance.pickle", "an object of a class of its own"),
        ("extension.pickle", "extension registry"),
        ("outside_buffer.pickle", "buffers outside the file"),
        ("persistent.pickle", "PyTorch tensor in a plain pickle"),
        ("cycle.pickle", "contains itself"),
        ("doubling.pickle", "16 times larger"),
        ("deep.pickle.gz", "200 levels deep"),
        ("many_lists.pickle.gz", "the memory that the file asks for"),
        ("wrong_crc.pickle.gz", "damaged"),
        ("claims_an_exabyte.pickle", "the pickle needs 1152921504606846987 bytes, but only 15 are there"),
        ("frame_beyond_the_end.pickle", "the last frame of the pickle needs"),
        ("shape_overflows.pickle", "the number of values"),
        ("shape_is_negative.pickle", "state is not as NumPy writes it"),
        ("content_too_short.pickle", "10 bytes for the shape [2, 3]"),
        ("bool_of_seven.pickle", "a value of type bool is 7"),
        ("array_of_objects.pickle", "NumPy dtype \"O8\""),
        ("array_never_filled.pickle", "array without content"),
        ("key_twice.pickle", "a key occurs twice"),
        ("key_is_a_list.pickle", "a key of a dictionary or element of a set that is a list"),
        ("integer_of_800_bits.pickle", "a whole number of 100 bytes, beyond 64 bits"),
        ("memo_gap.pickle", "memo number that leaves out thousands"),
        ("two_pickles.pickle", "with more bytes behind it"),
        ("empty_stack.pickle", "more from the stack than there is"),
        ("protocol_9.pickle", "the protocol of the pickle is 9"),
    ];
    let mut files = 0;
    for entry in std::fs::read_dir(folder("attacks/pickle")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "README.md" || name == "make.py" {
            continue;
        }
        files += 1;
        let (_, fragment) = fragments.iter().find(|(known, _)| *known == name).unwrap();
        match read(&std::fs::read(&path).unwrap()) {
            Ok(_) => panic!("{name} was read"),
            Err(message) => assert!(message.contains(fragment), "{name}: {message}"),
        }
    }
    assert_eq!(files, fragments.len());
}

/// A damaged copy of a file: flipped, cut, extended or with a part of itself somewhere else.
fn damaged(good: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (0..5u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>());
    (prop::sample::select(good), prop::collection::vec(edit, 1..4)).prop_map(|(mut bytes, edits)| {
        for (kind, first, second, byte) in edits {
            let (a, b) = (first.index(bytes.len() + 1), second.index(bytes.len() + 1));
            let (a, b) = (a.min(b), a.max(b));
            match kind {
                0 if a < bytes.len() => bytes[a] ^= byte,
                1 => bytes.truncate(b),
                2 => bytes.extend(vec![byte; a % 50]),
                3 => drop(bytes.splice(a..b, [byte, byte])),
                _ => {
                    let part = bytes[a..b].to_vec();
                    bytes.splice(b..b, part);
                }
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn damaged_files_are_refused_or_read(
        bytes in damaged((0..6).map(|p| fixture(&format!("protocol{p}.pickle"))).collect())
    ) {
        if let Ok(value) = parse(&bytes, &Limits::default()) {
            let written = encode(&value);
            prop_assert_eq!(encode(&read(&written).unwrap()), written);
            let _ = format!("{value:?}");
        }
    }

    #[test]
    fn damaged_gzip_is_refused_or_read(bytes in damaged(vec![fixture("protocol4.pickle.gz")])) {
        let _ = parse(&bytes, &Limits::default());
    }
}
