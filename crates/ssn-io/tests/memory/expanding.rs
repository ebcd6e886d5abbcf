//! Valid files of at most 1 MB that expand as much as their format allows.

mod archives;
mod dicom;
mod jpeg;
mod pickles;
mod pictures;
mod volumes;

use std::io::Write;

use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use ssn_io::{ByteOrder, Geometry, Image, Limits, VoxelType, Voxels};

/// 1 MB, on the generous side.
pub const SIZE: usize = 1 << 20;
/// Bytes of values that are far beyond the limits.
const MUCH: usize = 20 << 20;

/// What becomes of a file: a part of what the reader says.
const READ: &str = "read";
const MEMORY: &str = "`memory_ratio`";
const ANY: &str = "";

/// A file, and what becomes of it.
pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
    pub outcome: &'static str,
}

/// Files for each reader and each way to expand.
pub fn cases() -> Vec<Case> {
    let mut cases = volumes::cases();
    cases.extend(pictures::cases());
    cases.extend(jpeg::cases());
    cases.extend(archives::cases());
    cases.extend(dicom::cases());
    cases.extend(pickles::cases());
    cases
}

fn case(name: impl Into<String>, bytes: Vec<u8>, outcome: &'static str) -> Case {
    Case { name: name.into(), bytes, outcome }
}

/// About as many bytes of zeros as a file of 1 MB may hold where each costs so much memory.
fn most(memory_per_byte: usize) -> usize {
    Limits::untrusted().memory(SIZE as u64) as usize / memory_per_byte / 100 * 95
}

/// The same for an image with values of a type: the values, their bytes, and a copy in single precision.
fn most_of(kind: VoxelType) -> usize {
    most(2 * kind.bytes() + 4) * kind.bytes()
}

/// An image of zeros.
fn zeros(kind: VoxelType, bytes: usize, channels: usize) -> Image {
    const WIDTH: usize = 4096;
    let height = bytes / kind.bytes() / channels / WIDTH;
    let bytes = vec![0; kind.bytes() * channels * height * WIDTH];
    let voxels = Voxels::from_bytes(kind, &bytes, ByteOrder::Little);
    Image::new(voxels, [channels, 1, height, WIDTH], Geometry::default(), &Limits::default()).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Empty members of gzip with long extra fields: the more bytes on disk, the more a file may cost.
fn longer_gzip(gzip: &[u8], length: usize) -> Vec<u8> {
    let member = GzBuilder::new().extra(vec![0; 60_000]).write(vec![], Compression::fast()).finish().unwrap();
    [&member.repeat((length - gzip.len()) / member.len()), gzip].concat()
}

/// The same for zlib, with empty blocks.
fn longer_zlib(zlib: &[u8], length: usize) -> Vec<u8> {
    const EMPTY: [u8; 5] = [0, 0, 0, 0xff, 0xff];
    [&zlib[..2], &EMPTY.repeat((length - zlib.len()) / EMPTY.len()), &zlib[2..]].concat()
}
