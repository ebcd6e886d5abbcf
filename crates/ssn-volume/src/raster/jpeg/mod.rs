//! JPEG, which is only read: it changes values, so nothing is written with it.
//!
//! Baseline, extended and progressive files with Huffman codes and 8 bit, grey or in three colours (ITU-T
//! T.81). The decoder is our own for two reasons. Common decoders may fill what is missing from a file with grey
//! and say nothing; this one refuses data that end early, run over, or leave a coefficient out. And its
//! arithmetic (the transform, the interpolation of colours and their conversion) follows the integer method
//! that most libraries use by default, so that masks cut from its values are those that other tools would
//! cut.

mod bits;
mod colour;
mod frame;
mod huffman;
mod markers;
mod progressive;
mod scan;
mod transform;

use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::volume::Image;
use crate::voxels::Voxels;

/// Reads a JPEG file: grey as `[1, 1, h, w]`, colour as RGB in `[3, 1, h, w]`, both `u8`.
///
/// Refused: 12 bit, CMYK, arithmetic coding, lossless and hierarchical files, pictures that ask to be turned,
/// and files whose colours can only be guessed. Bytes after the end of the picture are ignored.
///
/// JPEG has no check sums. Data that are cut off are refused, but a changed byte may go unnoticed.
pub fn parse_jpeg(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let (frame, scheme) = markers::decode(bytes, limits)?;
    let shape = [frame.components.len(), 1, frame.height, frame.width];
    let values = colour::convert(frame, scheme);
    Image::new(Voxels::U8(values), shape, Geometry::default(), limits)
}

/// What a decoder says about data that contradict themselves.
fn damaged(reason: impl Into<String>) -> Problem {
    Problem::Damaged { part: "the JPEG file", reason: reason.into() }
}
