//! HDF5 files with the layout of the LIDC data: groups of arrays of numbers and lists of text.
//!
//! A reader of what h5py writes, by the HDF5 file format specification, version 3: superblocks 0 to 3, both forms of
//! object headers, groups of all three kinds, values in one piece or in chunks with any index, and the filters gzip,
//! shuffle and fletcher32. It knows nothing about splits, images or raters; it gives every dataset under its path,
//! such as `train/images`.
//!
//! Read are whole numbers of 1 to 8 bytes, IEEE numbers of 4 and 8 bytes, and text of fixed and variable
//! length. Everything else is refused by name. Attributes and named datatypes are not looked at, and a link
//! that leads nowhere or into another file counts as absent: no other file is ever opened. Chunks that were
//! never written have the file's fill value, as the format says. Stored values are protected only where the
//! file was written with `fletcher32` or gzip; a flipped bit in plain values cannot be noticed.
//!
//! # Memory
//! A header may claim any size, and in a hostile file many links may share one long name, and many objects one long
//! header. So what describes the datasets is borrowed from the file and never copied, nothing but what is being read
//! is kept, and a walk that comes back to the same bytes too often is given up. Values, texts and paths of
//! a file together may take at most [`LARGEST_RATIO`] times its bytes, or [`ALWAYS_ALLOWED`] where that is more; a
//! chunk may take a quarter of that.

mod arrays;
mod btree1;
mod btree2;
mod budget;
mod bytes;
mod checksum;
mod chunks;
mod dataset;
mod datatype;
mod filters;
mod fractal_heap;
mod global_heap;
mod header;
mod links;
mod numbers;
mod superblock;
mod symbols;
mod text;
mod walk;

pub use budget::{ALWAYS_ALLOWED, LARGEST_RATIO};

use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;

/// One dataset of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Dataset {
    /// Numbers with a shape, in C order.
    Array(Array),
    /// Text, one entry per element in C order.
    Text(Vec<String>),
}

/// All datasets of a file with their paths, in the alphabetical order of the paths.
///
/// Refuses a group that is linked twice, a datatype that is not plain numbers or text, and a dataset whose
/// size is not plausible for the file.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Dataset)>, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let (file, root) = superblock::open(bytes)?;
    let mut found = walk::datasets(&file, root, limits)?;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}
