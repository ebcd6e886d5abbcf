//! Reading text and tensors from files that nobody vouches for.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::f16;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use ssn_core::Values;
use ssn_io::{Limits, Problem};

use super::{BLOCK, CHOOSE, ContentHash, HASH, PREFIX, TEXT};
use crate::error::{EvalError, Result};

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
        let problem = |problem: Problem| EvalError::File(problem.in_file(path));
        let (file, length, header) = read_header(path, limits).map_err(problem)?;
        let foreign = |reason: &str| EvalError::Unusable {
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
        let info = self.metadata.info(name).ok_or_else(|| EvalError::Unusable {
            path: self.path.clone(),
            reason: format!("it has no tensor `{name}`"),
            advice: CHOOSE,
        })?;
        self.hash.begin(name, info.dtype, &info.shape);
        let place = SeekFrom::Start(self.start + info.data_offsets.0 as u64);
        self.file.seek(place).map_err(|error| EvalError::io(&self.path, error))?;
        // The header was checked against the length of the file: this allocates no more than is there.
        Ok((info.dtype, info.shape.iter().product()))
    }

    fn wrong_type(&self, field: &'static str, found: Dtype, allowed: &'static str) -> EvalError {
        let found = format!("{found:?}");
        Problem::Field { field, found, allowed, advice: CHOOSE }.in_file(&self.path).into()
    }

    fn blocks(&mut self, mut left: usize, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut buffer = vec![0; BLOCK.min(left)];
        while left > 0 {
            let block = &mut buffer[..BLOCK.min(left)];
            self.file.read_exact(block).map_err(|error| EvalError::io(&self.path, error))?;
            self.hash.add(block);
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
