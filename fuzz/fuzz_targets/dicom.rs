//! DICOM: no bytes make the reader of a slice panic, and what it reads has the shape that it says.
#![no_main]

mod foreign;

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ssn_io::{Limits, dicom};

/// The reader takes a file, part by part.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fuzz-{}.dcm", std::process::id())));

fuzz_target!(init: foreign::report_panics(), |data: &[u8]| {
    std::fs::write(&*FILE, data).expect("a file can be written");
    let limits = Limits { values: 1 << 24, ..Limits::default() };
    if let Ok(image) = dicom::read_file(&FILE, &limits) {
        assert_eq!(image.voxels.len(), image.shape.iter().product::<usize>());
    }
});
