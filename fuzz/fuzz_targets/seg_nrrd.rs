//! Segmentations of 3D Slicer: no bytes make the reader panic, and names go round through the writer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::{Limits, seg_nrrd};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { expanded_bytes: 1 << 24, values: 1 << 24, ..Limits::default() };
    let Ok(segments) = seg_nrrd::parse_segments(data, &limits) else { return };
    if let Ok(image) = seg_nrrd::parse(data, &limits)
        && image.to_labels().is_ok()
    {
        let bytes = seg_nrrd::encode(&image, &segments).expect("what was read can be written");
        let back = seg_nrrd::parse_segments(&bytes, &limits).expect("what was written is read");
        assert_eq!(segments, back);
    }
});
