//! How large things may be. Every reader asks here before it allocates.

use crate::error::{Problem, refused};
use crate::memory::available_bytes;

/// Bytes of a value in single precision.
const SINGLE: u64 = 4;

/// The most memory that `values` values of `size` bytes cost: the values, their bytes in the file while they are read, and
/// a copy in single precision afterwards. All of them count, since an allocator may keep what was given back.
pub(crate) fn memory_of(values: u64, size: usize) -> u64 {
    values.saturating_mul(2 * size as u64 + SINGLE)
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

/// What [`memory_of`] says, less what is given back in between.
pub(crate) fn at_a_time(memory: u64) -> u64 {
    memory / 3 * 2
}

/// Limits on what is read from files. They stop damaged and hostile files, and can be raised for genuine ones.
///
/// Whatever the limits, memory grows with the bytes that arrive and never with what a header claims. What arrives
/// may be compressed a thousandfold, though: [`untrusted`](Self::untrusted) bounds memory by the size of the file.
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
    /// Bytes of memory that a file of any size may cost.
    pub memory_base: u64,
    /// Bytes of memory that a file may cost beyond `memory_base` for each of its bytes on disk; nothing where memory is
    /// not bounded by the size of the file.
    pub memory_ratio: Option<u64>,
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
            memory_base: 16 << 20,
            // A genuine label map may expand a thousandfold: an empty one of 512 × 512 × 400 takes 100 KB.
            memory_ratio: None,
        }
    }
}

impl Limits {
    /// Limits for files from strangers: one of at most 1 MB never costs more than 64 MB, valid or not, neither when
    /// it is read nor when its values are then turned into single precision or labels.
    ///
    /// Genuine files that compress very well, such as large label maps, are refused as well.
    pub fn untrusted() -> Self {
        Self { header_bytes: 1 << 20, members: 10_000, memory_ratio: Some(32), ..Self::default() }
    }

    /// Bytes of memory that a file of a size may cost.
    pub fn memory(&self, file_bytes: u64) -> u64 {
        match self.memory_ratio {
            Some(ratio) => file_bytes.saturating_mul(ratio).saturating_add(self.memory_base),
            None => u64::MAX,
        }
    }

    /// Refuses a file that would cost too much memory for its size.
    pub(crate) fn check_memory(&self, found: u64, file_bytes: u64) -> Result<(), Problem> {
        within("the memory for this file", found, self.memory(file_bytes), "memory_ratio")
    }

    /// The number of values of a shape, if it is positive, does not overflow and is within the limit.
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

    #[test]
    fn a_small_file_may_cost_little_where_it_is_not_trusted() {
        let (all, few) = (Limits::default(), Limits::untrusted());
        assert_eq!((all.memory(1), few.memory(1 << 20)), (u64::MAX, 48 << 20));
        assert!(all.check_memory(1 << 40, 1000).is_ok() && few.check_memory(48 << 20, 1 << 20).is_ok());
        let message = few.check_memory((48 << 20) + 1, 1 << 20).unwrap_err().to_string();
        assert!(message.contains("50331649, above the limit of 50331648"), "{message}");
        assert!(message.contains("raise the limit `memory_ratio`"), "{message}");
        assert_eq!([1, 2, 4, 8].map(|size| memory_of(10, size)), [60, 80, 120, 200]);
    }
}
