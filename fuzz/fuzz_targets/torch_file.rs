//! PyTorch files: whatever the bytes are, the reader neither panics nor hangs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::{Limits, torch_file};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { values: 1 << 20, ..Limits::default() };
    for (name, array) in torch_file::parse(data, &limits).unwrap_or_default() {
        assert_eq!(array.voxels.len(), array.shape.iter().product::<usize>(), "{name}");
    }
});
