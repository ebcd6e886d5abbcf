//! NumPy arrays: no panic escapes, and what is read can be written and read again.
#![no_main]

mod foreign;

use libfuzzer_sys::fuzz_target;
use ssn_io::{Limits, npy};

fuzz_target!(init: foreign::report_panics(), |data: &[u8]| {
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(array) = npy::parse(data, &limits) {
        let bytes = npy::encode(&array).expect("what was read can be written");
        let again = npy::parse(&bytes, &limits).expect("what was written can be read");
        assert_eq!(array.shape, again.shape);
        assert_eq!(array.voxels.kind(), again.voxels.kind());
        // As bytes, for a value that is not a number differs from itself.
        assert_eq!(array.voxels.to_le_bytes(), again.voxels.to_le_bytes());
    }
});
