//! From the root group to all datasets.

use std::collections::BTreeSet;

use super::budget::Budget;
use super::bytes::File;
use super::dataset::Dataset as Stored;
use super::global_heap::GlobalHeap;
use super::header::{Header, kind};
use super::links::{self, Link, Target, check_members};
use super::{Dataset, datatype, numbers, text};
use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;

/// Groups in groups, and links to links; the LIDC file has one level.
const DEEPEST: usize = 16;
/// Bytes of a path, as in most file systems.
const LONGEST: usize = 4096;
/// Bytes charged for a group or dataset beside its values and its path.
const MEMBER: u64 = 1024;
/// What says that an object is a group.
const GROUP: [u16; 4] = [kind::SYMBOL_TABLE, kind::LINK, kind::LINK_INFO, kind::GROUP_INFO];
/// What says that it is a dataset; named datatypes have neither, and are left out.
const DATASET: [u16; 2] = [kind::DATASPACE, kind::LAYOUT];

struct Walk<'f, 'a> {
    file: &'f File<'a>,
    root: u64,
    limits: &'f Limits,
    budget: Budget<'f>,
    /// Texts of all datasets.
    heap: GlobalHeap<'f, 'a>,
    /// Addresses of the groups on the way: a group that is met again is a loop or a second name.
    seen: BTreeSet<u64>,
    /// Links of all those groups.
    members: u64,
    found: Vec<(String, Dataset)>,
}

/// What an object is.
enum Object<'a> {
    Group(Vec<Link<'a>>),
    Dataset(Dataset),
    /// A named datatype.
    Other,
}

/// All datasets below the root group.
pub(super) fn datasets(file: &File, root: u64, limits: &Limits) -> Result<Vec<(String, Dataset)>, Problem> {
    let mut walk = Walk {
        file,
        root,
        limits,
        budget: Budget::new(file.length(), limits),
        heap: GlobalHeap::new(file),
        seen: BTreeSet::new(),
        members: 0,
        found: vec![],
    };
    walk.visit(root, String::new(), 0)?;
    Ok(walk.found)
}

impl<'a> Walk<'_, 'a> {
    /// Visits an object and, where it is a group, all objects in it.
    fn visit(&mut self, address: u64, path: String, depth: usize) -> Result<(), Problem> {
        let links = match self.open(address, &path).map_err(|problem| at(&path, problem))? {
            Object::Group(links) => links,
            Object::Dataset(dataset) => {
                self.found.push((path, dataset));
                return Ok(());
            }
            Object::Other => return Ok(()),
        };
        if !self.seen.insert(address) || depth > DEEPEST {
            return Err(Problem::Unsupported {
                what: format!("the group `{path}`, which is linked twice or lies too deep,"),
                advice: "write the file again with h5py and without links",
            });
        }
        self.members = self.members.saturating_add(links.len() as u64);
        check_members(self.members, self.limits.members)?;
        for link in links {
            if let Some(object) = self.resolve(address, link, 0).map_err(|problem| at(&path, problem))? {
                let path = joined(&path, link.name)?;
                self.budget.take(&path, MEMBER + path.len() as u64)?;
                self.visit(object, path, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Reads an object. Its header may be long, and is given back before anything inside a group is visited.
    fn open(&mut self, address: u64, path: &str) -> Result<Object<'a>, Problem> {
        let header = Header::read(self.file, address, self.limits)?;
        Ok(if header.has(&GROUP) || address == self.root {
            Object::Group(links::read(self.file, &header, self.limits)?)
        } else if header.has(&DATASET) {
            Object::Dataset(self.dataset(&Stored::read(self.file, &header, self.limits)?, path)?)
        } else {
            Object::Other
        })
    }

    fn dataset(&mut self, stored: &Stored<'a>, path: &str) -> Result<Dataset, Problem> {
        let count = stored.dims.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let shape: Option<Vec<usize>> = stored.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        let (Some(shape), Some(count)) = (shape, count.filter(|&count| count <= self.limits.values)) else {
            let (what, limit) = ("the number of values", self.limits.values);
            return Err(Problem::Limit { what, found: count.unwrap_or(u64::MAX), limit, name: "values" });
        };
        self.budget.take_chunk(path, stored.expanded_chunk())?;
        if let Some(kind) = text::of_text(stored.datatype) {
            let (heap, budget) = (&mut self.heap, &mut self.budget);
            return text::read(stored, kind, count, path, heap, budget).map(Dataset::Text);
        }
        let Some(kind) = datatype::of_numbers(stored.datatype) else {
            return Err(Problem::Unsupported {
                what: format!("the datatype of the dataset `{path}` ({})", class_of(stored.datatype)),
                advice: "store whole numbers of 1 to 8 bytes, numbers of single or double precision, or text",
            });
        };
        self.budget.take_values(path, count, kind.bytes())?;
        let voxels = numbers::read(self.file, stored, kind, count as usize)?;
        Ok(Dataset::Array(Array { voxels, shape }))
    }

    /// The address of the object to which a link of a group leads; nothing where there is none.
    fn resolve(&self, group: u64, link: Link, depth: usize) -> Result<Option<u64>, Problem> {
        let path = match link.target {
            Target::Object(address) => return Ok(Some(address)),
            Target::Path(_) if depth == DEEPEST => return Ok(None),
            Target::Path(path) => path,
        };
        let mut object = if path.starts_with('/') { self.root } else { group };
        for name in path.split('/').filter(|name| !["", "."].contains(name)) {
            let Some(next) = self.find(object, name)? else { return Ok(None) };
            match self.resolve(object, next, depth + 1)? {
                Some(address) => object = address,
                None => return Ok(None),
            }
        }
        Ok(Some(object))
    }

    /// The link of a group with a name.
    fn find(&self, group: u64, name: &str) -> Result<Option<Link<'a>>, Problem> {
        let header = Header::read(self.file, group, self.limits)?;
        let links = links::read(self.file, &header, self.limits)?;
        Ok(links.into_iter().find(|link| link.name == name))
    }
}

fn joined(path: &str, name: &str) -> Result<String, Problem> {
    let length = path.len().saturating_add(1 + name.len());
    if length > LONGEST {
        return Err(Problem::Field {
            field: "the path of a dataset",
            found: format!("{length} bytes"),
            allowed: "at most 4096 bytes",
            advice: "give groups and datasets shorter names",
        });
    }
    Ok(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
}

/// The class of a datatype, for refusals.
fn class_of(message: &[u8]) -> &'static str {
    const CLASSES: [&str; 11] = [
        "whole numbers of an unusual form",
        "floating-point numbers of an unusual form",
        "time",
        "text",
        "bit field",
        "opaque",
        "compound",
        "reference",
        "enumeration",
        "sequence of variable length",
        "array",
    ];
    message.first().and_then(|class| CLASSES.get(usize::from(class & 0xf))).unwrap_or(&"unknown")
}

/// Says where something is damaged.
fn at(path: &str, problem: Problem) -> Problem {
    let path = if path.is_empty() { "/" } else { path };
    match problem {
        Problem::Damaged { part, reason } => {
            Problem::Damaged { part, reason: format!("at `{path}`, {reason}") }
        }
        problem => problem,
    }
}
