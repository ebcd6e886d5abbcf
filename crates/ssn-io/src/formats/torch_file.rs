//! Weights in files of `torch.save`.
//!
//! Since PyTorch 1.6 that is a zip archive with a pickle (`data.pkl`) and a record for each storage (`data/0`, …), which are stored
//! without compression, so that an archive holds no more than its size. Before, it was a row of pickles (a magic number, a version, the
//! system, the tensors, the keys of their storages) with the storages behind them, and without checksums.
//!
//! libtorch's own unpickler (`torch::pickle_load`) reads no `state_dict()`: it refuses the attributes of an
//! `OrderedDict`. So pickles are read as data by [`crate::formats::pickle`], and nothing is run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::array::{Array, Element, strided};
use crate::formats::pickle;
use crate::formats::pickle::{PERSISTENT, Value};
use crate::limits::{Limits, within};
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, VoxelType, Voxels};

const ADVICE: &str = "save the file again with torch.save";
/// The record that holds the pickle.
const PICKLE: &str = "data.pkl";
/// How deep dictionaries and lists may lie in each other.
const DEEPEST: usize = 50;
/// Tensors may share and repeat their storages: together they have at most this many times the bytes of the file, and
/// `FREE_BYTES`.
const MOST_REPEATED: u64 = 16;
const FREE_BYTES: u64 = 8 << 20;

/// The start of files from before PyTorch 1.6: the pickles of a magic number and of the version, 1001.
const BEFORE_1_6: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Removes the records of a TorchScript file that are only for people who debug it. They name the files and lines that the
/// program came from last, so that the same network saved again would have other bytes.
pub fn without_debug_records(bytes: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))?;
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    for place in 0..archive.len() {
        let record = archive.by_index_raw(place)?;
        // The id is a hash of all records.
        let name = record.name()?.into_owned();
        if !name.ends_with(".debug_pkl") && !name.ends_with("serialization_id") {
            writer.raw_copy_file(record)?;
        }
    }
    Ok(writer.finish()?.into_inner())
}

/// All tensors of a file with their names: keys of nested dictionaries and places in lists, joined by dots. Numbers and
/// text beside them, such as the epoch of a checkpoint, are left out.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Array)>, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let Parts { pickle, order, storages } = if bytes.starts_with(BEFORE_1_6) {
        Parts::before_1_6(&bytes[BEFORE_1_6.len()..], limits)?
    } else {
        Parts::of_archive(bytes, limits)?
    };
    let pickle = pickle::parse(&pickle, limits)?;
    let mut left = (bytes.len() as u64).saturating_mul(MOST_REPEATED).saturating_add(FREE_BYTES);
    let mut found = vec![];
    collect(pickle.root(), "", 0, &mut left, &mut found)?;
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let allowed = "each name once when nested names are joined by dots";
        let advice = "save the parts in files of their own";
        return Err(refused("the name of a tensor", format!("{:?} twice", pair[0]), allowed, advice));
    }
    let storage: StorageBytes<'_> = match storages {
        Storages::Archive(mut archive, folder) => {
            Box::new(move |key| Ok(record(&mut archive, &folder, &format!("data/{key}"))?.into()))
        }
        Storages::InARow(keys, rest) => {
            let located = locate(keys, rest, &found)?;
            Box::new(move |key| located.get(key).map(|&bytes| bytes.into()).ok_or_else(|| missing(key)))
        }
    };
    let mut file = TorchFile { storage, order, loaded: HashMap::new(), left };
    found.into_iter().map(|(name, tensor)| Ok((name, file.load(&tensor, limits)?))).collect()
}

/// What a file is made of.
struct Parts<'a> {
    /// The pickle of the tensors.
    pickle: Cow<'a, [u8]>,
    order: ByteOrder,
    storages: Storages<'a>,
}

/// The bytes of the storages.
enum Storages<'a> {
    /// Records of a folder of an archive.
    Archive(Archive<'a>, String),
    /// One behind the other, in the order of these keys.
    InARow(Vec<String>, &'a [u8]),
}

impl<'a> Parts<'a> {
    fn of_archive(bytes: &'a [u8], limits: &Limits) -> Result<Self, Problem> {
        if !bytes.starts_with(b"PK") {
            let start = format!("{:02x?}", &bytes[..bytes.len().min(4)]);
            let allowed = "that of a file which torch.save writes";
            return Err(refused("the start of the file", start, allowed, ADVICE));
        }
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        within("the number of records", archive.len() as u64, limits.members, "members")?;
        if archive.has_duplicate_names() {
            return Err(malformed("two records of the same name"));
        }
        if archive.has_overlapping_entries().map_err(damaged)? {
            return Err(malformed("records that overlap"));
        }
        let folder = folder(&archive)?;
        // Files without the record are older than it, and of machines with little-endian order.
        let name = format!("{folder}byteorder");
        let order = match archive.index_for_name(&name) {
            None => ByteOrder::Little,
            Some(_) => match record(&mut archive, &folder, "byteorder")?.as_slice() {
                b"little" => ByteOrder::Little,
                b"big" => ByteOrder::Big,
                _ => return Err(malformed("a record byteorder that is neither little nor big")),
            },
        };
        let pickle = record(&mut archive, &folder, PICKLE)?.into();
        Ok(Self { pickle, order, storages: Storages::Archive(archive, folder) })
    }

    /// From what follows the magic number and the version.
    fn before_1_6(mut rest: &'a [u8], limits: &Limits) -> Result<Self, Problem> {
        let mut next = || {
            let (pickle, behind) = rest.split_at(pickle::end_of(rest, limits)?);
            rest = behind;
            Ok::<_, Problem>(pickle)
        };
        let [system, pickle, keys] = [next()?, next()?, next()?];
        if pickle::parse(system, limits)?.root().get("little_endian").and_then(Value::as_bool) != Some(true) {
            return Err(malformed("a byte order other than little-endian"));
        }
        let keys = pickle::parse(keys, limits)?;
        let keys = keys.root().items().unwrap_or_default().into_iter();
        let keys: Option<Vec<String>> = keys.map(|key| key.as_text().map(str::to_owned)).collect();
        let keys = keys.ok_or_else(|| malformed("keys of storages that are no text"))?;
        Ok(Self { pickle: pickle.into(), order: ByteOrder::Little, storages: Storages::InARow(keys, rest) })
    }
}

/// The storages in a row by their keys. How long an element is, the tensors say.
fn locate<'a>(
    keys: Vec<String>,
    mut rest: &'a [u8],
    tensors: &[(String, Tensor<'_>)],
) -> Result<HashMap<String, &'a [u8]>, Problem> {
    let elements: HashMap<&str, Element> =
        tensors.iter().map(|(_, tensor)| (tensor.key, tensor.element)).collect();
    let mut located = HashMap::new();
    for key in keys {
        let element = elements.get(key.as_str()).ok_or_else(|| malformed("a storage of no tensor"))?;
        // The number of elements, then the elements.
        let parts = rest.split_first_chunk::<8>().and_then(|(count, behind)| {
            let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
            behind.split_at_checked(count.checked_mul(element.bytes())?)
        });
        let (bytes, behind) = parts.ok_or_else(|| malformed("a storage that ends behind the file"))?;
        if located.insert(key, bytes).is_some() {
            return Err(malformed("two storages of the same key"));
        }
        rest = behind;
    }
    if rest.is_empty() { Ok(located) } else { Err(malformed("bytes behind the last storage")) }
}

/// The content of a record, verified against its checksum.
fn record(archive: &mut Archive<'_>, folder: &str, name: &str) -> Result<Vec<u8>, Problem> {
    let index = archive.index_for_name(&format!("{folder}{name}")).ok_or_else(|| missing(name))?;
    let mut record = archive.by_index(index).map_err(damaged)?;
    if record.compression() != CompressionMethod::Stored {
        return Err(Problem::Unsupported { what: format!("the compressed record {name:?}"), advice: ADVICE });
    }
    let mut content = vec![];
    record.read_to_end(&mut content).map_err(damaged)?;
    Ok(content)
}

fn missing(name: &str) -> Problem {
    let found = format!("without the record {name:?}");
    refused("the file", found, "one with a record for every storage", ADVICE)
}

/// The bytes of a storage, by its key.
type StorageBytes<'a> = Box<dyn FnMut(&str) -> Result<Cow<'a, [u8]>, Problem> + 'a>;

struct TorchFile<'a> {
    storage: StorageBytes<'a>,
    order: ByteOrder,
    loaded: HashMap<String, (Element, Voxels)>,
    /// Bytes that names and tensors may still take.
    left: u64,
}

impl TorchFile<'_> {
    /// The values of a tensor in row-major order.
    fn load(&mut self, tensor: &Tensor<'_>, limits: &Limits) -> Result<Array, Problem> {
        let Tensor { element, key, count, offset, ref shape, ref strides } = *tensor;
        let wrong = |field, found: String, allowed| {
            Err(refused(field, found, allowed, "the file is damaged: save it again"))
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
        if !self.loaded.contains_key(key) {
            let bytes = (self.storage)(key)?;
            if Some(bytes.len()) != count.checked_mul(element.bytes()) {
                let found = format!("{key:?} of {} bytes for {count} elements", bytes.len());
                return wrong("the storage of a PyTorch tensor", found, "as the pickle says");
            }
            self.loaded.insert(key.to_owned(), (element, element.read(&bytes, self.order)?));
        }
        let (known, storage) = &self.loaded[key];
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

    /// From `storage, offset, shape, strides, …`, where a storage is `'storage', type, key, device, count`, and before PyTorch 1.6
    /// also `None`, or what larger storage it is a part of.
    fn from_arguments(arguments: &[Value<'a>]) -> Option<Self> {
        let &[storage, offset, shape, strides, ..] = arguments else { return None };
        let (PERSISTENT, storage, _) = storage.object()? else { return None };
        let &[_, element, key, _, count, ref whole @ ..] = storage.as_slice() else { return None };
        if !whole.iter().all(|whole| whole.is_none()) {
            return None;
        }
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
    *left = left.checked_sub(bytes).ok_or_else(|| {
        let (found, allowed) =
            ("more than 8 MiB and 16 times its size", "in proportion to the size of the file");
        let advice = "save the tensors with torch.save after calling contiguous() on each";
        refused("the memory that the file asks for", found, allowed, advice)
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
    refused("the file", format!("one with {found}"), "as torch.save writes it", ADVICE)
}

fn damaged(error: impl ToString) -> Problem {
    Problem::Damaged { part: "the archive", reason: error.to_string() }
}
