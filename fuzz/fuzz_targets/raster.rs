//! PNG, JPEG and TIFF: no bytes panic, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_volume::raster::{encode_png, encode_tiff, parse_jpeg, parse_png, parse_tiff};
use ssn_volume::{Image, Limits, Problem};

fn same(first: &Image, second: &Image) {
    assert_eq!(first.shape, second.shape);
    assert_eq!(first.geometry, second.geometry);
    assert_eq!(first.voxels.kind(), second.voxels.kind());
    // As bytes, for a value that is not a number differs from itself.
    assert_eq!(first.voxels.to_le_bytes(), second.voxels.to_le_bytes());
}

fn goes_round(
    image: &Image,
    encoded: Result<Vec<u8>, Problem>,
    parse: fn(&[u8], &Limits) -> Result<Image, Problem>,
) {
    let bytes = encoded.expect("what was read can be written");
    same(image, &parse(&bytes, &Limits::default()).expect("what was written can be read"));
}

fuzz_target!(|data: &[u8]| {
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(image) = parse_png(data, &limits) {
        goes_round(&image, encode_png(&image), parse_png);
    }
    if let Ok(image) = parse_jpeg(data, &limits) {
        goes_round(&image, encode_png(&image), parse_png);
    }
    if let Ok(image) = parse_tiff(data, &limits) {
        goes_round(&image, encode_tiff(&image), parse_tiff);
    }
});
