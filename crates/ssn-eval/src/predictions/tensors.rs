//! A safetensors file with a text beside its tensors, and a SHA-256 of both. A large distribution is in memory once; reads
//! files that nobody vouches for.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use sha2::{Digest, Sha256};
use ssn_core::Values;
use ssn_io::hex::hex;
use ssn_io::{Error, Limits, Problem, Result, WriteSeek, open_file};
use zerocopy::{FromBytes, IntoBytes};

// Files hold the numbers as they lie in memory.
#[cfg(target_endian = "big")]
compile_error!("distribution files are little endian, and so must be the machine");

/// The keys of the metadata.
const TEXT: &str = "ssn";
const HASH: &str = "sha256";
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;
/// Bytes before the header that hold its length.
const PREFIX: u64 = 8;
/// Numbers that are read and hashed at once.
const BLOCK: usize = 1 << 18;

/// What to do with files that hold the wrong things.
pub(super) const CHOOSE: &str = "choose a file that `ssn predict` wrote";

/// Begins a SHA-256 over the text, and over name, type, shape and bytes of every tensor in the order of their names.
fn hash_of_text(text: &str) -> Sha256 {
    Sha256::new_with_prefix(format!("{} {text}\n", text.len()))
}

/// What is hashed before the bytes of a tensor.
fn hashed_heading(name: &str, kind: Dtype, shape: &[usize]) -> String {
    format!("{name} {kind:?} {shape:?}\n")
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// An open file, or its bytes in memory, whose header has been read and fits the length of the file.
pub(super) struct Reader {
    path: PathBuf,
    file: Box<dyn ReadSeek>,
    pub(super) length: u64,
    /// Where the tensors begin.
    start: u64,
    metadata: Metadata,
    pub(super) text: String,
    /// The SHA-256 that text and tensors must have.
    pub(super) sha256: String,
    /// `None` for bytes that carry no hash, which never leave memory.
    hash: Option<Sha256>,
}

impl Reader {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        let problem = |problem: Problem| Error::from(problem.in_file(path));
        let file = open_file(path).map_err(problem)?;
        let length = file.metadata().map_err(|error| problem(error.into()))?.len();
        Self::of(path, Box::new(file), length, limits, true)
    }

    /// Reads the bytes of a file, or those of [`write_unhashed`]; errors name it as `path`.
    pub(super) fn of_bytes(path: &Path, bytes: Vec<u8>, limits: &Limits) -> Result<Self> {
        let length = bytes.len() as u64;
        Self::of(path, Box::new(Cursor::new(bytes)), length, limits, false)
    }

    fn of(
        path: &Path,
        mut file: Box<dyn ReadSeek>,
        length: u64,
        limits: &Limits,
        needs_hash: bool,
    ) -> Result<Self> {
        let problem = |problem: Problem| Error::from(problem.in_file(path));
        let header = read_header(&mut *file, length, limits).map_err(problem)?;
        let foreign =
            |reason: &str| Error::data(path, format!("it is no distribution file ({reason})")).advise(CHOOSE);
        let Some(header) = header else { return Err(foreign("it does not begin as one does")) };
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|error| foreign(&error.to_string()))?;
        let (needed, found) = (metadata.data_len() as u64, length - PREFIX - header.len() as u64);
        if needed > found {
            return Err(problem(Problem::Truncated { part: "the tensors", needed, found }));
        }
        if needed < found {
            let reason = format!("its length is {length}, but it should be {}", length - found + needed);
            return Err(problem(Problem::Damaged { part: "the file", reason }));
        }
        let value = |key: &str| metadata.metadata().as_ref().and_then(|map| map.get(key)).cloned();
        let (Some(text), Some(sha256)) = (value(TEXT), value(HASH)) else {
            return Err(foreign("it does not say what it holds"));
        };
        let hash = (needs_hash || !sha256.is_empty()).then(|| hash_of_text(&text));
        let (path, start) = (path.to_owned(), length - needed);
        Ok(Self { path, file, length, start, metadata, text, sha256, hash })
    }

    /// The shape of a tensor, where there is one of that name.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.metadata.info(name).map(|info| info.shape.as_slice())
    }

    /// The bytes of all tensors.
    pub(super) fn tensor_bytes(&self) -> u64 {
        self.length - self.start
    }

    /// The names of all tensors, in the order in which they must be read.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort();
        names
    }

    /// Reads a tensor of numbers; all tensors must be read, in the order of their names.
    pub(super) fn floats(&mut self, name: &'static str) -> Result<Values> {
        let (kind, count) = self.begin(name)?;
        match kind {
            Dtype::F32 => Ok(Values::F32(self.numbers(count)?)),
            Dtype::F16 => Ok(Values::F16(self.numbers(count)?)),
            other => Err(self.wrong_type(name, other, "F32 or F16")),
        }
    }

    /// Reads a tensor of bytes, under the same conditions.
    pub(super) fn bytes(&mut self, name: &'static str) -> Result<Vec<u8>> {
        match self.begin(name)? {
            (Dtype::U8, count) => self.numbers(count),
            (other, _) => Err(self.wrong_type(name, other, "U8")),
        }
    }

    /// Refuses a file whose content is not what was written.
    pub(super) fn verify(self) -> Result<()> {
        if self.hash.is_none_or(|hash| hex(&hash.finalize()) == self.sha256) {
            return Ok(());
        }
        let reason = "its SHA-256 differs".to_owned();
        Err(Problem::Damaged { part: "the content", reason }.in_file(self.path).into())
    }

    /// Goes to a tensor; gives its type and how many numbers it has.
    fn begin(&mut self, name: &'static str) -> Result<(Dtype, usize)> {
        let missing = || Error::data(&self.path, format!("it has no tensor `{name}`")).advise(CHOOSE);
        let info = self.metadata.info(name).ok_or_else(missing)?;
        if let Some(hash) = &mut self.hash {
            hash.update(hashed_heading(name, info.dtype, &info.shape));
        }
        let place = SeekFrom::Start(self.start + info.data_offsets.0 as u64);
        self.file.seek(place).map_err(|error| Error::io(&self.path, error))?;
        // The header was checked against the length of the file: this allocates no more than is there.
        Ok((info.dtype, info.shape.iter().product()))
    }

    fn wrong_type(&self, field: &'static str, found: Dtype, allowed: &'static str) -> Error {
        let found = format!("{found:?}");
        Problem::Field { field, found, allowed, advice: CHOOSE }.in_file(&self.path).into()
    }

    /// Numbers as they are in the file, read in blocks.
    fn numbers<T: FromBytes + IntoBytes + Clone>(&mut self, count: usize) -> Result<Vec<T>> {
        let (mut values, bytes) = (vec![], count * size_of::<T>());
        let refused = |_| Error::memory(self.path.display(), bytes as u64);
        values.try_reserve_exact(count).map_err(refused)?;
        while values.len() < count {
            let start = values.len();
            values.resize(count.min(start + BLOCK), T::new_zeroed());
            let block = values[start..].as_mut_bytes();
            self.file.read_exact(block).map_err(|error| Error::io(&self.path, error))?;
            if let Some(hash) = &mut self.hash {
                hash.update(block);
            }
        }
        Ok(values)
    }
}

/// Reads the bytes of the header; `None` if the file begins unlike any file of tensors.
fn read_header(file: &mut dyn ReadSeek, length: u64, limits: &Limits) -> Result<Option<Vec<u8>>, Problem> {
    limits.check_file_bytes(length)?;
    if length < PREFIX {
        return Err(Problem::Truncated { part: "the length of the header", needed: PREFIX, found: length });
    }
    let mut prefix = [0; PREFIX as usize];
    file.read_exact(&mut prefix)?;
    let (needed, found) = (u64::from_le_bytes(prefix), length - PREFIX);
    // The first bytes of a file of another kind make a length beyond all sense.
    if needed > limits.header_bytes {
        return Ok(None);
    }
    if needed > found {
        return Err(Problem::Truncated { part: "the header", needed, found });
    }
    let mut header = vec![0; needed as usize];
    file.read_exact(&mut header)?;
    Ok(Some(header))
}

/// A tensor to be written.
pub(super) struct Tensor<'a> {
    name: &'static str,
    shape: Vec<usize>,
    kind: Dtype,
    bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    pub(super) fn floats(name: &'static str, shape: Vec<usize>, values: &'a Values) -> Self {
        let (kind, bytes) = match values {
            Values::F32(values) => (Dtype::F32, values.as_bytes()),
            Values::F16(values) => (Dtype::F16, values.as_bytes()),
        };
        Self { name, shape, kind, bytes }
    }

    pub(super) fn bytes(name: &'static str, shape: Vec<usize>, bytes: &'a [u8]) -> Self {
        Self { name, shape, kind: Dtype::U8, bytes }
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Returns the tensors in the order of their names, and in that of a file: wide types first, as the format's own library does, so that
/// every tensor starts where its type may.
fn orders<'t, 'a>(tensors: &'t mut [Tensor<'a>]) -> [Vec<&'t Tensor<'a>>; 2] {
    tensors.sort_by_key(|tensor| tensor.name);
    let by_name: Vec<&Tensor<'_>> = tensors.iter().collect();
    let mut in_file = by_name.clone();
    in_file.sort_by_key(|tensor| std::cmp::Reverse(tensor.kind.bitsize()));
    [by_name, in_file]
}

/// Writes a text and tensors without a hash, for another process of this machine: hashing takes longer than all the rest.
pub(super) fn write_unhashed(
    out: &mut dyn io::Write,
    text: &str,
    mut tensors: Vec<Tensor<'_>>,
) -> io::Result<()> {
    let [_, in_file] = orders(&mut tensors);
    let header = header(text, "", &in_file)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    in_file.iter().try_for_each(|tensor| out.write_all(tensor.bytes))
}

/// Writes a text and tensors; the same content gives the same bytes.
pub(super) fn write(out: &mut dyn WriteSeek, text: &str, mut tensors: Vec<Tensor<'_>>) -> io::Result<()> {
    let [by_name, in_file] = orders(&mut tensors);
    // The hash stands before the tensors, and takes as long as writing them: its place is filled afterwards.
    let hash = std::thread::scope(|scope| {
        let hash = std::thread::Builder::new().spawn_scoped(scope, || content_hash(text, &by_name));
        let header = header(text, &"0".repeat(HASH_DIGITS), &in_file)?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        in_file.iter().try_for_each(|tensor| out.write_all(tensor.bytes))?;
        io::Result::Ok(match hash {
            Ok(hash) => hash.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system gives no more threads.
            Err(_) => content_hash(text, &by_name),
        })
    })?;
    out.seek(SeekFrom::Start(PREFIX))?;
    out.write_all(&header(text, &hash, &in_file)?)
}

fn content_hash(text: &str, by_name: &[&Tensor<'_>]) -> String {
    let mut hash = hash_of_text(text);
    for tensor in by_name {
        hash.update(hashed_heading(tensor.name, tensor.kind, &tensor.shape));
        hash.update(tensor.bytes);
    }
    hex(&hash.finalize())
}

/// The header of a file with tensors in this order.
fn header(text: &str, hash: &str, tensors: &[&Tensor<'_>]) -> io::Result<Vec<u8>> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), serde_json::json!({ TEXT: text, HASH: hash }));
    let mut offset = 0;
    for tensor in tensors {
        let end = offset + tensor.bytes.len();
        let kind = format!("{:?}", tensor.kind);
        let entry =
            serde_json::json!({ "dtype": kind, "shape": tensor.shape, "data_offsets": [offset, end] });
        header.insert(tensor.name.to_owned(), entry);
        offset = end;
    }
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(PREFIX as usize), b' ');
    Ok(header)
}
