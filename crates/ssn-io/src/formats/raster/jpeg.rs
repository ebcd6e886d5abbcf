//! JPEG, which is only read: it changes values, so nothing is written with it.

use std::io::Read;

use jpeg_decoder::{CodingProcess, ColorTransform, Decoder, Error, PixelFormat};

use super::{check_claim, check_exif, planes, unsupported};
use crate::geometry::Geometry;
use crate::limits::{Limits, check_left, memory_of};
use crate::problem::{Problem, catch_panic, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// Scans of a file. Encoders write about ten; each one visits every block.
const MOST_SCANS: usize = 100;
/// Samples that a byte can stand for: each block of 8 × 8 takes at least one bit.
const SAMPLES_PER_BYTE: u64 = 8 * 64;
/// Bits that are all 1, put before the end of the picture. No Huffman code consists of them (T.81, annex C), so
/// that a decoder which runs out of data fails there; beyond the end it would read zeros, which are gray.
const ONES: [u8; 16] = [0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0];

/// Reads a JPEG file: gray as `[1, 1, h, w]`, color as RGB in `[3, 1, h, w]`, both `u8`.
///
/// Baseline and progressive files with Huffman codes and 8 bit. Refused are also pictures that ask to be turned,
/// and files whose colors can only be guessed. Bytes after the end of the picture are ignored.
///
/// JPEG has no checksums. Data that are cut off are refused, but a changed byte may go unnoticed. Decoders round
/// differently: gray values differ from libjpeg's by at most 1, most colors by at most 3.
pub fn parse_jpeg(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    parse_jpeg_of(bytes, false, limits)
}

/// The same, of DICOM files also `lossless` ones in gray, whose values of more than 8 bit are `u16`.
pub(crate) fn parse_jpeg_of(bytes: &[u8], lossless: bool, limits: &Limits) -> Result<Image, Problem> {
    let stored = bytes.len() as u64;
    limits.check_file_bytes(stored)?;
    if !bytes.starts_with(&[0xff, 0xd8]) {
        let start = format!("{:02x?}", &bytes[..bytes.len().min(2)]);
        return Err(refused("the start of the file", start, "ff d8", "this is not a JPEG file"));
    }
    catch_panic("the JPEG file", || {
        let (end, transform) = walk(bytes)?;
        let (data, end) = bytes.split_at(end);
        let mut decoder = Decoder::new(data.chain(&ONES[..]).chain(end));
        decoder.set_color_transform(transform);
        decoder.read_info().map_err(failed)?;
        let info = decoder.info().ok_or_else(|| damaged("there is no picture in it"))?;
        let (channels, kind) = match (info.pixel_format, info.coding_process) {
            (PixelFormat::L8, CodingProcess::DctSequential | CodingProcess::DctProgressive) => {
                (1, VoxelType::U8)
            }
            (PixelFormat::L8, CodingProcess::Lossless) if lossless => (1, VoxelType::U8),
            (PixelFormat::L16, CodingProcess::Lossless) if lossless => (1, VoxelType::U16),
            (PixelFormat::RGB24, CodingProcess::DctSequential | CodingProcess::DctProgressive) => {
                (3, VoxelType::U8)
            }
            (PixelFormat::CMYK32, _) => {
                return Err(unsupported("a JPEG in CMYK colors", "save it in gray or RGB"));
            }
            (format, process) => {
                let what = format!("a JPEG of {format:?}, {process:?},");
                return Err(unsupported(what, "save the picture in gray or RGB of 8 bit"));
            }
        };
        let [h, w] = [info.height, info.width].map(usize::from);
        let values = limits.check_values(&[channels, h, w])? as u64;
        check_claim([h, w], (h * w) as u64 / SAMPLES_PER_BYTE, stored)?;
        check_left(memory_of(values, kind.bytes()))?;
        let values = planes(decoder.decode().map_err(failed)?, channels, channels, kind.bytes())?;
        // The decoder gives 16 bits in the order of the machine.
        let voxels = Voxels::from_bytes(kind, &values, ByteOrder::Little);
        Image::new(voxels, [channels, 1, h, w], Geometry::default(), limits)
    })
}

/// Walks the segments (T.81, annex B) to the end of the picture, which must be there with all of its scans; returns
/// where it is, and what the components mean. The decoder would render what there is of a progressive picture, and
/// guesses colors in another order than libjpeg (`default_decompress_parms`).
fn walk(bytes: &[u8]) -> Result<(usize, ColorTransform), Problem> {
    let (mut at, mut scans, mut jfif, mut adobe, mut progressive) = (2, 0, false, None, false);
    // Each component's identifier with the lowest known bit of its coefficients.
    let mut known: Vec<(u8, [Option<u8>; 64])> = vec![];
    loop {
        let (marker, content, next) = segment(bytes, at)?;
        match marker {
            0xd9 => break,
            0xc0..=0xc2 if known.is_empty() => {
                progressive = marker == 0xc2;
                let components = content.get(6..).unwrap_or_default();
                known.extend(components.chunks(3).map(|component| (component[0], [None; 64])));
            }
            0xda => {
                let &[ref ids @ .., first, last, bits] = content.get(1..).unwrap_or_default() else {
                    return Err(damaged("a scan header is too short"));
                };
                let (band, bit) =
                    if progressive { (first.into()..=last.into(), bits & 15) } else { (0..=63, 0) };
                for (id, known) in &mut known {
                    if ids.chunks(2).any(|component| component[0] == *id) {
                        known.get_mut(band.clone()).unwrap_or_default().fill(Some(bit));
                    }
                }
                scans += 1;
            }
            0xe0 => jfif |= content.starts_with(b"JFIF\0"),
            0xe1 => content.strip_prefix(b"Exif\0\0").map_or(Ok(()), check_exif)?,
            0xee if content.starts_with(b"Adobe") => adobe = content.get(11),
            _ => {}
        }
        if scans > MOST_SCANS {
            return Err(unsupported("a JPEG of more than 100 scans", "save the picture as PNG"));
        }
        at = if marker == 0xda { end_of_scan(bytes, next) } else { next };
    }
    if scans > 0 && known.iter().any(|(_, known)| *known != [Some(0); 64]) {
        return Err(damaged("the picture is not complete: some scans are missing"));
    }
    let ids: Vec<u8> = known.iter().map(|(id, _)| *id).collect();
    let transform = match (&ids[..], jfif, adobe) {
        (_, true, _) | (_, _, Some(1)) | ([1, 2, 3], _, None) => ColorTransform::YCbCr,
        (_, _, Some(0)) | (b"RGB", _, None) => ColorTransform::RGB,
        ([_, _, _], ..) => {
            return Err(unsupported("a JPEG that does not say what its colors are", "save it as PNG"));
        }
        _ => ColorTransform::None,
    };
    Ok((at, transform))
}

/// The marker at a place, the content of its segment, and where that ends. Any number of bytes 255 may stand
/// before the marker.
fn segment(bytes: &[u8], at: usize) -> Result<(u8, &[u8], usize), Problem> {
    let rest = bytes.get(at..).unwrap_or_default();
    let fill = rest.iter().position(|&byte| byte != 0xff);
    let missing = if fill.is_some() { "a marker is missing" } else { "its end marker is missing" };
    let Some(fill @ 1..) = fill else { return Err(damaged(missing)) };
    let (marker, rest) = (rest[fill], &rest[fill + 1..]);
    let length = rest.first_chunk().map_or(0, |&length| usize::from(u16::from_be_bytes(length)));
    match rest.get(2..length) {
        Some(content) => Ok((marker, content, at + fill + 1 + length)),
        None if marker == 0xd9 => Ok((marker, &[], bytes.len())),
        None => Err(damaged("a segment is cut off")),
    }
}

/// Where the data of a scan end: at the next marker that is neither a byte 255 of the data nor a restart.
fn end_of_scan(bytes: &[u8], start: usize) -> usize {
    let marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7);
    bytes[start..].windows(2).position(marker).map_or(bytes.len(), |end| start + end)
}

fn failed(error: Error) -> Problem {
    match error {
        Error::Unsupported(what) => unsupported(format!("{what:?} in a JPEG"), "save the picture as PNG"),
        error => damaged(error.to_string()),
    }
}

fn damaged(reason: impl Into<String>) -> Problem {
    Problem::Damaged { part: "the JPEG file", reason: reason.into() }
}
