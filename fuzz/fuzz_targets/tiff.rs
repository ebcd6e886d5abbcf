//! TIFF: no panic escapes, and what is read can be written and read again.
#![no_main]

mod foreign;
mod pictures;

use libfuzzer_sys::fuzz_target;
use pictures::goes_round;
use ssn_io::Limits;
use ssn_io::raster::{encode_tiff, parse_tiff};

fuzz_target!(init: foreign::report_panics(), |data: &[u8]| {
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(image) = parse_tiff(data, &limits) {
        goes_round(&image, encode_tiff(&image), parse_tiff);
    }
});
