//! Pickles: whatever the bytes are, the reader neither panics nor hangs, nor does making the arrays in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_io::Limits;
use ssn_io::pickle::{Value, parse};

fuzz_target!(|data: &[u8]| {
    // Small, so that inputs which expand to megabytes do not slow the search down.
    let limits = Limits { expanded_bytes: 1 << 16, objects: 20_000, values: 1 << 16, ..Limits::default() };
    if let Ok(pickle) = parse(data, &limits) {
        look(pickle.root(), 3);
    }
});

fn look(value: Value<'_>, depth: usize) {
    let _ = (value.kind(), value.as_text(), value.as_size(), value.get("image"), value.array());
    if depth > 0 {
        value.items().into_iter().flatten().take(20).for_each(|item| look(item, depth - 1));
        let entries = value.entries().ok().flatten().unwrap_or_default();
        entries.into_iter().take(20).for_each(|(_, value)| look(value, depth - 1));
    }
}
