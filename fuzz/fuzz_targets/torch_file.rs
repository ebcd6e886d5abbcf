//! PyTorch files: whatever the bytes are, the reader neither panics nor hangs, and its two functions agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_volume::Limits;
use ssn_volume::pickle::{encode, parse, torch_file};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { expanded_bytes: 64 << 20, ..Limits::default() };
    if torch_file::parse(data, &limits).is_ok() {
        let value = torch_file::value(data, &limits).expect("tensors come from a value");
        let written = encode(&value);
        let again = parse(&written, &Limits::default()).expect("what was written can be read");
        assert_eq!(encode(&again), written);
    }
});
