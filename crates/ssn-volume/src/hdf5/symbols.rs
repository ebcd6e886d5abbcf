//! Older groups: a B-tree of symbol tables, with the names in a local heap.

use super::btree1::{self, Index};
use super::bytes::{Cursor, File};
use super::links::{Links, Target};
use crate::error::Problem;

const PART: &str = "a symbol table";
/// Bytes of an entry: where its name lies, its header, what is cached, 4 unused, and 16 of the cache.
const ENTRY: u64 = 40;
/// What is cached about an entry that is a soft link.
const SOFT: u32 = 2;

/// Collects the links of a group, from the body of its message.
pub(super) fn read<'a>(
    file: &File<'a>,
    mut message: Cursor<'a>,
    links: &mut Links<'a>,
) -> Result<(), Problem> {
    let (tree, heap) = (message.u64()?, message.u64()?);
    let heap = LocalHeap::read(file, heap)?;
    btree1::walk(file, tree, Index::Group, 8, &mut |_, table| {
        let mut head = file.part(table, 8, PART)?;
        head.signature(b"SNOD")?;
        head.version(1)?;
        head.skip(1)?;
        let count = head.u16()?;
        let mut entries = file.part(table.saturating_add(8), u64::from(count) * ENTRY, PART)?;
        for _ in 0..count {
            let (name, address, cached) = (entries.u64()?, entries.u64()?, entries.u32()?);
            entries.skip(4)?;
            let path = entries.u32()?;
            entries.skip(12)?;
            let target = match cached {
                SOFT => Target::Path(heap.text(file, path.into())?),
                _ => Target::Object(address),
            };
            links.push(heap.text(file, name)?, target)?;
        }
        Ok(())
    })
}

/// Names, each up to a zero.
struct LocalHeap<'a>(&'a [u8]);

impl<'a> LocalHeap<'a> {
    fn read(file: &File<'a>, address: u64) -> Result<Self, Problem> {
        let mut head = file.part(address, 32, "a local heap")?;
        head.signature(b"HEAP")?;
        head.version(0)?;
        head.skip(3)?;
        let (length, _free, data) = (head.u64()?, head.u64()?, head.u64()?);
        Ok(Self(file.values(data, length, "a local heap")?))
    }

    /// A text, which is counted: many entries may share a long one.
    fn text(&self, file: &File<'a>, offset: u64) -> Result<&'a str, Problem> {
        let start = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..)).unwrap_or(&[]);
        let mut cursor = Cursor { rest: start, part: "a local heap" };
        let Some(length) = start.iter().position(|&byte| byte == 0) else {
            return Err(cursor.damaged("a name has no end"));
        };
        file.count(length as u64)?;
        cursor.text(length)
    }
}
