//! Datasets in chunks: where each chunk lies, by any of six indexes, and where its values belong.

use super::arrays;
use super::btree1;
use super::btree2;
use super::bytes::{Cursor, File, NOWHERE};
use super::filters::Filters;
use crate::error::Problem;

const PART: &str = "an index of chunks";
/// What it costs to find a chunk, in bytes that are looked at.
const VISIT: u64 = 64;

/// Takes a run of values: the number of the first, and their bytes.
pub(super) type Place<'p> = dyn FnMut(usize, &[u8]) -> Result<(), Problem> + 'p;
/// Takes the place of a chunk, counted in chunks along the axes, and its entry.
type Visit<'v> = dyn FnMut(&[u64], Entry) -> Result<(), Problem> + 'v;

/// Where the stored bytes of a chunk lie, and the filters that were left out.
pub(super) struct Entry {
    pub(super) address: u64,
    pub(super) length: u64,
    pub(super) mask: u32,
}

/// How chunks are found.
pub(super) enum Index {
    OlderTree,
    /// One chunk, with its length and mask where it has filters.
    Single(Option<(u64, u32)>),
    /// One after the other.
    Implicit,
    FixedArray,
    GrowingArray,
    NewerTree,
}

pub(super) struct Chunks {
    pub(super) index: Index,
    /// Where the index, or the only chunk, lies.
    pub(super) address: u64,
    /// Lengths of a chunk along the axes.
    pub(super) shape: Vec<u64>,
    /// Bytes of a chunk.
    pub(super) bytes: u64,
    pub(super) filters: Filters,
    /// Filters leave out chunks that stick out of the dataset.
    pub(super) plain_edges: bool,
}

impl Chunks {
    /// Calls `place` with rows of values. `dims` are the lengths of the dataset, and `most` those to which it may grow.
    pub(super) fn rows(
        &self,
        file: &File,
        dims: &[u64],
        most: &[u64],
        place: &mut Place,
    ) -> Result<(), Problem> {
        if self.address == NOWHERE {
            return Ok(());
        }
        self.each(file, most, &mut |at, entry| {
            file.count(VISIT)?;
            let Some(part) = Part::new(at, &self.shape, dims) else { return Ok(()) };
            let stored = file.values(entry.address, entry.length, "a chunk")?;
            let mask = if self.plain_edges && part.is_cut(&self.shape) { u32::MAX } else { entry.mask };
            let bytes = self.filters.undo(file, stored, mask, self.bytes as usize)?;
            part.rows(&self.shape, dims, &bytes, place)
        })
    }

    /// Calls `visit` with each chunk.
    fn each(&self, file: &File, most: &[u64], visit: &mut Visit) -> Result<(), Problem> {
        let (rank, address, length) = (self.shape.len(), self.address, self.bytes);
        let mut last: Option<Vec<u64>> = None;
        // A tree that gives a chunk again, for which it need not be large, would take time without end.
        let mut in_order = |at: Vec<u64>, entry| {
            if last.as_ref().is_some_and(|last| *last >= at) {
                return Err(Cursor { rest: &[], part: PART }.damaged("chunks are not in order"));
            }
            visit(&at, entry)?;
            last = Some(at);
            Ok(())
        };
        match &self.index {
            Index::Single(stored) => {
                let (length, mask) = stored.unwrap_or((length, 0));
                visit(&vec![0; rank], Entry { address, length, mask })
            }
            Index::Implicit => {
                let grid = Grid::new(&self.shape, most);
                let count = grid.counts.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
                (0..count.unwrap_or(u64::MAX)).try_for_each(|number| {
                    let address = address.saturating_add(number.saturating_mul(length));
                    visit(&grid.place(number), Entry { address, length, mask: 0 })
                })
            }
            Index::FixedArray => {
                let grid = Grid::new(&self.shape, most);
                arrays::fixed(file, address, length, &mut |number, entry| visit(&grid.place(number), entry))
            }
            Index::GrowingArray => {
                let grid = Grid::new(&self.shape, most);
                arrays::growing(file, address, length, &mut |number, entry| visit(&grid.place(number), entry))
            }
            Index::OlderTree => {
                let key = 4 + 4 + 8 * (rank + 1);
                btree1::walk(file, address, btree1::Index::Chunks, key, &mut |key, address| {
                    let mut key = Cursor { rest: key, part: PART };
                    let (length, mask) = (key.u32()?.into(), key.u32()?);
                    let at = self
                        .shape
                        .iter()
                        .map(|&side| Ok(key.u64()? / side))
                        .collect::<Result<_, Problem>>()?;
                    in_order(at, Entry { address, length, mask })
                })
            }
            Index::NewerTree => btree2::walk(file, address, &[10, 11], &mut |mut record| {
                let address = record.u64()?;
                let (mut size, mut mask) = (length, 0);
                if let Some(bytes) = record.rest.len().checked_sub(8 * rank + 4) {
                    size = record.number(bytes)?;
                    mask = record.u32()?;
                }
                let at = (0..rank).map(|_| record.u64()).collect::<Result<_, _>>()?;
                in_order(at, Entry { address, length: size, mask })
            }),
        }
    }
}

/// Chunks counted row by row, along an axis without end first.
struct Grid {
    /// How many chunks there may be along each axis.
    counts: Vec<u64>,
    /// The axes from the slowest to the fastest.
    order: Vec<usize>,
}

impl Grid {
    fn new(shape: &[u64], most: &[u64]) -> Self {
        let counts = most.iter().zip(shape).map(|(most, side)| most.div_ceil(*side).max(1)).collect();
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.sort_by_key(|&axis| most[axis] != u64::MAX);
        Self { counts, order }
    }

    fn place(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.counts.len()];
        for &axis in self.order.iter().skip(1).rev() {
            place[axis] = number % self.counts[axis];
            number /= self.counts[axis];
        }
        if let Some(&slowest) = self.order.first() {
            place[slowest] = number;
        }
        place
    }
}

/// The part of a chunk that lies in the dataset.
struct Part {
    start: Vec<u64>,
    lengths: Vec<u64>,
}

impl Part {
    /// Nothing where the chunk lies outside, as it may after a dataset was made smaller.
    fn new(at: &[u64], shape: &[u64], dims: &[u64]) -> Option<Self> {
        let start: Vec<u64> = at.iter().zip(shape).map(|(at, side)| at.saturating_mul(*side)).collect();
        let inside = start.iter().zip(dims).zip(shape);
        let lengths: Option<Vec<u64>> = inside
            .map(|((start, dim), side)| Some(dim.checked_sub(*start)?.min(*side)).filter(|&n| n > 0))
            .collect();
        Some(Self { lengths: lengths?, start })
    }

    fn is_cut(&self, shape: &[u64]) -> bool {
        self.lengths != shape
    }

    /// Calls `place` with the rows along the last axis.
    fn rows(&self, shape: &[u64], dims: &[u64], bytes: &[u8], place: &mut Place) -> Result<(), Problem> {
        let element = bytes.len() / shape.iter().product::<u64>() as usize;
        let Some((&row, outer)) = self.lengths.split_last() else { return Ok(()) };
        let mut at = vec![0; outer.len()];
        loop {
            let (mut from, mut to) = (0, 0);
            for axis in 0..dims.len() {
                let inside = at.get(axis).copied().unwrap_or(0);
                from = from * shape[axis] + inside;
                to = to * dims[axis] + self.start[axis] + inside;
            }
            let from = from as usize * element;
            place(to as usize, &bytes[from..from + row as usize * element])?;
            // The next row: the last of the outer axes runs fastest.
            let Some(axis) = (0..outer.len()).rev().find(|&axis| at[axis] + 1 < outer[axis]) else {
                return Ok(());
            };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }
}
