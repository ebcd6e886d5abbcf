//! TIFF of one or more pages, classic and BigTIFF.
//!
//! The reader is our own because wrong voxels must be impossible to get silently: it refuses entries that are
//! there twice, pages that differ, data that are shared or too long, and stacks whose pages are more than
//! slices. LZW (`weezl`) and deflate (`flate2`) are not our own.

mod chunk;
pub(super) mod directory;
mod page;
mod predictor;
mod read;
mod stack;
mod write;

pub use read::parse_tiff;
pub use write::encode_tiff;
