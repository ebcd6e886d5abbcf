//! PNG: no panic escapes, and what is read can be written and read again.
#![no_main]

mod foreign;
mod pictures;

use libfuzzer_sys::fuzz_target;
use pictures::goes_round;
use ssn_io::Limits;
use ssn_io::raster::{encode_png, parse_png};

fuzz_target!(init: foreign::report_panics(), |data: &[u8]| {
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(image) = parse_png(data, &limits) {
        goes_round(&image, encode_png(&image), parse_png);
    }
});
