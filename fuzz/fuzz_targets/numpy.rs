//! NumPy arrays and archives: no bytes panic, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssn_volume::numpy::{encode_npy, encode_npz, parse_npy, parse_npz};
use ssn_volume::{Array, Limits};

fn same(first: &Array, second: &Array) {
    assert_eq!(first.shape, second.shape);
    assert_eq!(first.voxels.kind(), second.voxels.kind());
    // As bytes, for a value that is not a number differs from itself.
    assert_eq!(first.voxels.to_le_bytes(), second.voxels.to_le_bytes());
}

fuzz_target!(|data: &[u8]| {
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(array) = parse_npy(data, &limits) {
        let bytes = encode_npy(&array).expect("what was read can be written");
        same(&array, &parse_npy(&bytes, &limits).expect("what was written can be read"));
    }
    if let Ok(arrays) = parse_npz(data, &limits) {
        let members = arrays.iter().map(|(name, array)| (name.as_str(), array));
        let bytes = encode_npz(members).expect("what was read can be written");
        let again = parse_npz(&bytes, &limits).expect("what was written can be read");
        assert_eq!(arrays.len(), again.len());
        for ((name, array), (name_again, array_again)) in arrays.iter().zip(&again) {
            assert_eq!(name, name_again);
            same(array, array_again);
        }
    }
});
