//! NumPy's and PyTorch's files.

use std::io::{Cursor, Write};

use zip::CompressionMethod::{self, Deflated, Stored};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{ANY, Case, MUCH, READ, SIZE, case};

/// Bytes without compression that fill an archive up.
const FILLER: usize = 1_000_000;

pub fn cases() -> Vec<Case> {
    vec![
        case("half-fortran.npy", half_fortran(), READ),
        case("header.npy", header(), ANY),
        case("most.pt", torch(&tensor(SIZE / 10 * 9, 1), SIZE / 10 * 9, Stored), READ),
        case("most-repeated.pt", torch(&tensor(2 * SIZE, 0), 1, Stored), READ),
        case("much.pt", torch(&tensor(MUCH, 1), MUCH, Deflated), "the memory that the file asks for"),
        case("much-repeated.pt", torch(&tensor(MUCH, 0), 1, Stored), "the memory that the file asks for"),
        case("names.pt", torch(&long_names(), 1, Stored), ANY),
    ]
}

fn npy(header: &str, data: usize) -> Vec<u8> {
    let length = (header.len() as u32).to_le_bytes();
    [b"\x93NUMPY\x02\0", &length[..], header.as_bytes(), &vec![0; data]].concat()
}

/// Numbers that are widened and reordered.
fn half_fortran() -> Vec<u8> {
    let count = SIZE / 4 - 100;
    npy(&format!("{{'descr': '<f2', 'fortran_order': True, 'shape': (2, {count}), }}\n"), 4 * count)
}

/// A header that is as long as can be.
fn header() -> Vec<u8> {
    npy(
        &format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({})}}\n", "0,".repeat(SIZE / 2 - 100)),
        0,
    )
}

fn zip(members: &[(String, Vec<u8>, CompressionMethod)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    for (name, content, method) in members {
        let options = SimpleFileOptions::default().compression_method(*method);
        writer.start_file(name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn torch(pickle: &[u8], storage: usize, method: CompressionMethod) -> Vec<u8> {
    let stored = if method == Deflated { storage / 500 } else { storage };
    let length = FILLER.min(SIZE - pickle.len() - stored - 1000);
    zip(&[
        ("a/data.pkl".into(), pickle.to_vec(), Stored),
        ("a/data/0".into(), vec![0; storage], method),
        ("a/filler".into(), vec![0; length], Stored),
    ])
}

/// The pickle of a tensor on a storage of as many bytes, or of one that is repeated where the stride is 0.
fn tensor(count: usize, stride: u8) -> Vec<u8> {
    [&b"\x80\x02"[..], &tensor_object(count, stride), b"."].concat()
}

fn tensor_object(count: usize, stride: u8) -> Vec<u8> {
    let int = |x: usize| [&b"J"[..], &(x as u32).to_le_bytes()].concat();
    [
        &b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nByteStorage\n"[..],
        b"X\x01\0\0\x000X\x03\0\0\0cpu",
        &int(if stride == 0 { 1 } else { count }),
        b"tQK\0",
        &int(count),
        b"\x85K",
        &[stride],
        b"\x85\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat()
}

/// One tensor in a list again and again, below so many long keys that each of its names is long.
fn long_names() -> Vec<u8> {
    const DEPTH: usize = 40;
    let key = [&b"X"[..], &1000u32.to_le_bytes(), &[b'k'; 1000]].concat();
    let mut pickle = b"\x80\x02".to_vec();
    for _ in 0..DEPTH {
        pickle.extend(b"}");
        pickle.extend(&key);
    }
    pickle.extend(b"](");
    pickle.extend(tensor_object(1, 0));
    pickle.extend(b"q\0");
    pickle.extend(b"h\0".repeat(100_000));
    pickle.push(b'e');
    pickle.extend([b's'; DEPTH]);
    pickle.push(b'.');
    pickle
}
