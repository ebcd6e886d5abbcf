//! Pickles: whatever the bytes are, the reader neither panics nor hangs, and what it reads goes round.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_volume::Limits;
use ssn_volume::pickle::{encode, parse};

fuzz_target!(|data: &[u8]| {
    // Small, so that inputs which expand to megabytes do not slow the search down.
    let limits = Limits { expanded_bytes: 1 << 16, objects: 20_000, ..Limits::default() };
    if let Ok(value) = parse(data, &limits) {
        // Compared as bytes: numbers that are not a number equal nothing.
        let written = encode(&value);
        let again = parse(&written, &Limits::default()).expect("what was written can be read");
        assert_eq!(encode(&again), written);
        let _ = format!("{value:?}");
    }
});
