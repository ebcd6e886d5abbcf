//! HDF5 files with the layout of the LIDC data: groups of arrays of numbers and lists of text.
//!
//! The format itself is read by the crate `hdf5-reader`, which is written in Rust alone. This module decides
//! what of it is trusted: which datatypes, how much memory, which links. It knows nothing about splits,
//! images or raters; it gives every dataset under its path, such as `train/images`.
//!
//! Read are whole numbers of 1 to 8 bytes, IEEE numbers of 4 and 8 bytes, and text of fixed and variable
//! length. Everything else is refused by name. Attributes and named datatypes are not looked at, and a link
//! that leads nowhere or into another file counts as absent: no other file is ever opened. Chunks that were
//! never written have the file's fill value, as the format says. Stored values are protected only where the
//! file was written with `fletcher32` or gzip; a flipped bit in plain values cannot be noticed.
//!
//! # Memory
//! A header may claim any size. All datasets of a file together may therefore take at most [`LARGEST_RATIO`]
//! times the bytes of the file, or [`ALWAYS_ALLOWED`] where that is more; a chunk may take a quarter of that.
//!
//! What the decoder builds to find the datasets cannot be bounded from here: in a hostile file many links may share
//! one long name, and many objects one long header, and each gets a copy. So files are refused where memory has to stay
//! within bounds ([`Limits::memory_ratio`]), and others should come from a source that is trusted.
//!
//! # Panics of the decoder
//! None was seen in the test with changed bytes, but the decoder makes no promise. A panic in it is caught,
//! becomes [`Problem::Damaged`] and goes no further than the standard message on the error stream. A program
//! built with `panic = "abort"` ends instead.

mod kind;
mod text;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hdf5_reader::error::Error;
use hdf5_reader::group::Group;
use hdf5_reader::{H5Type, Hdf5File, OpenOptions};

use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;
use crate::voxels::{VoxelType, Voxels};

/// Datasets of a file may take this many times its bytes. Gzip can reach 1032 on zeros, so that a file of
/// nothing but label maps may be refused; with more, a hostile file of 1 MB could cost over 64 MB. With 30,
/// one of 0.94 MB whose zeros take 28 times as much costs 58 MB.
pub const LARGEST_RATIO: u64 = 30;
/// Datasets may always take this many bytes, however small the file.
pub const ALWAYS_ALLOWED: u64 = 16 << 20;
/// Groups in groups; the LIDC file has one level.
const DEEPEST: usize = 16;
/// Bytes charged for a dataset beside its values and its path.
const DATASET: u64 = 1024;
const COPY: &str = "write the file again with h5py and without links";

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
    if limits.memory_ratio.is_some() {
        return Err(Problem::Unsupported {
            what: "an HDF5 file where memory is bounded by the limit `memory_ratio`".to_owned(),
            advice: "its decoder keeps to no bound: read a file that you trust without that limit, and have others \
                     saved as .npz",
        });
    }
    // The decoder's state is dropped with the panic: nothing half-changed is seen afterwards.
    catch_unwind(AssertUnwindSafe(|| parse_unguarded(bytes, limits))).unwrap_or_else(|_| {
        Err(Problem::Damaged { part: "the HDF5 file", reason: "its decoder gave up".to_owned() })
    })
}

fn parse_unguarded(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Dataset)>, Problem> {
    let allowed = (bytes.len() as u64).saturating_mul(LARGEST_RATIO).max(ALWAYS_ALLOWED);
    let room = allowed.min(limits.expanded_bytes);
    let options = OpenOptions::default()
        .with_chunk_cache_bytes(0)
        .with_max_chunk_bytes(usize::try_from(room / 4).unwrap_or(usize::MAX))
        .with_max_read_bytes(usize::try_from(room).unwrap_or(usize::MAX))
        .with_max_object_header_bytes(usize::try_from(limits.header_bytes).unwrap_or(usize::MAX));
    let file = Hdf5File::from_bytes_with_options(bytes, options).map_err(|e| damaged("/", e))?;
    let root = file.root_group().map_err(|e| damaged("/", e))?;
    let mut walk =
        Walk { limits, budget: Budget { room, allowed: room }, seen: BTreeSet::new(), found: vec![] };
    walk.group(&root, "", 0)?;
    walk.found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(walk.found)
}

/// The bytes that datasets may still take.
struct Budget {
    room: u64,
    allowed: u64,
}

impl Budget {
    /// Takes bytes for a dataset, or refuses it.
    fn take(&mut self, path: &str, bytes: u64) -> Result<(), Problem> {
        if let Some(rest) = self.room.checked_sub(bytes) {
            self.room = rest;
            return Ok(());
        }
        Err(Problem::Field {
            field: "the size of a dataset",
            found: format!(
                "{bytes} bytes for `{path}`, with {} of {} left for this file",
                self.room, self.allowed
            ),
            allowed: "in total at most 30 times the file, or 16 MiB, and within the limit `expanded_bytes`",
            advice: "if the file is genuine, write it again without compression (`h5repack -f NONE`)",
        })
    }
}

struct Walk<'a> {
    limits: &'a Limits,
    budget: Budget,
    /// Addresses of the groups on the way: a group that is met again is a loop or a second name.
    seen: BTreeSet<u64>,
    found: Vec<(String, Dataset)>,
}

impl Walk<'_> {
    fn group(&mut self, group: &Group, path: &str, depth: usize) -> Result<(), Problem> {
        if !self.seen.insert(group.address()) || depth > DEEPEST {
            return Err(Problem::Unsupported {
                what: format!("the group `{path}`, which is linked twice or lies too deep,"),
                advice: COPY,
            });
        }
        let (groups, datasets) = group.members().map_err(|e| damaged(path, e))?;
        self.check_members(groups.len() + datasets.len())?;
        for dataset in &datasets {
            let path = joined(path, dataset.name());
            let values = self.dataset(dataset, &path)?;
            self.found.push((path, values));
        }
        groups.iter().try_for_each(|inner| self.group(inner, &joined(path, inner.name()), depth + 1))
    }

    fn check_members(&self, more: usize) -> Result<(), Problem> {
        let (found, limit) = ((self.found.len() + self.seen.len() + more) as u64, self.limits.members);
        if found <= limit {
            return Ok(());
        }
        Err(Problem::Limit { what: "the number of groups and datasets", found, limit, name: "members" })
    }

    fn dataset(&mut self, dataset: &hdf5_reader::Dataset, path: &str) -> Result<Dataset, Problem> {
        // Many datasets may lie below one group with a long name.
        self.budget.take(path, DATASET + path.len() as u64)?;
        if text::is_text(dataset.dtype()) {
            return text::read(dataset, path, &mut self.budget).map(Dataset::Text);
        }
        let raw = dataset.raw_datatype().map_err(|e| damaged(path, e))?;
        let Some(kind) = kind::of_numbers(&raw) else {
            return Err(Problem::Unsupported {
                what: format!("the datatype of the dataset `{path}` ({:?})", dataset.dtype()),
                advice: "store whole numbers of 1 to 8 bytes, numbers of single or double precision, or text",
            });
        };
        let shape: Option<Vec<usize>> = dataset.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
        let count = dataset.shape().iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let (Some(shape), Some(count)) = (shape, count.filter(|&count| count <= self.limits.values)) else {
            let (what, limit) = ("the number of values", self.limits.values);
            return Err(Problem::Limit { what, found: count.unwrap_or(u64::MAX), limit, name: "values" });
        };
        self.budget.take(path, count.saturating_mul(kind.bytes() as u64))?;
        let voxels = numbers(dataset, kind, count as usize).map_err(|e| damaged(path, e))?;
        Ok(Dataset::Array(Array { voxels, shape }))
    }
}

/// The numbers of a dataset, decoded in their place: a second copy would double the memory.
fn numbers(dataset: &hdf5_reader::Dataset, kind: VoxelType, count: usize) -> Result<Voxels, Error> {
    fn read<T: H5Type + Default>(dataset: &hdf5_reader::Dataset, count: usize) -> Result<Vec<T>, Error> {
        let mut values = vec![T::default(); count];
        dataset.read_into(&mut values)?;
        Ok(values)
    }
    Ok(match kind {
        VoxelType::U8 => Voxels::U8(read(dataset, count)?),
        VoxelType::I8 => Voxels::I8(read(dataset, count)?),
        VoxelType::U16 => Voxels::U16(read(dataset, count)?),
        VoxelType::I16 => Voxels::I16(read(dataset, count)?),
        VoxelType::U32 => Voxels::U32(read(dataset, count)?),
        VoxelType::I32 => Voxels::I32(read(dataset, count)?),
        VoxelType::U64 => Voxels::U64(read(dataset, count)?),
        VoxelType::I64 => Voxels::I64(read(dataset, count)?),
        VoxelType::F32 => Voxels::F32(read(dataset, count)?),
        VoxelType::F64 => Voxels::F64(read(dataset, count)?),
    })
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// What the decoder said about a group or dataset.
fn damaged(path: &str, error: Error) -> Problem {
    Problem::Damaged { part: "the HDF5 file", reason: format!("at `{path}`: {error}") }
}
