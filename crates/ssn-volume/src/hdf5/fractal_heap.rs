//! Fractal heaps, in which large groups keep their links: blocks that double in size, row by row.

use super::bytes::{Cursor, File, NOWHERE, unknown};
use super::checksum::{agree, lookup3};
use crate::error::Problem;

const PART: &str = "a fractal heap";
/// Bytes of the smallest block. Libraries write 512; with less, a small file could list blocks without end.
const SMALLEST: u64 = 256;
/// Whether blocks have a check sum.
const SUMS: u8 = 0b10;

/// A block with objects.
struct Block {
    /// Where it starts in the heap.
    offset: u64,
    address: u64,
    size: u64,
}

pub(super) struct FractalHeap {
    /// Bytes of an offset in the heap, and of a length.
    sizes: [usize; 2],
    sums: bool,
    /// Blocks in a row, bytes of the first, and bytes of the largest.
    width: u64,
    first: u64,
    largest: u64,
    /// In the order of their offsets.
    blocks: Vec<Block>,
}

impl FractalHeap {
    pub(super) fn read(file: &File, address: u64) -> Result<Self, Problem> {
        if file.part(address.saturating_add(7), 2, PART)?.u16()? != 0 {
            return Err(unknown("a group whose links are compressed".to_owned()));
        }
        let mut head = file.sealed(address, 146, b"FRHP", PART)?;
        head.version(0)?;
        head.skip(2 + 2)?;
        let (flags, longest) = (head.u8()?, head.u32()?);
        head.skip(12 * 8)?;
        let (width, first, largest, bits) = (head.u16()?, head.u64()?, head.u64()?, head.u16()?);
        head.skip(2)?;
        let (root, rows) = (head.u64()?, head.u16()?);
        let powers = [width.into(), first, largest].iter().all(|size: &u64| size.is_power_of_two());
        if !powers || first < SMALLEST || largest < first || bits > 64 || rows > bits || longest == 0 {
            return Err(head.damaged("the sizes of its blocks are not those of any writer"));
        }
        let length_size = largest.ilog2().div_ceil(8).min(longest.ilog2() / 8 + 1);
        let mut heap = Self {
            sizes: [usize::from(bits).div_ceil(8), length_size as usize],
            sums: flags & SUMS != 0,
            width: width.into(),
            first,
            largest,
            blocks: vec![],
        };
        match rows {
            _ if root == NOWHERE => {}
            0 => heap.block(file, Block { offset: 0, address: root, size: first })?,
            rows => heap.rows(file, root, rows.into(), 0)?,
        }
        Ok(heap)
    }

    /// Blocks below a block of addresses. Rows get fewer on the way down.
    fn rows(&mut self, file: &File, address: u64, rows: u32, mut offset: u64) -> Result<(), Problem> {
        let frame = (4 + 1 + 8 + self.sizes[0] + 4) as u64;
        let length = frame + u64::from(rows) * self.width * 8;
        let mut children = file.sealed(address, length, b"FHIB", PART)?;
        children.version(0)?;
        children.skip(8 + self.sizes[0])?;
        for row in 0..rows {
            let doublings = row.saturating_sub(1);
            let Some(size) = self.first.checked_mul(1 << doublings) else {
                return Err(children.damaged("it has more rows than can be counted"));
            };
            for _ in 0..self.width {
                match children.u64()? {
                    NOWHERE => {}
                    address if size <= self.largest => self.block(file, Block { offset, address, size })?,
                    address => {
                        let Some(rows) = row.checked_sub(self.width.ilog2()).filter(|&rows| rows > 0) else {
                            return Err(children.damaged("a row is too small for rows below it"));
                        };
                        self.rows(file, address, rows, offset)?;
                    }
                }
                offset = offset.saturating_add(size);
            }
        }
        Ok(())
    }

    /// A block with objects, whose check sum was computed with zeros in its own place.
    fn block(&mut self, file: &File, block: Block) -> Result<(), Problem> {
        let mut inside = file.part(block.address, block.size, PART)?;
        if self.sums {
            let mut copy = inside.rest.to_vec();
            let place = 4 + 1 + 8 + self.sizes[0];
            copy[place..place + 4].fill(0);
            let sum = Cursor { rest: &inside.rest[place..], part: PART }.u32()?;
            if !agree(lookup3(&copy), sum) {
                return Err(inside.damaged("the check sum of a block is wrong"));
            }
        }
        inside.signature(b"FHDB")?;
        self.blocks.push(block);
        Ok(())
    }

    /// An object, from where it lies in the heap.
    pub(super) fn object<'a>(&self, file: &File<'a>, mut place: Cursor) -> Result<&'a [u8], Problem> {
        // Version 0, and neither too large for a block nor small enough to lie in its own place.
        if place.u8()? & 0xf0 != 0 {
            return Err(unknown("a link with a very long name".to_owned()));
        }
        let (offset, length) = (place.number(self.sizes[0])?, place.number(self.sizes[1])?);
        let after = self.blocks.partition_point(|block| block.offset <= offset);
        let Some(block) = after.checked_sub(1).map(|at| &self.blocks[at]) else {
            return Err(place.damaged("an object lies outside of its blocks"));
        };
        let start = offset - block.offset;
        if start.checked_add(length).is_none_or(|end| end > block.size) {
            return Err(place.damaged("an object lies outside of its blocks"));
        }
        Ok(file.part(block.address + start, length, PART)?.rest)
    }
}
