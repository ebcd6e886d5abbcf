//! B-trees of version 1: the index of older groups, and of chunks.

use super::bytes::File;
use crate::error::Problem;

/// What a tree indexes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    Group = 0,
    Chunks = 1,
}

/// Calls `visit` with each key of so many bytes and the address below it, in the order of the keys.
pub(super) fn walk<'a>(
    file: &File<'a>,
    root: u64,
    index: Index,
    key: usize,
    visit: &mut dyn FnMut(&'a [u8], u64) -> Result<(), Problem>,
) -> Result<(), Problem> {
    node(file, root, index, key, None, visit)
}

/// A node of a level, or of any for the root. Levels fall to 0 on the way, so that no loop is endless.
fn node<'a>(
    file: &File<'a>,
    address: u64,
    index: Index,
    key: usize,
    expected: Option<u8>,
    visit: &mut dyn FnMut(&'a [u8], u64) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut head = file.part(address, 24, "a B-tree")?;
    head.signature(b"TREE")?;
    let (kind, level, count) = (head.u8()?, head.u8()?, head.u16()?);
    if kind != index as u8 || expected.is_some_and(|expected| expected != level) {
        return Err(head.damaged("a node is of another kind than the one above it says"));
    }
    let length = u64::from(count) * (key as u64 + 8);
    let mut entries = file.part(address.saturating_add(24), length, "a B-tree")?;
    for _ in 0..count {
        let (key_bytes, child) = (entries.bytes(key)?, entries.u64()?);
        match level.checked_sub(1) {
            None => visit(key_bytes, child)?,
            below => node(file, child, index, key, below, visit)?,
        }
    }
    Ok(())
}
