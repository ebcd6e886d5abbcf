//! Writing text and tensors.

use std::io::{self, Write};

use safetensors::Dtype;
use ssn_core::Values;

use super::{BLOCK, ContentHash, HASH, PREFIX, TEXT};

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
        let mut buffer = vec![0; BLOCK];
        match self.data {
            Data::Floats(Values::F32(values)) => values.chunks(BLOCK / 4).try_for_each(|block| {
                let places = buffer.as_chunks_mut().0.iter_mut();
                places.zip(block).for_each(|(place, x)| *place = x.to_le_bytes());
                take(&buffer[..4 * block.len()])
            }),
            Data::Floats(Values::F16(values)) => values.chunks(BLOCK / 2).try_for_each(|block| {
                let places = buffer.as_chunks_mut().0.iter_mut();
                places.zip(block).for_each(|(place, x)| *place = x.to_le_bytes());
                take(&buffer[..2 * block.len()])
            }),
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
            hash.add(bytes);
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
