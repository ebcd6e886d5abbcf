//! Weights in files of `torch.save`: a zip archive with a pickle (`data.pkl`) and a record for each storage (`data/0`, …).
//!
//! libtorch's own unpickler (`torch::pickle_load`) reads no `state_dict()`: it refuses the attributes of an
//! `OrderedDict`. So the pickle is read as data by [`crate::formats::pickle`], and nothing is run. Records are stored without
//! compression, as `torch.save` writes them, so that an archive holds no more than its size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::array::{Array, Element, strided};
use crate::error::Problem;
use crate::formats::pickle;
use crate::formats::pickle::{PERSISTENT, Value};
use crate::limits::Limits;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

const ADVICE: &str = "save the file again with torch.save";
/// The record that holds the pickle.
const PICKLE: &str = "data.pkl";
/// How deep dictionaries and lists may lie in each other.
const DEEPEST: usize = 50;
/// Tensors may share and repeat their storages: together they have at most this many times the bytes of the file, and
/// `FREE_BYTES`.
const MOST_REPEATED: u64 = 16;
const FREE_BYTES: u64 = 8 << 20;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// All tensors of a file with their names: keys of nested dictionaries and places in lists, joined by dots. Numbers and
/// text beside them, such as the epoch of a checkpoint, are left out.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Array)>, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    if !bytes.starts_with(b"PK") {
        return Err(Problem::Field {
            field: "the start of the file",
            found: format!("{:02x?}", &bytes[..bytes.len().min(4)]),
            allowed: "that of a zip archive, as torch.save of PyTorch 1.6 and later writes it",
            advice: ADVICE,
        });
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(refused)?;
    let records = archive.len() as u64;
    if records > limits.members {
        let (what, limit) = ("the number of records", limits.members);
        return Err(Problem::Limit { what, found: records, limit, name: "members" });
    }
    if archive.has_duplicate_names() {
        return Err(malformed("two records of the same name"));
    }
    if archive.has_overlapping_entries().map_err(refused)? {
        return Err(malformed("records that overlap"));
    }
    let mut file = TorchFile {
        folder: folder(&archive)?,
        archive,
        order: ByteOrder::Little,
        storages: HashMap::new(),
        left: (bytes.len() as u64).saturating_mul(MOST_REPEATED).saturating_add(FREE_BYTES),
    };
    // Files without the record are older than it, and of machines with little-endian order.
    if file.archive.index_for_name(&format!("{}byteorder", file.folder)).is_some() {
        file.order = match file.record("byteorder")?.as_slice() {
            b"little" => ByteOrder::Little,
            b"big" => ByteOrder::Big,
            _ => return Err(malformed("a record byteorder that is neither little nor big")),
        };
    }
    let pickled = file.record(PICKLE)?;
    let pickle = pickle::parse(&pickled, limits)?;
    let mut found = vec![];
    collect(pickle.root(), "", 0, &mut file.left, &mut found)?;
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::Field {
            field: "the name of a tensor",
            found: format!("{:?} twice", pair[0]),
            allowed: "each name once when nested names are joined by dots",
            advice: "save the parts in files of their own",
        });
    }
    found.into_iter().map(|(name, tensor)| Ok((name, file.load(&tensor, limits)?))).collect()
}

struct TorchFile<'a> {
    archive: Archive<'a>,
    folder: String,
    order: ByteOrder,
    storages: HashMap<String, (Element, Voxels)>,
    /// Bytes that names and tensors may still take.
    left: u64,
}

impl TorchFile<'_> {
    /// The content of a record, verified against its checksum.
    fn record(&mut self, name: &str) -> Result<Vec<u8>, Problem> {
        let index = self.archive.index_for_name(&format!("{}{name}", self.folder));
        let index = index.ok_or_else(|| Problem::Field {
            field: "the archive",
            found: format!("without the record {name:?}"),
            allowed: "an archive with a record for every storage",
            advice: ADVICE,
        })?;
        let mut record = self.archive.by_index(index).map_err(refused)?;
        if record.compression() != CompressionMethod::Stored {
            return Err(Problem::Unsupported {
                what: format!("the compressed record {name:?}"),
                advice: ADVICE,
            });
        }
        let mut content = vec![];
        record.read_to_end(&mut content).map_err(|error| damaged(error.to_string()))?;
        Ok(content)
    }

    /// The values of a tensor in row-major order.
    fn load(&mut self, tensor: &Tensor<'_>, limits: &Limits) -> Result<Array, Problem> {
        let Tensor { element, key, count, offset, ref shape, ref strides } = *tensor;
        let wrong = |field, found: String, allowed| {
            Err(Problem::Field { field, found, allowed, advice: "the file is damaged: save it again" })
        };
        let empty = shape.contains(&0);
        let values = if empty { 0 } else { limits.check_values(shape)? as u64 };
        let last = shape.iter().zip(strides).try_fold(offset, |place, (&length, &stride)| {
            length.saturating_sub(1).checked_mul(stride).and_then(|step| place.checked_add(step))
        });
        if !empty && last.is_none_or(|last| last >= count) {
            let found = format!("of shape {shape:?} and strides {strides:?} from element {offset}");
            return wrong("a PyTorch tensor", found, "inside its storage");
        }
        spend(&mut self.left, values.saturating_mul(8))?;
        if !self.storages.contains_key(key) {
            let bytes = self.record(&format!("data/{key}"))?;
            if Some(bytes.len()) != count.checked_mul(element.bytes()) {
                let found = format!("{key:?} of {} bytes for {count} elements", bytes.len());
                return wrong("the storage of a PyTorch tensor", found, "as the pickle says");
            }
            self.storages.insert(key.to_owned(), (element, element.read(&bytes, self.order)?));
        }
        let (known, storage) = &self.storages[key];
        if (*known, storage.len()) != (element, count) {
            let found = format!("{key:?} with two types or lengths");
            return wrong("the storage of a PyTorch tensor", found, "as the pickle says");
        }
        Ok(strided(storage.clone(), shape, strides, offset))
    }
}

/// A tensor, as the pickle names it: a view with strides on a storage.
struct Tensor<'a> {
    element: Element,
    /// The record that holds its storage, and the number of elements there.
    key: &'a str,
    count: usize,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl<'a> Tensor<'a> {
    /// The tensor that a value is, or the one in a parameter; nothing where it is neither.
    fn of(value: Value<'a>) -> Option<Result<Self, Problem>> {
        let (mut name, mut arguments, _) = value.object()?;
        if name == "_rebuild_parameter" {
            (name, arguments, _) = arguments.first()?.object()?;
        }
        if !matches!(name, "_rebuild_tensor" | "_rebuild_tensor_v2") {
            return None;
        }
        let bad = || pickle::malformed("a PyTorch tensor whose parts are not as PyTorch writes them");
        Some(Self::from_arguments(&arguments).ok_or_else(bad))
    }

    /// From `storage, offset, shape, strides, …`, where a storage is `'storage', type, key, device, count`.
    fn from_arguments(arguments: &[Value<'a>]) -> Option<Self> {
        let &[storage, offset, shape, strides, ..] = arguments else { return None };
        let (PERSISTENT, storage, _) = storage.object()? else { return None };
        let &[_, element, key, _, count] = storage.as_slice() else { return None };
        let element = match element.object()?.0 {
            "BoolStorage" => Element::Bool,
            "HalfStorage" => Element::F16,
            "BFloat16Storage" => Element::Bf16,
            "DoubleStorage" => Element::Plain(VoxelType::F64),
            "FloatStorage" => Element::Plain(VoxelType::F32),
            "LongStorage" => Element::Plain(VoxelType::I64),
            "IntStorage" => Element::Plain(VoxelType::I32),
            "ShortStorage" => Element::Plain(VoxelType::I16),
            "CharStorage" => Element::Plain(VoxelType::I8),
            "ByteStorage" => Element::Plain(VoxelType::U8),
            _ => return None,
        };
        let (shape, strides) = (shape.sizes()?, strides.sizes()?);
        let (key, count, offset) = (key.as_text()?, count.as_size()?, offset.as_size()?);
        (shape.len() == strides.len()).then_some(Self { element, key, count, offset, shape, strides })
    }
}

/// Adds the tensors of a value, which lies under a name.
fn collect<'a>(
    value: Value<'a>,
    name: &str,
    depth: usize,
    left: &mut u64,
    found: &mut Vec<(String, Tensor<'a>)>,
) -> Result<(), Problem> {
    if depth > DEEPEST {
        return Err(malformed("dictionaries or lists more than 50 levels deep"));
    }
    // A pickle can repeat its parts without end: every part that is looked at counts, and so do long names.
    spend(left, 64 + name.len() as u64)?;
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    if let Some(tensor) = Tensor::of(value) {
        found.push((name.to_owned(), tensor?));
    } else if let Some(items) = value.items() {
        for (place, item) in items.into_iter().enumerate() {
            collect(item, &below(&place.to_string()), depth + 1, left, found)?;
        }
    } else if let Some(entries) = value.entries()? {
        for (key, value) in entries {
            collect(value, &below(key), depth + 1, left, found)?;
        }
    }
    Ok(())
}

fn spend(left: &mut u64, bytes: u64) -> Result<(), Problem> {
    *left = left.checked_sub(bytes).ok_or_else(|| Problem::Field {
        field: "the memory that the file asks for",
        found: "more than 8 MiB and 16 times its size".to_owned(),
        allowed: "in proportion to the size of the file",
        advice: "save the tensors with torch.save after calling contiguous() on each",
    })?;
    Ok(())
}

/// The folder of the pickle, of which there must be one.
fn folder(archive: &Archive<'_>) -> Result<String, Problem> {
    let folder = |name: Result<Cow<'_, str>, ZipError>| {
        let name = name.ok()?;
        let folder = name.strip_suffix(PICKLE)?;
        let inside = folder.strip_suffix('/').unwrap_or_default();
        (folder.is_empty() || !inside.is_empty() && !inside.contains('/')).then(|| folder.to_owned())
    };
    let mut folders = archive.file_names().filter_map(folder);
    match (folders.next(), folders.next()) {
        (Some(folder), None) => Ok(folder),
        (None, _) => Err(malformed("no record data.pkl")),
        _ => Err(malformed("two pickles")),
    }
}

fn malformed(found: &'static str) -> Problem {
    let found = format!("one with {found}");
    Problem::Field { field: "the archive", found, allowed: "as torch.save writes it", advice: ADVICE }
}

fn refused(error: ZipError) -> Problem {
    damaged(error.to_string())
}

fn damaged(reason: String) -> Problem {
    Problem::Damaged { part: "the archive", reason }
}
