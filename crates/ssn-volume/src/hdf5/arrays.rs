//! Indexes of chunks that are arrays: of fixed length, or growing along one axis.
//!
//! Both give the place of a chunk by its number. Long blocks are divided into pages, of which only those with a bit
//! in a bitmap were ever written.

use std::ops::Range;

use super::bytes::{Cursor, File, NOWHERE};
use super::chunks::Entry;
use crate::error::Problem;

const PART: &str = "an index of chunks";
/// Bytes before the content of a block: signature, version, kind, and the address of the array.
const FRAME: u64 = 4 + 1 + 1 + 8;

/// Calls with the number of a chunk and its entry.
type Visit<'v> = &'v mut dyn FnMut(u64, Entry) -> Result<(), Problem>;

/// What all blocks of an array share.
struct Array<'f, 'a> {
    file: &'f File<'a>,
    /// Bytes of a chunk without filters.
    chunk: u64,
    /// Entries have the length of their chunk, and a mask of filters.
    filtered: bool,
    /// Bytes of an entry.
    entry: u64,
    /// Entries of a page.
    page: u64,
    /// Bytes before the content of a data block.
    frame: u64,
    signature: &'static [u8; 4],
}

/// An array of fixed length: one data block.
pub(super) fn fixed(file: &File, address: u64, chunk: u64, visit: Visit) -> Result<(), Problem> {
    let mut head = file.sealed(address, 28, b"FAHD", PART)?;
    head.version(0)?;
    let (filtered, entry, page) = (head.u8()? == 1, head.u8()?.into(), page(&mut head)?);
    let array = Array { file, chunk, filtered, entry, page, frame: FRAME, signature: b"FADB" };
    let (count, block) = (head.u64()?, head.u64()?);
    let bits = array.pages_of(count).div_ceil(8);
    if block == NOWHERE || bits == 0 {
        return array.block(block, 0..count, None, visit);
    }
    let start = file.part(block, bits.saturating_add(FRAME), PART)?;
    // The bitmap belongs to the frame, with which it shares a check sum.
    Array { frame: FRAME + bits, ..array }.block(
        block,
        0..count,
        Some((&start.rest[FRAME as usize..], 0)),
        visit,
    )
}

/// An array that grows. Its index block has some entries, the addresses of the first data blocks, and those of super
/// blocks, which have the addresses of all others. Rows of data blocks get more blocks and longer ones by turns.
pub(super) fn growing(file: &File, address: u64, chunk: u64, visit: Visit) -> Result<(), Problem> {
    let mut head = file.sealed(address, 72, b"EAHD", PART)?;
    head.version(0)?;
    let (filtered, entry, bits) = (head.u8()? == 1, head.u8()?.into(), head.u8()?);
    let (inline, least, pointers) = (u64::from(head.u8()?), head.u8()?, head.u8()?);
    let frame = FRAME + u64::from(bits.div_ceil(8));
    let array = Array { file, chunk, filtered, entry, page: page(&mut head)?, frame, signature: b"EADB" };
    head.skip(6 * 8)?;
    let index = head.u64()?;
    if !least.is_power_of_two() || !pointers.is_power_of_two() || bits > 64 {
        return Err(head.damaged("the sizes of its blocks are not those of any writer"));
    }
    if index == NOWHERE {
        return Ok(());
    }
    let rows = (u32::from(bits) + 1).saturating_sub(least.ilog2());
    let known = (2 * pointers.ilog2()).min(rows);
    let addresses = 2 * (u64::from(pointers) - 1) + u64::from(rows - known);
    let length = FRAME + inline * array.entry + 8 * addresses + 4;
    let mut index = file.sealed(index, length, b"EAIB", PART)?;
    index.skip(FRAME as usize - 4)?;
    (0..inline).try_for_each(|number| array.entry(number, &mut index, visit))?;
    let mut first = inline;
    for row in 0..rows {
        let (blocks, length) = (1 << (row / 2), u64::from(least) << row.div_ceil(2));
        let blocks_of_row = Row { first, blocks, length };
        first = first.saturating_add(blocks.saturating_mul(length));
        match row < known {
            true => array.row(&blocks_of_row, &mut index, None, visit)?,
            false => array.super_block(&blocks_of_row, index.u64()?, visit)?,
        }
    }
    Ok(())
}

/// Data blocks of one length: the number of the first chunk, how many there are, and how many entries each has.
struct Row {
    first: u64,
    blocks: u64,
    length: u64,
}

impl Array<'_, '_> {
    /// The pages of a data block with so many entries; none where it is not divided.
    fn pages_of(&self, count: u64) -> u64 {
        if count <= self.page { 0 } else { count.div_ceil(self.page) }
    }

    /// A super block: a bitmap for the pages of its data blocks, and their addresses.
    fn super_block(&self, row: &Row, address: u64, visit: Visit) -> Result<(), Problem> {
        if address == NOWHERE {
            return Ok(());
        }
        let bits = row.blocks.saturating_mul(self.pages_of(row.length).div_ceil(8));
        let length = row.blocks.saturating_mul(8).saturating_add(bits).saturating_add(self.frame + 4);
        let mut inside = self.file.sealed(address, length, b"EASB", PART)?;
        inside.skip(self.frame as usize - 4)?;
        let bitmap = inside.bytes(bits as usize)?;
        self.row(row, &mut inside, Some(bitmap), visit)
    }

    /// The data blocks of a row, from their addresses.
    fn row(
        &self,
        row: &Row,
        addresses: &mut Cursor,
        bitmap: Option<&[u8]>,
        visit: Visit,
    ) -> Result<(), Problem> {
        let pages = self.pages_of(row.length);
        for at in 0..row.blocks {
            let first = row.first.saturating_add(at.saturating_mul(row.length));
            let bits = bitmap.filter(|_| pages > 0).map(|bitmap| (bitmap, at.saturating_mul(pages)));
            self.block(addresses.u64()?, first..first.saturating_add(row.length), bits, visit)?;
        }
        Ok(())
    }

    /// The entries of a data block; where it has pages, of those whose bit in a bitmap is set.
    fn block(
        &self,
        address: u64,
        numbers: Range<u64>,
        pages: Option<(&[u8], u64)>,
        visit: Visit,
    ) -> Result<(), Problem> {
        if address == NOWHERE {
            return Ok(());
        }
        let Some((bitmap, mut bit)) = pages else {
            let length = self.bytes(&numbers).saturating_add(self.frame);
            let mut inside = self.file.sealed(address, length, self.signature, PART)?;
            inside.skip(self.frame as usize - 4)?;
            return numbers.into_iter().try_for_each(|number| self.entry(number, &mut inside, visit));
        };
        self.file.sealed(address, self.frame + 4, self.signature, PART)?;
        let (mut place, mut first) = (address.saturating_add(self.frame + 4), numbers.start);
        while first < numbers.end {
            let page = first..first.saturating_add(self.page).min(numbers.end);
            self.file.count(8)?;
            first = page.end;
            let length = self.bytes(&page);
            let byte = usize::try_from(bit / 8).ok().and_then(|at| bitmap.get(at)).unwrap_or(&0);
            if byte & (0x80 >> (bit % 8)) != 0 {
                let mut inside = self.file.part(place, length, PART)?.verified()?;
                page.into_iter().try_for_each(|number| self.entry(number, &mut inside, visit))?;
            }
            (place, bit) = (place.saturating_add(length), bit + 1);
        }
        Ok(())
    }

    /// Bytes of entries and their check sum.
    fn bytes(&self, numbers: &Range<u64>) -> u64 {
        (numbers.end - numbers.start).saturating_mul(self.entry).saturating_add(4)
    }

    fn entry(&self, number: u64, entries: &mut Cursor, visit: Visit) -> Result<(), Problem> {
        let mut entry = Cursor { rest: entries.bytes(self.entry as usize)?, part: PART };
        let address = entry.u64()?;
        let (mut length, mut mask) = (self.chunk, 0);
        if self.filtered {
            // The length takes what an address and a mask leave of an entry.
            length = entry.number(entry.rest.len().saturating_sub(4))?;
            mask = entry.u32()?;
        }
        if address == NOWHERE { Ok(()) } else { visit(number, Entry { address, length, mask }) }
    }
}

/// The number of entries of a page, from its logarithm.
fn page(head: &mut Cursor) -> Result<u64, Problem> {
    let bits = head.u8()?;
    1u64.checked_shl(bits.into()).ok_or_else(|| head.damaged("its pages are too long"))
}
