//! A safetensors file with a text beside its tensors, and a SHA-256 of both. Reads and writes in blocks, so that a large
//! distribution is in memory once.

mod read;
mod write;

use safetensors::Dtype;
use sha2::{Digest, Sha256};

use ssn_data::text::hex;

pub(crate) use read::Reader;
pub(crate) use write::{Data, Tensor, write};

/// The keys of the metadata.
const TEXT: &str = "ssn";
const HASH: &str = "sha256";
/// Bytes before the header that hold its length.
const PREFIX: u64 = 8;
/// Bytes that are read or written at once; a multiple of every type's size.
const BLOCK: usize = 1 << 20;

/// What to do with files that hold the wrong things.
pub(crate) const CHOOSE: &str = "choose a file that `ssn predict` wrote";

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

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}
