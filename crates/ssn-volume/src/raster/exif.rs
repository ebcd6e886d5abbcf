//! The one thing in Exif data that matters here: whether the picture is to be turned before it is shown.

use super::tiff::directory::{self, Tiff};
use super::unsupported;
use crate::error::Problem;

/// The tag of the orientation (TIFF 6.0, section 8; Exif uses the same).
pub(super) const ORIENTATION: u16 = 274;
/// The orientation of a picture whose first row is at the top and whose first column is at the left.
pub(super) const UPRIGHT: u64 = 1;

/// Refuses Exif data that ask for the picture to be turned or mirrored: some programs do so and others do
/// not, and a label map made with the one kind does not fit the picture read with the other. Data that cannot
/// be read say nothing about the orientation.
pub(super) fn check_upright(data: &[u8]) -> Result<(), Problem> {
    let data = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
    let Ok(tiff) = Tiff::open(data) else { return Ok(()) };
    let Ok(directory) = directory::read(&tiff, tiff.first) else { return Ok(()) };
    match directory.number(&tiff, ORIENTATION) {
        Ok(Some(orientation)) => check_orientation(orientation),
        _ => Ok(()),
    }
}

/// Refuses every orientation except upright, and 0, which some cameras write for "unknown".
pub(super) fn check_orientation(orientation: u64) -> Result<(), Problem> {
    if matches!(orientation, 0 | UPRIGHT) {
        return Ok(());
    }
    Err(unsupported(
        format!("a picture that is to be turned or mirrored (orientation {orientation})"),
        "turn it and save it upright, and check that it fits its label map",
    ))
}
