//! A safetensors file with a text beside its tensors, and a SHA-256 of both. Reads and writes in blocks, so that a large
//! distribution is in memory once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::f16;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use sha2::{Digest, Sha256};
use ssn_core::Values;
use ssn_volume::{Limits, Problem};

use crate::error::{PredictionError, Result};
use crate::file_names::hex;

/// The keys of the metadata.
const TEXT: &str = "ssn";
const HASH: &str = "sha256";
/// Bytes before the header that hold its length.
const PREFIX: u64 = 8;
/// Bytes that are read or written at once; a multiple of every type's size.
const BLOCK: usize = 1 << 20;

/// What to do with files that hold the wrong things.
pub(crate) const CHOOSE: &str = "choose a file that `ssn predict` wrote";

/// A tensor to be written.
pub(crate) struct Tensor<'a> {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data<'a>,
}

/// The numbers of a tensor to be written.
pub(crate) enum Data<'a> {
    Floats(&'a Values),
    Bytes(&'a [u8]),
}

impl Tensor<'_> {
    fn kind(&self) -> Dtype {
        match self.data {
            Data::Floats(Values::F32(_)) => Dtype::F32,
            Data::Floats(Values::F16(_)) => Dtype::F16,
            Data::Bytes(_) => Dtype::U8,
        }
    }

    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind().bitsize() / 8
    }

    /// Hands out the bytes, little endian, block by block.
    fn for_each_block(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(BLOCK);
        let mut pass = |bytes: &mut dyn Iterator<Item = u8>| -> io::Result<()> {
            buffer.clear();
            buffer.extend(bytes);
            take(&buffer)
        };
        match self.data {
            Data::Floats(Values::F32(values)) => values
                .chunks(BLOCK / 4)
                .try_for_each(|block| pass(&mut block.iter().flat_map(|x| x.to_le_bytes()))),
            Data::Floats(Values::F16(values)) => values
                .chunks(BLOCK / 2)
                .try_for_each(|block| pass(&mut block.iter().flat_map(|x| x.to_le_bytes()))),
            Data::Bytes(values) => values.chunks(BLOCK).try_for_each(take),
        }
    }
}

/// Writes a text and tensors; the same content gives the same bytes.
pub(crate) fn write(out: &mut dyn Write, text: &str, mut tensors: Vec<Tensor<'_>>) -> io::Result<()> {
    tensors.sort_by_key(|tensor| tensor.name);
    let mut hash = ContentHash::new(text);
    for tensor in &tensors {
        hash.begin(tensor.name, tensor.kind(), &tensor.shape);
        tensor.for_each_block(|bytes| {
            hash.0.update(bytes);
            Ok(())
        })?;
    }
    // Wide types first, as the format's own library does: every tensor then starts where its type may.
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.kind().bitsize()));
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), serde_json::json!({ TEXT: text, HASH: hash.finish() }));
    let mut offset = 0;
    for tensor in &tensors {
        let end = offset + tensor.bytes();
        let kind = format!("{:?}", tensor.kind());
        let entry =
            serde_json::json!({ "dtype": kind, "shape": tensor.shape, "data_offsets": [offset, end] });
        header.insert(tensor.name.to_owned(), entry);
        offset = end;
    }
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(PREFIX as usize), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| tensor.for_each_block(|bytes| out.write_all(bytes)))
}

/// An open file whose header has been read and fits the length of the file.
pub(crate) struct Reader {
    path: PathBuf,
    file: File,
    /// Bytes of the whole file.
    pub(crate) length: u64,
    /// Where the tensors begin.
    start: u64,
    metadata: Metadata,
    /// The text.
    pub(crate) text: String,
    /// The SHA-256 that text and tensors must have.
    pub(crate) sha256: String,
    hash: ContentHash,
}

impl Reader {
    /// Reads the header.
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        let problem = |problem: Problem| PredictionError::File(problem.in_file(path));
        let (file, length, header) = read_header(path, limits).map_err(problem)?;
        let foreign = |reason: &str| PredictionError::Unusable {
            path: path.to_owned(),
            reason: format!("it is no distribution file ({reason})"),
            advice: CHOOSE,
        };
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
        let hash = ContentHash::new(&text);
        let (path, start) = (path.to_owned(), length - needed);
        Ok(Self { path, file, length, start, metadata, text, sha256, hash })
    }

    /// The shape of a tensor, where there is one of that name.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.metadata.info(name).map(|info| info.shape.as_slice())
    }

    /// The names of all tensors, in the order in which they must be read.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort();
        names
    }

    /// Reads a tensor of numbers; all tensors must be read, in the order of their names.
    pub(crate) fn floats(&mut self, name: &'static str) -> Result<Values> {
        let (kind, count) = self.begin(name)?;
        match kind {
            Dtype::F32 => {
                let mut values = Vec::with_capacity(count);
                self.blocks(4 * count, |bytes| {
                    values.extend(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)))
                })?;
                Ok(Values::F32(values))
            }
            Dtype::F16 => {
                let mut values = Vec::with_capacity(count);
                self.blocks(2 * count, |bytes| {
                    values.extend(bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b)))
                })?;
                Ok(Values::F16(values))
            }
            other => Err(self.wrong_type(name, other, "F32 or F16")),
        }
    }

    /// Reads a tensor of bytes, under the same conditions.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Vec<u8>> {
        let (kind, count) = self.begin(name)?;
        if kind != Dtype::U8 {
            return Err(self.wrong_type(name, kind, "U8"));
        }
        let mut values = Vec::with_capacity(count);
        self.blocks(count, |bytes| values.extend(bytes))?;
        Ok(values)
    }

    /// Refuses a file whose content is not what was written.
    pub(crate) fn verify(self) -> Result<()> {
        if self.hash.finish() == self.sha256 {
            return Ok(());
        }
        let reason = "its SHA-256 differs".to_owned();
        Err(Problem::Damaged { part: "the content", reason }.in_file(self.path).into())
    }

    /// Goes to a tensor; gives its type and how many numbers it has.
    fn begin(&mut self, name: &'static str) -> Result<(Dtype, usize)> {
        let info = self.metadata.info(name).ok_or_else(|| PredictionError::Unusable {
            path: self.path.clone(),
            reason: format!("it has no tensor `{name}`"),
            advice: CHOOSE,
        })?;
        self.hash.begin(name, info.dtype, &info.shape);
        let place = SeekFrom::Start(self.start + info.data_offsets.0 as u64);
        self.file.seek(place).map_err(|error| PredictionError::io(&self.path, error))?;
        // The header was checked against the length of the file: this allocates no more than is there.
        Ok((info.dtype, info.shape.iter().product()))
    }

    fn wrong_type(&self, field: &'static str, found: Dtype, allowed: &'static str) -> PredictionError {
        let found = format!("{found:?}");
        Problem::Field { field, found, allowed, advice: CHOOSE }.in_file(&self.path).into()
    }

    fn blocks(&mut self, mut left: usize, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut buffer = vec![0; BLOCK.min(left)];
        while left > 0 {
            let block = &mut buffer[..BLOCK.min(left)];
            self.file.read_exact(block).map_err(|error| PredictionError::io(&self.path, error))?;
            self.hash.0.update(&*block);
            take(block);
            left -= block.len();
        }
        Ok(())
    }
}

/// The file, its length and the bytes of its header; none where it begins unlike any file of tensors.
fn read_header(path: &Path, limits: &Limits) -> Result<(File, u64, Option<Vec<u8>>), Problem> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    limits.check_file_bytes(length)?;
    if length < PREFIX {
        return Err(Problem::Truncated { part: "the length of the header", needed: PREFIX, found: length });
    }
    let mut prefix = [0; PREFIX as usize];
    file.read_exact(&mut prefix)?;
    let (needed, found) = (u64::from_le_bytes(prefix), length - PREFIX);
    // The first bytes of a file of another kind make a length beyond all sense.
    if needed > limits.header_bytes {
        return Ok((file, length, None));
    }
    if needed > found {
        return Err(Problem::Truncated { part: "the header", needed, found });
    }
    let mut header = vec![0; needed as usize];
    file.read_exact(&mut header)?;
    Ok((file, length, Some(header)))
}

/// SHA-256 over the text, and over name, type, shape and bytes of every tensor in the order of their names.
struct ContentHash(Sha256);

impl ContentHash {
    fn new(text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(format!("{} {text}\n", text.len()));
        Self(hash)
    }

    fn begin(&mut self, name: &str, kind: Dtype, shape: &[usize]) {
        self.0.update(format!("{name} {kind:?} {shape:?}\n"));
    }

    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}
