//! How much memory what is read from a file may take.

use crate::error::Problem;
use crate::limits::{Limits, memory_of};

/// Datasets of a file may take this many times its bytes. Gzip can reach 1032 on zeros, so that a file of
/// nothing but label maps may be refused; with more, a hostile file of 1 MB could cost over 64 MB.
pub const LARGEST_RATIO: u64 = 30;
/// Datasets may always take this many bytes, however small the file.
pub const ALWAYS_ALLOWED: u64 = 16 << 20;
/// An expanded chunk may take this part of what datasets may take; there are two of them for a moment.
const CHUNKS: u64 = 4;

/// The bytes that may still be taken.
pub(super) struct Budget<'l> {
    limits: &'l Limits,
    file_bytes: u64,
    room: u64,
    allowed: u64,
    /// What the values cost by the rule of [`Limits::memory`].
    memory: u64,
}

impl<'l> Budget<'l> {
    pub(super) fn new(file_bytes: u64, limits: &'l Limits) -> Self {
        let allowed = file_bytes.saturating_mul(LARGEST_RATIO).max(ALWAYS_ALLOWED).min(limits.expanded_bytes);
        Self { limits, file_bytes, room: allowed, allowed, memory: 0 }
    }

    /// Takes bytes for the dataset or group at a path, or refuses it.
    pub(super) fn take(&mut self, path: &str, bytes: u64) -> Result<(), Problem> {
        let Some(rest) = self.room.checked_sub(bytes) else {
            return Err(Problem::Field {
                field: "the size of a dataset",
                found: format!(
                    "{bytes} bytes for `{path}`, with {} of {} left for this file",
                    self.room, self.allowed
                ),
                allowed: "in total at most 30 times the file, or 16 MiB, and within the limit `expanded_bytes`",
                advice: "if the file is genuine, write it again without compression (`h5repack -f NONE`)",
            });
        };
        self.room = rest;
        self.check_memory(bytes)
    }

    /// Takes the bytes of so many values of a size.
    pub(super) fn take_values(&mut self, path: &str, values: u64, size: usize) -> Result<(), Problem> {
        let bytes = values.saturating_mul(size as u64);
        self.take(path, bytes)?;
        self.check_memory(memory_of(values, size) - bytes)
    }

    /// Takes room for expanding chunks of a size, or refuses chunks that are too large.
    pub(super) fn take_chunk(&mut self, path: &str, bytes: u64) -> Result<(), Problem> {
        if bytes > self.allowed / CHUNKS {
            return Err(Problem::Field {
                field: "the size of a chunk",
                found: format!("{bytes} bytes for `{path}`"),
                allowed: "at most a quarter of what all datasets of the file may take",
                advice: "if the file is genuine, write it again without compression (`h5repack -f NONE`)",
            });
        }
        self.check_memory(2 * bytes)
    }

    fn check_memory(&mut self, more: u64) -> Result<(), Problem> {
        self.memory = self.memory.saturating_add(more);
        self.limits.check_memory(self.memory, self.file_bytes)
    }
}
