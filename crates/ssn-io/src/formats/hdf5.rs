//! HDF5 files with the layout of the LIDC data, through the HDF5 library: arrays of numbers and lists of text.
//!
//! It knows nothing about splits, images or raters; it gives every dataset under its path, such as `train/images`. Links
//! into other files count as absent, as do those that lead nowhere. The library was not made for hostile files: it
//! may take more memory for one than its size suggests.

use std::path::Path;

use hdf5_metno::types::{
    FixedAscii, FixedUnicode, FloatSize, IntSize, TypeDescriptor as Type, VarLenAscii, VarLenUnicode,
};
use hdf5_metno::{Dataset as Stored, File, Group, H5Type, IndexType, IterationOrder, LinkType, LocationType};

use crate::array::Array;
use crate::limits::{Limits, within};
use crate::open::open_file;
use crate::problem::{FileError, Problem, refused};
use crate::volume::Voxels;

/// How deep groups may lie in each other: a group can contain itself.
const DEEPEST: usize = 20;
/// The longest text of fixed length, in bytes. Each value takes so much memory while it is read.
const LONGEST_TEXT: usize = 4096;
/// Deflate never expands by more than this (RFC 1951: 258 bytes from 2 bits); what claims more is not in the file.
const DEFLATE_RATIO: u64 = 1032;
/// Bytes of values that a file of any size may hold: fill values take no space in it.
const FREE_BYTES: u64 = 16 << 20;

/// One dataset of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Dataset {
    /// Numbers with a shape, in C order.
    Array(Array),
    /// Text, one entry per element in C order.
    Text(Vec<String>),
}

/// All datasets of a file with their paths, in the alphabetical order of the paths.
pub fn read(path: &Path, limits: &Limits) -> Result<Vec<(String, Dataset)>, FileError> {
    let read = || {
        let file_bytes = open_file(path)?.metadata()?.len();
        limits.check_file_bytes(file_bytes)?;
        let file = File::open(path).map_err(damaged)?;
        let mut reader = Reader { limits, file_bytes, found: vec![] };
        reader.group(&file, "", 0)?;
        reader.found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(reader.found)
    };
    read().map_err(|problem: Problem| problem.in_file(path))
}

struct Reader<'a> {
    limits: &'a Limits,
    file_bytes: u64,
    found: Vec<(String, Dataset)>,
}

impl Reader<'_> {
    fn group(&mut self, group: &Group, prefix: &str, depth: usize) -> Result<(), Problem> {
        if depth > DEEPEST {
            return Err(Problem::Unsupported {
                what: format!("the group `{prefix}`, {DEEPEST} levels deep"),
                advice: "write the file without groups that contain themselves",
            });
        }
        for (name, link) in group.links(IndexType::Name, IterationOrder::Native).map_err(damaged)? {
            if link.link_type == LinkType::External {
                continue;
            }
            let path = format!("{prefix}{name}");
            match group.loc_type_by_name(&name) {
                Ok(LocationType::Group) => {
                    let group = group.group(&name).map_err(damaged)?;
                    self.group(&group, &format!("{path}/"), depth + 1)?;
                }
                Ok(LocationType::Dataset) => {
                    let stored = group.dataset(&name).map_err(damaged)?;
                    let dataset = self.dataset(&stored, &path)?;
                    self.found.push((path, dataset));
                }
                // A link that leads nowhere, or a named type.
                Ok(_) | Err(_) => {}
            }
            within("the number of datasets", self.found.len() as u64, self.limits.members, "members")?;
        }
        Ok(())
    }

    fn dataset(&self, stored: &Stored, path: &str) -> Result<Dataset, Problem> {
        let unsupported = |what: String| Problem::Unsupported {
            what: format!("{what} of the dataset `{path}`"),
            advice: "write the dataset again as plain numbers or text",
        };
        let kind = stored.dtype().map_err(damaged)?;
        let shape = stored.get_shape().map_err(damaged)?;
        let values = if shape.contains(&0) { 0 } else { self.limits.check_values(&shape)? as u64 };
        let (bytes, most) = (
            values.saturating_mul(kind.size() as u64),
            FREE_BYTES.max(self.file_bytes.saturating_mul(DEFLATE_RATIO)),
        );
        if bytes > most {
            let found = format!("{bytes} bytes for `{path}` in a file of {} bytes", self.file_bytes);
            let advice = "the file is damaged: copy it again";
            return Err(refused("the size of the values", found, "what such a file can hold", advice));
        }
        if stored.dcpl().is_ok_and(|plist| !plist.external().is_empty()) {
            return Err(unsupported("values in another file".to_owned()));
        }
        let described = kind.to_descriptor().map_err(|_| unsupported("the datatype".to_owned()))?;
        let numbers = |voxels: Result<Voxels, Problem>| {
            Ok(Dataset::Array(Array { voxels: voxels?, shape: shape.clone() }))
        };
        match described {
            Type::Boolean => numbers(
                raw(stored).map(|values: Vec<bool>| Voxels::U8(values.into_iter().map(u8::from).collect())),
            ),
            Type::Unsigned(IntSize::U1) => numbers(raw(stored).map(Voxels::U8)),
            Type::Unsigned(IntSize::U2) => numbers(raw(stored).map(Voxels::U16)),
            Type::Unsigned(IntSize::U4) => numbers(raw(stored).map(Voxels::U32)),
            Type::Unsigned(IntSize::U8) => numbers(raw(stored).map(Voxels::U64)),
            Type::Integer(IntSize::U1) => numbers(raw(stored).map(Voxels::I8)),
            Type::Integer(IntSize::U2) => numbers(raw(stored).map(Voxels::I16)),
            Type::Integer(IntSize::U4) => numbers(raw(stored).map(Voxels::I32)),
            Type::Integer(IntSize::U8) => numbers(raw(stored).map(Voxels::I64)),
            Type::Float(FloatSize::U4) => numbers(raw(stored).map(Voxels::F32)),
            Type::Float(FloatSize::U8) => numbers(raw(stored).map(Voxels::F64)),
            Type::VarLenUnicode => text::<VarLenUnicode>(stored),
            Type::VarLenAscii => text::<VarLenAscii>(stored),
            Type::FixedUnicode(size) if size <= LONGEST_TEXT => text::<FixedUnicode<LONGEST_TEXT>>(stored),
            Type::FixedAscii(size) if size <= LONGEST_TEXT => text::<FixedAscii<LONGEST_TEXT>>(stored),
            other => Err(unsupported(format!("the datatype ({other})"))),
        }
    }
}

fn raw<T: H5Type>(stored: &Stored) -> Result<Vec<T>, Problem> {
    stored.read_raw().map_err(damaged)
}

fn text<T: H5Type + ToString>(stored: &Stored) -> Result<Dataset, Problem> {
    Ok(Dataset::Text(raw::<T>(stored)?.iter().map(T::to_string).collect()))
}

fn damaged(error: hdf5_metno::Error) -> Problem {
    Problem::Damaged { part: "the HDF5 file", reason: error.to_string() }
}
