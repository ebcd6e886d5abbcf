//! Pickles: what Python writes is read right, and what is hostile is refused with a sentence.

use std::path::Path;

use proptest::prelude::*;
use ssn_io::formats::pickle::{Value, parse};
use ssn_io::{Array, Limits, Problem, Voxels};

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pickle_files").join(name)).unwrap()
}

/// Reads a pickle and every array in it, as far as the first few levels of dictionaries and lists.
fn read(bytes: &[u8]) -> Result<Vec<Array>, Problem> {
    let pickle = parse(bytes, &Limits::default())?;
    let mut arrays = vec![];
    arrays_of(pickle.root(), 4, &mut arrays)?;
    Ok(arrays)
}

fn arrays_of(value: Value<'_>, depth: usize, arrays: &mut Vec<Array>) -> Result<(), Problem> {
    let parts = match (value.items(), value.entries()?) {
        (Some(items), _) => items,
        (_, Some(entries)) => entries.into_iter().map(|(_, value)| value).collect(),
        _ => vec![],
    };
    parts.into_iter().filter(|_| depth > 0).try_for_each(|part| arrays_of(part, depth - 1, arrays))?;
    value.array().transpose().map(|array| arrays.extend(array))
}

fn message(bytes: &[u8]) -> String {
    read(bytes).map_or_else(|problem| problem.to_string(), |_| String::new())
}

/// The object that `pickle_files` hold in every protocol.
#[test]
fn every_binary_protocol_gives_the_same_object() {
    let names = (2..=5).map(|protocol| format!("protocol{protocol}.pickle"));
    for name in names.chain(["protocol4.pickle.gz".to_owned()]) {
        let bytes = fixture(&name);
        let pickle = parse(&bytes, &Limits::default()).unwrap();
        let (root, case) = (pickle.root(), pickle.root().get("case").unwrap());
        let array =
            |value: Value<'_>| value.array().unwrap().map(|array| (array.voxels, array.shape)).unwrap();
        let image = Voxels::F64((0..6).map(|x| f64::from(x) / 4.0).collect());
        assert_eq!(array(case.get("image").unwrap()), (image, vec![2, 3]), "{name}");
        let masks: Vec<_> = case.get("masks").unwrap().items().unwrap().into_iter().map(array).collect();
        let mask = (Voxels::U8(vec![0, 1, 2, 3, 4, 5]), vec![2, 3]);
        let turned = (Voxels::U8(vec![0, 3, 1, 4, 2, 5]), vec![3, 2]);
        assert_eq!(masks, [mask.clone(), mask.clone(), mask, turned], "{name}");
        assert_eq!(case.get("series_uid").and_then(Value::as_text), Some("1.2.é"), "{name}");
        for (key, values, shape) in [
            ("half", Voxels::F32(vec![0.5, -2.0]), vec![2]),
            ("flags", Voxels::U8(vec![1, 0]), vec![2]),
            ("empty", Voxels::I32(vec![]), vec![0, 2]),
            ("single", Voxels::I64(vec![7]), vec![]),
        ] {
            assert_eq!(array(root.get(key).unwrap()), (values, shape), "{key} of {name}");
        }
        let numbers = root.get("numbers").and_then(Value::items).unwrap();
        let sizes: Vec<_> = numbers.into_iter().take(4).map(Value::as_size).collect();
        assert_eq!(sizes, [Some(0), None, Some(70_000), Some(1 << 40)], "{name}");
        let kinds: Vec<_> =
            root.entries().unwrap().unwrap().into_iter().map(|(key, x)| (key, x.kind())).collect();
        let more = [("tuple", "tuple"), ("set", "set"), ("ordered", "dict")];
        assert!(more.iter().all(|pair| kinds.contains(pair)), "{name}: {kinds:?}");
        let ordered = root.get("ordered").unwrap().entries().unwrap().unwrap();
        assert_eq!(
            ordered.iter().map(|(key, x)| (*key, x.as_size())).collect::<Vec<_>>(),
            [("b", Some(1)), ("a", Some(2))]
        );
    }
    for name in ["protocol0.pickle", "protocol1.pickle"] {
        let message = message(&fixture(name));
        assert!(message.contains("the text form of protocols 0 and 1"), "{name}: {message}");
    }
}

#[test]
fn python_2_strings_are_text_or_the_content_of_arrays() {
    let bytes = b"\x80\x02U\x02ab.";
    assert_eq!(parse(bytes, &Limits::default()).unwrap().root().as_text(), Some("ab"));
    let array_of_strings = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\
        K\x00\x85U\x01b\x87R\
        (K\x01K\x02\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\
        (K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\
        \x89U\x02\xfe\xfftb.";
    let array = Array { voxels: Voxels::U8(vec![254, 255]), shape: vec![2] };
    assert_eq!(read(array_of_strings).unwrap(), [array]);
}

#[test]
fn limits_are_kept() {
    let pickle = fixture("protocol4.pickle");
    let refuse = |limits: Limits, fragment: &str| {
        let arrays = |pickle: ssn_io::formats::pickle::Pickle<'_>| {
            pickle.root().get("single").unwrap().array().unwrap()
        };
        let message = parse(&pickle, &limits).and_then(arrays).unwrap_err().to_string();
        assert!(message.contains(fragment), "{message}");
    };
    refuse(Limits { objects: 20, ..Limits::default() }, "raise the limit `objects`");
    refuse(Limits { values: 0, ..Limits::default() }, "raise the limit `values`");
    refuse(Limits { file_bytes: 5, ..Limits::default() }, "raise the limit `file_bytes`");
    let limits = Limits { expanded_bytes: 100, ..Limits::default() };
    let message = parse(&fixture("protocol4.pickle.gz"), &limits).unwrap_err().to_string();
    assert!(message.contains("raise the limit `expanded_bytes`"), "{message}");
}

#[test]
fn a_flipped_bit_in_a_gzipped_pickle_is_refused() {
    let good = fixture("protocol4.pickle.gz");
    // The first ten bytes are gzip's header, whose time and system carry no content; the last byte before the
    // checksum ends in bits that fill it up.
    let padding = good.len() - 9;
    for place in (10..good.len()).filter(|&place| place != padding) {
        let mut bad = good.clone();
        bad[place] ^= 1 << (place % 8);
        assert!(parse(&bad, &Limits::default()).is_err(), "byte {place}");
    }
}

/// 40 MB of zeros in 40 kB: more than is kept before the checksum is known to be right.
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
    assert_eq!(parse(&gzip, &Limits::default()).unwrap().root().kind(), "bytes");
    let end = gzip.len();
    gzip[end - 5] ^= 1;
    assert!(message(&gzip).contains("damaged"));
}

#[test]
fn hostile_files_are_refused() {
    // Nothing is built of what is only named, so that shared, deep and endless objects cost nothing.
    let expected = [
        ("os_system.pickle", "\"os.system\""),
        ("eval.pickle", "\"builtins.eval\" in a pickle is not supported; this reader builds data only"),
        ("getattr.pickle", "\"builtins.getattr\""),
        ("reconstructor.pickle", "\"copyreg._reconstructor\""),
        ("dotted_name.pickle", "\"numpy.ndarray.tofile\""),
        ("instance.pickle", "an object of a class of its own"),
        ("extension.pickle", "extension registry"),
        ("outside_buffer.pickle", "buffers outside the file"),
        ("persistent.pickle", ""),
        ("cycle.pickle", ""),
        ("doubling.pickle", ""),
        ("deep.pickle.gz", "the number of objects in the pickle is"),
        ("many_lists.pickle.gz", "the number of objects in the pickle is"),
        ("wrong_crc.pickle.gz", "damaged"),
        ("claims_an_exabyte.pickle", "the pickle needs 1152921504606846987 bytes, but only 15 are there"),
        ("frame_beyond_the_end.pickle", "the last frame of the pickle needs"),
        ("shape_overflows.pickle", "the number of values"),
        ("shape_is_negative.pickle", "state is not as NumPy writes it"),
        ("content_too_short.pickle", "10 bytes for the shape [2, 3]"),
        ("bool_of_seven.pickle", "a value of type bool is 7"),
        ("array_of_objects.pickle", ""),
        ("array_never_filled.pickle", "array without content"),
        ("key_twice.pickle", "a key occurs twice"),
        ("key_is_a_list.pickle", "a key of a dictionary that is no text"),
        ("integer_of_800_bits.pickle", "a whole number of 100 bytes, beyond 64 bits"),
        ("memo_gap.pickle", ""),
        ("two_pickles.pickle", "with more bytes behind it"),
        ("empty_stack.pickle", "more from the stack than there is"),
        ("protocol_9.pickle", "the protocol of the pickle is 9"),
    ];
    hostile_files::all("pickle", &expected, |path| message(&std::fs::read(path).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn damaged_files_are_refused_or_read(
        protocol in 2..6,
        changes in prop::collection::vec(change(any::<u8>()), 1..4),
    ) {
        let _ = read(&changed(fixture(&format!("protocol{protocol}.pickle")), &changes));
    }

    #[test]
    fn damaged_gzip_is_refused_or_read(changes in prop::collection::vec(change(any::<u8>()), 1..4)) {
        let _ = read(&changed(fixture("protocol4.pickle.gz"), &changes));
    }
}
