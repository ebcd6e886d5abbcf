//! Random changes of the bytes of a file, for tests that no change makes a reader panic.

use proptest::prelude::*;
use proptest::sample::Index;

/// One change of the bytes of a file.
#[derive(Debug, Clone)]
pub enum Change {
    /// Turns bits of a byte.
    Flip(Index, u8),
    /// Sets a byte.
    Set(Index, u8),
    /// Sets some bytes to those of a number.
    Number(Index, u64, usize),
    /// Cuts the end off.
    Cut(Index),
    /// Adds bytes at the end.
    Extend(Vec<u8>),
    /// Repeats the piece between two places at a third one, where it replaces some bytes.
    Splice([Index; 3], usize),
}

/// Any change; bytes that are set come from `byte`.
pub fn change(byte: impl Strategy<Value = u8> + 'static) -> impl Strategy<Value = Change> {
    let extreme = prop::sample::select(vec![0, 1, u64::MAX, 1 << 63, 0x7f, 0x7fff_ffff, 0x7f80_0000, 0x0101]);
    prop_oneof![
        4 => (any::<Index>(), 1u8..).prop_map(|(at, bits)| Change::Flip(at, bits)),
        4 => (any::<Index>(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        2 => (any::<Index>(), extreme, 1..=8usize).prop_map(|(at, number, width)| Change::Number(at, number, width)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Change::Extend),
        2 => (any::<[Index; 3]>(), 0..40usize).prop_map(|(places, gone)| Change::Splice(places, gone)),
    ]
}

/// The bytes after some changes.
pub fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match change {
            Change::Flip(at, bits) => bytes[at.index(length)] ^= bits,
            Change::Set(at, byte) => bytes[at.index(length)] = *byte,
            Change::Number(at, number, width) => {
                // The numbers of a header are aligned.
                let start = at.index(length) / 4 * 4;
                bytes[start..]
                    .iter_mut()
                    .zip(number.to_le_bytes())
                    .take(*width)
                    .for_each(|(b, new)| *b = new);
            }
            Change::Cut(at) => bytes.truncate(at.index(length)),
            Change::Extend(more) => bytes.extend(more),
            Change::Splice(places, gone) => {
                let [from, to, at] = places.map(|place| place.index(length));
                let piece = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(at..(at + gone).min(length), piece);
            }
        }
    }
    bytes
}
