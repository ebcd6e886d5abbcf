//! Random changes of the bytes of a file, for tests that no change makes a reader panic.

use proptest::prelude::*;
use proptest::sample::Index;

/// One change of the bytes of a file.
#[derive(Debug, Clone)]
pub enum Change {
    /// Turns bits of a byte.
    Flip(Index, u8),
    /// Cuts the end off.
    Cut(Index),
    /// Adds bytes at the end.
    Extend(Vec<u8>),
    /// Repeats a piece at another place.
    Splice(Index, Index, Index),
}

/// Any change, flips of bits most often.
pub fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), 1u8..).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => proptest::collection::vec(any::<u8>(), 1..20).prop_map(Change::Extend),
        2 => any::<[Index; 3]>().prop_map(|[from, to, at]| Change::Splice(from, to, at)),
    ]
}

/// The bytes after some changes.
pub fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes.iter().cloned() {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match change {
            Change::Flip(at, bits) => bytes[at.index(length)] ^= bits,
            Change::Cut(at) => bytes.truncate(at.index(length)),
            Change::Extend(more) => bytes.extend(more),
            Change::Splice(from, to, at) => {
                let (from, to) = (from.index(length), to.index(length));
                let piece = bytes[from.min(to)..from.max(to)].to_vec();
                let at = at.index(length);
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}
