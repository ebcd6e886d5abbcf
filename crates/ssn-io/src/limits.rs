//! How large things may be. Every reader asks here before it allocates.

use crate::memory::available_bytes;
use crate::problem::{Problem, refused};

/// Returns the memory that `values` values of `size` bytes take: as they are stored, and in single precision.
pub(crate) fn memory_of(values: u64, size: usize) -> u64 {
    values.saturating_mul(size as u64 + 4)
}

/// What takes less is not compared with the memory that is left, for that takes a while to find out.
const ALWAYS_LEFT: u64 = 16 << 20;

/// Refuses what takes more memory than is left. Readers ask when all data are known to be there, right before they allocate.
///
/// # Errors
/// [`Problem::Memory`].
pub fn check_left(needed: u64) -> Result<(), Problem> {
    if needed <= ALWAYS_LEFT {
        return Ok(());
    }
    match available_bytes() {
        Some(left) if needed > left => Err(Problem::Memory { needed, left }),
        _ => Ok(()),
    }
}

/// Refuses what is above a limit, the field `name` of [`Limits`].
pub(crate) fn within(what: &'static str, found: u64, limit: u64, name: &'static str) -> Result<(), Problem> {
    if found > limit { Err(Problem::Limit { what, found, limit, name }) } else { Ok(()) }
}

/// Limits on what is read from files. They stop damaged and hostile files, and can be raised for genuine ones.
///
/// Whatever the limits, memory grows with the bytes that arrive and never with what a header claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file on disk.
    pub file_bytes: u64,
    /// Bytes after decompression, of one file or one member of an archive.
    pub expanded_bytes: u64,
    /// Values of one image: channels × depth × height × width.
    pub values: u64,
    /// Bytes of all extensions of a header, or of all text lines of a header.
    pub header_bytes: u64,
    /// Objects that a pickle may build.
    pub objects: u64,
    /// Members of an archive.
    pub members: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 16 << 30,
            expanded_bytes: 32 << 30,
            values: 1 << 33,
            header_bytes: 16 << 20,
            objects: 50_000_000,
            members: 100_000,
        }
    }
}

impl Limits {
    /// Returns the number of values of a shape, if it is positive, does not overflow and is within the limit.
    pub fn check_values(&self, shape: &[usize]) -> Result<usize, Problem> {
        let values = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n as u64));
        match values {
            Some(0) => {
                let advice = "the image holds no values: export it again";
                Err(refused("the shape", format!("{shape:?}"), "positive along every axis", advice))
            }
            Some(values) if values <= self.values => Ok(values as usize),
            values => Err(Problem::Limit {
                what: "the number of values",
                found: values.unwrap_or(u64::MAX),
                limit: self.values,
                name: "values",
            }),
        }
    }

    /// Refuses a file, or decompressed data, of too many bytes.
    pub fn check_file_bytes(&self, found: u64) -> Result<(), Problem> {
        within("the size of the file", found, self.file_bytes, "file_bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_more_memory_than_is_left() {
        assert!(check_left(1 << 20).is_ok());
        let message = check_left(1 << 60).unwrap_err().to_string();
        assert!(message.starts_with("it takes about 1152921504607 MB of memory, but "), "{message}");
    }
}
