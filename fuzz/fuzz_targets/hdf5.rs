//! HDF5: whatever the bytes are, the reader neither panics nor hangs. The library reads files, so that each input is
//! written to one in memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::{Limits, hdf5};

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("ssn-fuzz-{}.h5", std::process::id()));
    std::fs::write(&path, data).expect("a temporary file can be written");
    let limits = Limits { values: 1 << 20, ..Limits::default() };
    let _ = hdf5::read(&path, &limits);
});
