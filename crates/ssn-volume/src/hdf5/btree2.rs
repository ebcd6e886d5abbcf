//! B-trees of version 2: the index of links in large groups, and of chunks that may grow along several axes.

use super::bytes::{Cursor, File};
use crate::error::Problem;

const PART: &str = "a B-tree";
/// Bytes of a node beside its records: signature, version, kind and check sum.
const FRAME: u64 = 10;
/// Levels of a tree; with nodes of at least two children, 64 would hold more records than can be counted.
const DEEPEST: u16 = 64;

/// What all nodes of a tree share.
struct Tree {
    kind: u8,
    /// Bytes of a record.
    record: u64,
    /// Bytes of the number of records in a node.
    count_size: usize,
    /// Bytes of the number of records below a node, by its level.
    total_sizes: Vec<usize>,
}

/// Calls `visit` with each record, in their order. The tree must be of one of the kinds.
pub(super) fn walk<'a>(
    file: &File<'a>,
    address: u64,
    kinds: &[u8],
    visit: &mut dyn FnMut(Cursor<'a>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut head = file.sealed(address, 38, b"BTHD", PART)?;
    head.version(0)?;
    let (kind, node_size, record, depth) = (head.u8()?, head.u32()?, head.u16()?, head.u16()?);
    head.skip(2)?;
    let (root, count) = (head.u64()?, head.u16()?);
    if !kinds.contains(&kind) || record == 0 || depth > DEEPEST {
        return Err(head.damaged("it is of another kind than the object that it belongs to"));
    }
    if count == 0 {
        return Ok(());
    }
    let tree = Tree::new(kind, node_size.into(), record.into(), depth);
    tree.node(file, root, count.into(), depth, visit)
}

impl Tree {
    /// How wide the fields of nodes are follows from how many records fit into nodes, and into all nodes below.
    fn new(kind: u8, node_size: u64, record: u64, depth: u16) -> Self {
        let room = node_size.saturating_sub(FRAME);
        let in_leaf = room / record;
        let count_size = size_of_number(in_leaf);
        let (mut below, mut total_sizes) = (in_leaf, vec![0]);
        for level in 1..=depth {
            let pointer = (8 + count_size + total_sizes[usize::from(level) - 1]) as u64;
            let in_node = room.saturating_sub(pointer) / (record + pointer);
            below = (in_node + 1).saturating_mul(below).saturating_add(in_node);
            total_sizes.push(size_of_number(below));
        }
        Self { kind, record, count_size, total_sizes }
    }

    /// A node of a level; level 0 has records alone, others have children around each of them.
    fn node<'a>(
        &self,
        file: &File<'a>,
        address: u64,
        count: u64,
        level: u16,
        visit: &mut dyn FnMut(Cursor<'a>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let total_size = level.checked_sub(1).map(|below| self.total_sizes[usize::from(below)]);
        let pointers = total_size.map_or(0, |size| (count + 1) * (8 + self.count_size + size) as u64);
        let signature = if level == 0 { b"BTLF" } else { b"BTIN" };
        let mut inside = file.sealed(address, FRAME + count * self.record + pointers, signature, PART)?;
        inside.version(0)?;
        if inside.u8()? != self.kind {
            return Err(inside.damaged("a node is of another kind than its tree"));
        }
        let mut records = Cursor { rest: inside.bytes((count * self.record) as usize)?, part: PART };
        for place in 0..=count {
            if let Some(total_size) = total_size {
                let (child, below) = (inside.u64()?, inside.number(self.count_size)?);
                inside.skip(total_size)?;
                self.node(file, child, below, level - 1, visit)?;
            }
            if place < count {
                visit(Cursor { rest: records.bytes(self.record as usize)?, part: PART })?;
            }
        }
        Ok(())
    }
}

/// Bytes of the largest number that a field has to hold.
fn size_of_number(largest: u64) -> usize {
    largest.checked_ilog2().map_or(1, |bits| bits as usize / 8 + 1)
}
