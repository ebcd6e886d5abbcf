//! NRRD: no bytes make the reader panic, and what it reads goes round through both writers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::{Image, Limits, Tolerance, nrrd};

/// Lengths are computed anew from vectors in the file; only their last digits may change.
const CLOSE: Tolerance = Tolerance { spacing: 1e-9, origin: 1e-9, direction: 1e-9 };

fuzz_target!(|data: &[u8]| {
    let limits = Limits { expanded_bytes: 1 << 24, values: 1 << 24, ..Limits::default() };
    // The same bytes as header and as data reach the detached forms.
    let detached = nrrd::parse_header(data, &limits).and_then(|header| header.image(data, &limits));
    let images = [nrrd::parse(data, &limits), detached];
    for image in images.into_iter().flatten() {
        let compressed = nrrd::encode_gzip(&image).expect("writing to memory does not fail");
        for bytes in [nrrd::encode(&image), compressed] {
            let back = nrrd::parse(&bytes, &limits).expect("what was written is read");
            assert_same(&image, &back);
        }
    }
});

/// The same stored bits (which may be NaN), shape and place.
fn assert_same(a: &Image, b: &Image) {
    assert_eq!((a.shape, a.voxels.kind()), (b.shape, b.voxels.kind()));
    assert!(a.voxels.to_le_bytes() == b.voxels.to_le_bytes());
    assert_eq!(a.geometry.differences(&b.geometry, CLOSE), None);
}
