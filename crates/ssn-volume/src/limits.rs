//! How large things may be. Every reader asks here before it allocates.

use crate::error::Problem;

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
    /// The number of values of a shape, if it is positive, does not overflow and is within the limit.
    pub fn check_values(&self, shape: &[usize]) -> Result<usize, Problem> {
        let values = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n as u64));
        match values {
            Some(0) => Err(Problem::Field {
                field: "the shape",
                found: format!("{shape:?}"),
                allowed: "positive along every axis",
                advice: "the image holds no values: export it again",
            }),
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
        if found <= self.file_bytes {
            return Ok(());
        }
        Err(Problem::Limit {
            what: "the size of the file",
            found,
            limit: self.file_bytes,
            name: "file_bytes",
        })
    }
}
