//! Pictures: PNG, JPEG and TIFF.
//!
//! Each reader gives the samples as the file stores them, `[c, d, h, w]`: one channel for grey, three for
//! colour, and the pages of a TIFF as depth. Nothing is stretched, inverted, turned or matched to a colour
//! profile; where a file asks for that in a way that would change values or places, it is refused.
//!
//! Pictures have no geometry here. The resolutions that PNG (`pHYs`), JPEG and TIFF can carry mean the size
//! of a print at least as often as that of a voxel, so they are ignored and every picture gets the default
//! geometry; the writers refuse images with another one rather than lose it.

mod canvas;
mod exif;
mod jpeg;
mod png;
mod tiff;

pub use jpeg::parse_jpeg;
pub use png::{encode_png, parse_png};
pub use tiff::{encode_tiff, parse_tiff};

use crate::error::Problem;
use crate::geometry::Geometry;
use crate::volume::Image;

/// Pixels along a side: the limit that libpng sets by default (`PNG_USER_WIDTH_MAX`). It bounds what one row
/// costs before any of it has arrived.
const MAX_SIDE: u64 = 1_000_000;

/// A field with a wrong value.
fn field(field: &'static str, found: impl ToString, allowed: &'static str, advice: &'static str) -> Problem {
    Problem::Field { field, found: found.to_string(), allowed, advice }
}

/// A feature that is not read.
fn unsupported(what: impl Into<String>, advice: &'static str) -> Problem {
    Problem::Unsupported { what: what.into(), advice }
}

/// Width and height as sizes, if both are positive and not absurd.
fn check_sides(width: u64, height: u64) -> Result<[usize; 2], Problem> {
    if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
        return Ok([height as usize, width as usize]);
    }
    Err(field(
        "the size of the picture",
        format!("{width} × {height} pixels"),
        "1 to 1,000,000 pixels along each side",
        "export the picture again, in parts if it is genuine",
    ))
}

/// Refuses to write an image that has more to it than samples.
fn check_plain(image: &Image) -> Result<(), Problem> {
    let advice = "write it as NIfTI, or give it up on purpose by setting the default";
    if image.geometry != Geometry::default() {
        return Err(field(
            "the geometry",
            "not the default one",
            "the default, for a picture holds none",
            advice,
        ));
    }
    if (image.slope, image.intercept) != (1.0, 0.0) {
        let found = format!("{} and {}", image.slope, image.intercept);
        return Err(field("slope and intercept", found, "1 and 0, for a picture holds none", advice));
    }
    Ok(())
}
