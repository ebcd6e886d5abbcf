//! Small files that expand to gigabytes, and little memory: a sentence and an exit code, at every limit.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use ssn_io::{Geometry, Image, Limits, Voxels, nifti};
use tempfile::TempDir;

use crate::common::{picture, told};

/// Bytes of the data of each file.
const LARGE: usize = 400_000_000;

fn write_zeros(out: &mut impl Write, count: usize) {
    let block = vec![0; 1 << 20];
    for start in (0..count).step_by(block.len()) {
        out.write_all(&block[..block.len().min(count - start)]).unwrap();
    }
}

/// A volume of 1000 × 1000 × 400 zeros.
fn volume(path: &Path) {
    let image =
        Image::new(Voxels::U8(vec![0]), [1, 1, 1, 1], Geometry::default(), &Limits::default()).unwrap();
    let mut header = nifti::encode(&image, nifti::Version::One).unwrap();
    header.pop();
    for (place, side) in [3i16, 1000, 1000, 400].into_iter().enumerate() {
        header[40 + 2 * place..42 + 2 * place].copy_from_slice(&side.to_le_bytes());
    }
    let mut out = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    out.write_all(&header).unwrap();
    write_zeros(&mut out, LARGE);
    out.finish().unwrap();
}

/// A picture of 20000 × 20000.
fn large_picture(path: &Path) {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path).unwrap()), 20_000, 20_000);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_compression(png::Compression::Fastest);
    let mut writer = encoder.write_header().unwrap();
    let mut out = writer.stream_writer().unwrap();
    write_zeros(&mut out, LARGE);
    out.finish().unwrap();
}

/// A pickle of one object of bytes.
fn pickle(path: &Path) {
    let mut out = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    out.write_all(b"\x80\x04\x8e").unwrap();
    out.write_all(&(LARGE as u64).to_le_bytes()).unwrap();
    write_zeros(&mut out, LARGE);
    out.write_all(b".").unwrap();
    out.finish().unwrap();
}

/// Runs `ssn` with so many KB of address space.
fn limited(folder: &TempDir, kilobytes: usize, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kilobytes.to_string(), env!("CARGO_BIN_EXE_ssn")])
        .args(arguments)
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[test]
fn files_beyond_the_memory_end_in_a_sentence_at_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("seg.png"), |i| u8::from(i < 9));
    volume(&at("a.nii.gz"));
    large_picture(&at("a.png"));
    for name in ["a.nii.gz", "a.png"] {
        std::fs::write(
            at(&format!("{name}.csv")),
            format!("id,image,seg\na,{name},seg.png\nb,seg.png,{name}\n"),
        )
        .unwrap();
    }
    pickle(&at("a.pickle.gz"));
    for dataset in ["a.nii.gz.csv", "a.png.csv", "a.pickle.gz"] {
        let size = at(dataset.trim_end_matches(".csv")).metadata().unwrap().len();
        assert!(size < 4_000_000, "{dataset}: {size} bytes");
        let mut refused = 0;
        for kilobytes in [80_000, 150_000, 300_000, 600_000, 1_200_000, 2_500_000] {
            let output = limited(&folder, kilobytes, &["check", dataset]);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 1 | 65 | 74 | 77)),
                "{dataset}, {kilobytes} KB: {:?} {output:?}",
                output.status
            );
            let told = told(&output);
            assert!(!told.contains("panicked"), "{dataset}, {kilobytes} KB: {told}");
            assert!(told.lines().count() > 1, "{dataset}, {kilobytes} KB: {told}");
            refused += usize::from(told.contains("MB of memory, but") || code == Some(77));
        }
        assert!(refused >= 3, "{dataset}: {refused}");
    }
}
