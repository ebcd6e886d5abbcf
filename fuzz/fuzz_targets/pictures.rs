//! Whether pictures come back as they were.

use ssn_io::{Image, Limits, Problem};

/// Reads what was written of an image and compares.
pub fn goes_round(
    image: &Image,
    encoded: Result<Vec<u8>, Problem>,
    parse: fn(&[u8], &Limits) -> Result<Image, Problem>,
) {
    let bytes = encoded.expect("what was read can be written");
    let again = parse(&bytes, &Limits::default()).expect("what was written can be read");
    assert_eq!(image.shape, again.shape);
    assert_eq!(image.geometry, again.geometry);
    assert_eq!(image.voxels.kind(), again.voxels.kind());
    // As bytes, for a value that is not a number differs from itself.
    assert_eq!(image.voxels.to_le_bytes(), again.voxels.to_le_bytes());
}
