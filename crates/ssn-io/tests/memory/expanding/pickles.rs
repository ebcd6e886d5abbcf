//! Pickles: contents in gzip, and objects that take more in memory than on disk.

use super::{ANY, Case, MEMORY, MUCH, READ, SIZE, case, gzip, longer_gzip, most};

/// Opcodes that make an object, or several, in a few bytes each.
const OBJECTS: [(&str, &[u8]); 14] = [
    ("lists", b"]"),
    ("dicts", b"}"),
    ("sets", b"\x8f"),
    ("numbers", b"M\x01\x02"),
    ("floats", b"G\x01\x01\x01\x01\x01\x01\x01\x01"),
    ("nothing", b"N"),
    ("memo", b"]\x94"),
    ("tuples", b"NNN\x87"),
    ("texts", b"\x8c\x01a"),
    ("bytes", b"C\x01a"),
    ("pairs", b"}NNs"),
    ("items", b"](NNNNNe"),
    ("dtypes", b"cnumpy\ndtype\n"),
    ("ordered", b"ccollections\nOrderedDict\n)R"),
];

pub fn cases() -> Vec<Case> {
    let packed = |pickle: Vec<u8>| longer_gzip(&gzip(&pickle), SIZE);
    let bytes = |count: usize| [b"\x80\x04", content(count).as_slice(), b"."].concat();
    let mut cases = vec![
        case("most-bytes.pickle", packed(bytes(most(7))), READ),
        case("most-array.pickle", packed(array("i1", most(7))), READ),
        case("most-half.pickle", packed(array("f2", most(10) / 2 * 2)), READ),
        case("much-bytes.pickle", packed(bytes(MUCH)), MEMORY),
        case("much-array.pickle", packed(array("u1", MUCH)), MEMORY),
    ];
    for (name, object) in OBJECTS {
        let list = [b"\x80\x04(", &object.repeat((4 << 20) / object.len())[..], b"l."].concat();
        cases.push(case(format!("{name}.pickle"), packed(list), ANY));
    }
    cases
}

fn content(count: usize) -> Vec<u8> {
    [b"B", &(count as u32).to_le_bytes()[..], &vec![0; count]].concat()
}

/// A pickle of one array of zeros of so many bytes.
fn array(dtype: &str, count: usize) -> Vec<u8> {
    let size = usize::from(dtype.as_bytes()[1] - b'0');
    [
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R(K\x01J",
        &((count / size) as u32).to_le_bytes()[..],
        b"\x85cnumpy\ndtype\nX\x02\0\0\0",
        dtype.as_bytes(),
        b"\x89\x88\x87R(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89",
        &content(count),
        b"tb.",
    ]
    .concat()
}
