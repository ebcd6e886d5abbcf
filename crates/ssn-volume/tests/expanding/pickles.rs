//! Pickles: contents in gzip, and objects that take more in memory than on disk.

use std::sync::Arc;

use ssn_volume::pickle::{Value, encode};
use ssn_volume::{Array, Voxels};

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
    let bytes = |count| encode(&Value::Bytes(Arc::new(vec![0; count])));
    let array = |voxels: Voxels| {
        let shape = vec![voxels.len()];
        encode(&Value::Array(Arc::new(Array { voxels, shape })))
    };
    let half = replaced(array(Voxels::U16(vec![0; most(8) / 2])), b"u2", b"f2");
    let packed = |pickle: Vec<u8>| longer_gzip(&gzip(&pickle), SIZE);
    let mut cases = vec![
        case("most-bytes.pickle", packed(bytes(most(7))), READ),
        case("most-array.pickle", packed(array(Voxels::I8(vec![0; most(7)]))), READ),
        case("most-half.pickle", packed(half), READ),
        case("much-bytes.pickle", packed(bytes(MUCH)), MEMORY),
        case("much-array.pickle", packed(array(Voxels::U8(vec![0; MUCH]))), MEMORY),
    ];
    for (name, object) in OBJECTS {
        let list = [b"\x80\x04(", &object.repeat((4 << 20) / object.len())[..], b"l."].concat();
        cases.push(case(format!("{name}.pickle"), packed(list), ANY));
    }
    cases
}

fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}
