//! Choice of the precision of distribution files.

use clap::ValueEnum;

/// How precisely a file holds its numbers. The factor is by far the largest part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoredPrecision {
    /// All in single precision.
    Single,
    /// The factor in half precision, the rest in single.
    HalfFactor,
    /// All in half precision.
    Half,
}
