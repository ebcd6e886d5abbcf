//! Random changes of bytes with a preference for telling values, for tests that no change makes a reader panic.

use proptest::prelude::*;

/// One change of some bytes.
#[derive(Debug, Clone)]
pub enum Change {
    /// Turns bits of a byte.
    Flip(usize, u8),
    /// Sets a byte.
    Set(usize, u8),
    /// Cuts the end off.
    Cut(usize),
    /// Adds bytes at the end.
    Extend(Vec<u8>),
    /// Repeats a piece at another place.
    Splice(usize, usize, usize),
}

/// Any change; bytes that are set come from `byte`.
pub fn change(byte: impl Strategy<Value = u8> + 'static) -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<usize>(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, 1 << bit)),
        4 => (any::<usize>(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => any::<usize>().prop_map(Change::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Change::Extend),
        1 => (any::<usize>(), any::<usize>(), 1..60usize).prop_map(|(a, b, n)| Change::Splice(a, b, n)),
    ]
}

/// Makes one change.
pub fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let length = bytes.len().max(1);
    match change {
        Change::Flip(at, mask) => bytes.iter_mut().skip(at % length).take(1).for_each(|b| *b ^= mask),
        Change::Set(at, byte) => bytes.iter_mut().skip(at % length).take(1).for_each(|b| *b = *byte),
        Change::Cut(at) => bytes.truncate(at % length),
        Change::Extend(more) => bytes.extend(more),
        Change::Splice(from, to, count) => {
            let (from, to) = (from % length, to % length);
            let part = bytes[from.min(bytes.len())..(from + count).min(bytes.len())].to_vec();
            bytes.splice(to.min(bytes.len())..to.min(bytes.len()), part);
        }
    }
}
