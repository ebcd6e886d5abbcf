//! HDF5: whatever the bytes are, the reader neither panics nor hangs. It has no writer, so nothing goes round. Check
//! sums of the structure count as right here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_volume::{Limits, hdf5};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { values: 1 << 20, expanded_bytes: 1 << 20, ..Limits::default() };
    let _ = hdf5::parse(data, &limits);
});
