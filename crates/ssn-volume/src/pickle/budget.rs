//! How much memory a pickle may make the reader use: in proportion to the size of the file.
//!
//! The numbers are chosen so that a file of one megabyte never costs more than 64 megabytes, unless it is compressed and
//! verified to hold more. [`Limits::memory`] also bounds what was verified.

use crate::error::Problem;
use crate::limits::Limits;

/// Bytes that any file may use, however small it is.
pub const BASE: u64 = 16 << 20;
/// Bytes that a file may use beyond [`BASE`], for each byte on disk.
pub const PER_BYTE: u64 = 44;

/// The memory that a byte of content costs at most: itself, its value, that in row-major order, and a copy in single
/// precision.
const MEMORY_PER_BYTE: u64 = 7;

/// The field name of the refusal that asks for a verification first; see [`Budget::before_verification`].
pub(super) const UNVERIFIED: &str = "the content of the compressed data";

/// Counts what a pickle builds.
#[derive(Debug, Clone)]
pub struct Budget {
    file_bytes: u64,
    /// Bytes of nodes, references, and copies of contents.
    used: u64,
    allowed: u64,
    /// Bytes of contents: texts, bytes and arrays, each of which is in the pickle itself.
    content: u64,
    /// Contents up to this size are not counted as used, since they were verified to be there.
    verified: u64,
    waits_for_verification: bool,
    objects: u64,
    /// The most memory that all of this costs.
    memory: u64,
    limits: Limits,
}

impl Budget {
    /// The budget of a file of a size.
    pub fn new(file_bytes: usize, limits: &Limits) -> Self {
        let file_bytes = file_bytes as u64;
        Self {
            file_bytes,
            used: 0,
            allowed: BASE.saturating_add(file_bytes.saturating_mul(PER_BYTE)),
            content: 0,
            // A plain file holds its contents byte by byte.
            verified: file_bytes,
            waits_for_verification: false,
            objects: 0,
            memory: 0,
            limits: limits.clone(),
        }
    }

    /// For a compressed file whose check sums were not verified: all contents count, and going beyond the
    /// budget gives a refusal whose field is `UNVERIFIED`.
    pub(super) fn before_verification(mut self) -> Self {
        self.verified = 0;
        self.waits_for_verification = true;
        self
    }

    /// For a compressed file that was verified to expand to so many bytes.
    pub(super) fn with_verified_content(mut self, expanded: u64) -> Self {
        self.verified = expanded;
        self
    }

    /// Counts objects, or references between them, that take `bytes` together.
    pub fn add_objects(&mut self, count: u64, bytes: u64) -> Result<(), Problem> {
        self.objects = self.objects.saturating_add(count);
        if self.objects > self.limits.objects {
            return Err(Problem::Limit {
                what: "the number of objects in the pickle",
                found: self.objects,
                limit: self.limits.objects,
                name: "objects",
            });
        }
        self.add(bytes)
    }

    /// Counts content that the pickle holds: text, bytes.
    pub fn add_content(&mut self, bytes: u64) -> Result<(), Problem> {
        self.add_memory(bytes.saturating_mul(MEMORY_PER_BYTE))?;
        self.content = self.content.saturating_add(bytes);
        if self.content > self.verified { self.use_up(bytes) } else { Ok(()) }
    }

    /// Counts memory that is not in the file as such: nodes, copies.
    pub fn add(&mut self, bytes: u64) -> Result<(), Problem> {
        self.add_memory(bytes)?;
        self.use_up(bytes)
    }

    fn add_memory(&mut self, bytes: u64) -> Result<(), Problem> {
        self.memory = self.memory.saturating_add(bytes);
        self.limits.check_memory(self.memory, self.file_bytes)
    }

    fn use_up(&mut self, bytes: u64) -> Result<(), Problem> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.allowed {
            return Ok(());
        }
        Err(Problem::Field {
            field: if self.waits_for_verification { UNVERIFIED } else { "the memory that the file asks for" },
            found: format!("more than {} bytes from a file of {} bytes", self.allowed, self.file_bytes),
            allowed: "16 MiB and 44 times the size of the file",
            advice: "small files that ask for much are built to exhaust memory; if the file is genuine, \
                     save it again without compression and with NumPy arrays in place of lists",
        })
    }

    /// The number of values of a shape, which may be zero here, if it is within the limits.
    pub fn count(&self, shape: &[usize]) -> Result<usize, Problem> {
        if shape.contains(&0) { Ok(0) } else { self.limits.check_values(shape) }
    }
}
