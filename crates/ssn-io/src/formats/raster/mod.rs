//! Pictures: PNG, JPEG and TIFF, decoded by the crates `png`, `jpeg-decoder` and `tiff`.
//!
//! Each reader gives the samples as the file stores them, `[c, d, h, w]`: one channel for gray, three for
//! color, and the pages of a TIFF as depth. A palette is replaced by its colors in an image, while its indices are the
//! values of a label map, which `parse_png_labels` reads. Nothing is stretched, inverted, turned or matched to a color
//! profile; where a file asks for that in a way that would change values or places, it is refused. Sizes that
//! a header claims are checked against the limits and the length of the file before anything is decoded.
//!
//! Pictures have no geometry here. The resolutions that PNG (`pHYs`), JPEG and TIFF can carry mean the size
//! of a print at least as often as that of a voxel, so they are ignored and every picture gets the default
//! geometry; the writers refuse images with another one rather than lose it.

mod jpeg;
mod png;
mod tiff;

pub use jpeg::parse_jpeg;
pub(crate) use jpeg::parse_jpeg_of;
pub use png::{encode_png, parse_png, parse_png_labels};
pub use tiff::{encode_tiff, parse_tiff, parse_tiff_labels};

use crate::geometry::Geometry;
use crate::problem::{Problem, refused};
use crate::volume::Image;

/// A feature that is not read.
fn unsupported(what: impl Into<String>, advice: &'static str) -> Problem {
    Problem::Unsupported { what: what.into(), advice }
}

/// Refuses a picture that takes at least `needed` bytes, however well it is compressed, in `stored` bytes.
fn check_claim([height, width]: [usize; 2], needed: u64, stored: u64) -> Result<(), Problem> {
    if needed <= stored {
        return Ok(());
    }
    let found = format!("{width} × {height} pixels in a file of {stored} bytes");
    let advice = "the file is cut off or damaged: copy it again";
    Err(refused("the size of the picture", found, "what the file can hold", advice))
}

/// Refuses Exif data that ask for the picture to be turned. Data that cannot be read ask for nothing.
fn check_exif(data: &[u8]) -> Result<(), Problem> {
    let Ok(exif) = exif::Reader::new().read_raw(data.to_vec()) else { return Ok(()) };
    let orientation = exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY);
    check_orientation(orientation.and_then(|field| field.value.get_uint(0)).unwrap_or(1))
}

/// Refuses every orientation except upright (1), and 0, which some cameras write for "unknown": some programs
/// turn the others and some do not, and a label map made with the one kind does not fit the picture read with
/// the other.
fn check_orientation(orientation: u32) -> Result<(), Problem> {
    if orientation <= 1 {
        return Ok(());
    }
    let what = format!("a picture that is to be turned or mirrored (orientation {orientation})");
    Err(unsupported(what, "turn it and save it upright, and check that it fits its label map"))
}

/// Refuses to write an image that has more to it than samples.
fn check_plain(image: &Image) -> Result<(), Problem> {
    if image.geometry == Geometry::default() && (image.slope, image.intercept) == (1.0, 0.0) {
        return Ok(());
    }
    let advice = "write it as NIfTI, or give it up on purpose by setting the default";
    let allowed = "the default, for a picture holds none";
    Err(refused("the geometry, slope or intercept", "not the default one", allowed, advice))
}

/// Pixels `[…, samples]`, each sample of `size` bytes, as `[channels, …]`. A sample beyond the channels is the
/// opacity: it must be full, and is dropped.
fn planes(pixels: Vec<u8>, channels: usize, samples: usize, size: usize) -> Result<Vec<u8>, Problem> {
    if samples == 1 {
        return Ok(pixels);
    }
    let mut out = Vec::with_capacity(pixels.len() / samples * channels);
    for sample in 0..samples {
        let values = pixels.chunks_exact(samples * size).map(|pixel| &pixel[sample * size..][..size]);
        if sample < channels {
            values.for_each(|value| out.extend_from_slice(value));
        } else if values.flatten().any(|&byte| byte != u8::MAX) {
            return Err(transparent());
        }
    }
    Ok(out)
}

/// Rows of samples of fewer than 8 bit, the first in the highest bits, with a byte for each sample.
fn unpack(rows: &[u8], bits: usize, width: usize) -> Vec<u8> {
    let stride = (width * bits).div_ceil(8);
    let mut out = Vec::with_capacity(rows.len() / stride * width);
    for row in rows.chunks_exact(stride) {
        let samples = row.iter().flat_map(|byte| (0..8 / bits).rev().map(move |i| byte >> (i * bits)));
        out.extend(samples.take(width).map(|sample| sample & (u8::MAX >> (8 - bits))));
    }
    out
}

/// `[c, …]` as pixels `[…, c]`.
fn interleave<T: Copy>(values: &[T], channels: usize) -> Vec<T> {
    let pixels = values.len() / channels;
    (0..pixels).flat_map(|pixel| (0..channels).map(move |c| values[c * pixels + pixel])).collect()
}

/// The refusal of a picture through which one can see.
fn transparent() -> Problem {
    let advice = "whether they count is not known: remove the alpha channel before using the picture";
    unsupported("a picture with transparent pixels", advice)
}
