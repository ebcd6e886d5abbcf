//! Files of `torch.save`: a zip archive with a pickle (`data.pkl`) and one record for each storage (`data/0`,
//! …).
//!
//! As in plain pickles nothing is run: tensors become arrays, and anything that is not data refuses the file.

mod archive;
pub(super) mod tensor;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::budget::Budget;
use super::finish::finish;
use super::machine::{Dialect, Machine};
use super::source::Source;
use super::value::Value;
use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;
use crate::voxels::{ByteOrder, Voxels};
use archive::Archive;
use tensor::{Storage, Tensor};

/// All tensors of a file with their names: keys of nested dictionaries and places in lists, joined by dots.
///
/// Numbers and text beside the tensors (such as the epoch of a checkpoint) are left out; [`value`] has them.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Arc<Array>)>, Problem> {
    let mut tensors = vec![];
    let (value, mut budget) = read(bytes, limits)?;
    collect(&value, &mut String::new(), &mut tensors, &mut budget)?;
    let mut names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::Field {
            field: "the name of a tensor",
            found: format!("{:?} twice", pair[0]),
            allowed: "each name once when nested names are joined by dots",
            advice: "save the parts in files of their own",
        });
    }
    Ok(tensors)
}

/// What a file holds.
pub fn value(bytes: &[u8], limits: &Limits) -> Result<Value, Problem> {
    read(bytes, limits).map(|(value, _)| value)
}

fn read(bytes: &[u8], limits: &Limits) -> Result<(Value, Budget), Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let mut budget = Budget::new(bytes.len(), limits);
    let mut archive = Archive::open(bytes, limits)?;
    let order = byte_order(&mut archive, &mut budget)?;
    let pickle = archive.read("data.pkl", &mut budget)?;
    let mut source = Source::plain(&pickle);
    let (heap, root) = Machine::new(Dialect::Torch, budget).run(&mut source)?;
    source.expect_end()?;
    let mut storages = HashMap::new();
    let mut resolve = |tensor: &Tensor, budget: &mut Budget| {
        let values = load(&mut storages, &tensor.storage, &mut archive, order, budget)?;
        tensor.copy(values, budget)
    };
    finish(heap, root, &mut resolve)
}

type Storages = HashMap<String, (Storage, Voxels)>;

/// The values of a storage; each record is read once.
fn load<'a>(
    storages: &'a mut Storages,
    storage: &Storage,
    archive: &mut Archive<'_>,
    order: ByteOrder,
    budget: &mut Budget,
) -> Result<&'a Voxels, Problem> {
    let inconsistent = |found: String| Problem::Field {
        field: "the storage of a PyTorch tensor",
        found,
        allowed: "as the pickle says",
        advice: "the file is damaged: save it again",
    };
    match storages.entry(storage.key.clone()) {
        Entry::Occupied(entry) => {
            let (known, values) = entry.into_mut();
            if known == storage {
                return Ok(values);
            }
            Err(inconsistent(format!("{:?} with two types or lengths", known.key)))
        }
        Entry::Vacant(entry) => {
            let bytes = archive.read(&format!("data/{}", storage.key), budget)?;
            if storage.bytes() != Some(bytes.len() as u64) {
                let (key, found) = (&storage.key, bytes.len());
                return Err(inconsistent(format!("{key:?} of {found} bytes for {} elements", storage.count)));
            }
            let values = storage.element.read(bytes, order)?;
            Ok(&entry.insert((storage.clone(), values)).1)
        }
    }
}

/// Files without the record are older than it; PyTorch then takes the order of the machine, little in
/// practice.
fn byte_order(archive: &mut Archive<'_>, budget: &mut Budget) -> Result<ByteOrder, Problem> {
    if !archive.has("byteorder") {
        return Ok(ByteOrder::Little);
    }
    match archive.read("byteorder", budget)?.as_slice() {
        b"little" => Ok(ByteOrder::Little),
        b"big" => Ok(ByteOrder::Big),
        other => Err(Problem::Field {
            field: "the record byteorder",
            found: format!("{:?}", String::from_utf8_lossy(&other[..other.len().min(40)])),
            allowed: "little or big",
            advice: "save the file again with torch.save",
        }),
    }
}

/// Collects the tensors of a value; `name` is where the value lies, and is the same again afterwards.
fn collect(
    value: &Value,
    name: &mut String,
    tensors: &mut Vec<(String, Arc<Array>)>,
    budget: &mut Budget,
) -> Result<(), Problem> {
    match value {
        Value::Array(array) => {
            // Names of tensors deep in dictionaries with long keys can be longer than the file.
            budget.add((name.len() + size_of::<(String, Arc<Array>)>()) as u64)?;
            tensors.push((name.clone(), Arc::clone(array)));
        }
        Value::Dict(pairs) => {
            for (key, value) in pairs.iter() {
                match key {
                    Value::Text(key) => collect_part(value, key, name, tensors, budget)?,
                    Value::Int(key) => collect_part(value, &key.to_string(), name, tensors, budget)?,
                    _ if holds_arrays(value) => {
                        return Err(Problem::Unsupported {
                            what: format!("a tensor under a key that is a {}", key.kind()),
                            advice: "use text or whole numbers as keys",
                        });
                    }
                    _ => {}
                }
            }
        }
        Value::List(items) | Value::Tuple(items) => {
            for (place, item) in items.iter().enumerate() {
                collect_part(item, &place.to_string(), name, tensors, budget)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn collect_part(
    value: &Value,
    part: &str,
    name: &mut String,
    tensors: &mut Vec<(String, Arc<Array>)>,
    budget: &mut Budget,
) -> Result<(), Problem> {
    let length = name.len();
    if length > 0 {
        name.push('.');
    }
    name.push_str(part);
    collect(value, name, tensors, budget)?;
    name.truncate(length);
    Ok(())
}

fn holds_arrays(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Dict(pairs) => pairs.iter().any(|(_, value)| holds_arrays(value)),
        Value::List(items) | Value::Tuple(items) => items.iter().any(holds_arrays),
        _ => false,
    }
}
