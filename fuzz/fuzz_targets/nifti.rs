//! Bytes as a single NIfTI file, and as a pair cut in two: what is read is written and read again, the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::{Image, Limits, nifti};

/// Small enough that one input stays below a second.
fn limits() -> Limits {
    Limits { expanded_bytes: 1 << 24, values: 1 << 22, header_bytes: 1 << 20, ..Limits::default() }
}

fn goes_round(image: &Image) {
    let version = nifti::Version::for_image(image);
    let bytes = nifti::encode(image, version).expect("what was read can be written");
    let back = nifti::parse(&bytes, &Limits::default()).expect("what was written can be read");
    assert_eq!(back.voxels.kind(), image.voxels.kind());
    assert_eq!(back.voxels.to_le_bytes(), image.voxels.to_le_bytes());
    assert_eq!((back.shape, back.geometry), (image.shape, image.geometry));
    assert_eq!((back.slope, back.intercept), (image.slope, image.intercept));
}

fuzz_target!(|data: &[u8]| {
    if let Ok(image) = nifti::parse(data, &limits()) {
        goes_round(&image);
    }
    // A pair: the first byte says how long the header file is.
    if let Some((&cut, rest)) = data.split_first() {
        let (header, values) = rest.split_at((348 + usize::from(cut)).min(rest.len()));
        if let Ok(image) = nifti::parse_pair(header, values, &limits()) {
            goes_round(&image);
        }
    }
});
