//! Reading PNG.

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Info, Reader, Transformations};

use super::super::canvas::{Canvas, not_opaque};
use super::super::{MAX_SIDE, check_sides, exif, field, unsupported};
use super::data;
use crate::error::Problem;
use crate::gzip::must_be_proven;
use crate::limits::{Limits, memory_of};
use crate::volume::Image;
use crate::voxels::{ByteOrder, VoxelType};

/// Bytes of the longest row: four samples of 16 bit for each pixel.
const ROW_BYTES: u64 = 8 * MAX_SIDE;
/// Deflate never expands by more than this (RFC 1951: 258 bytes from 2 bits).
const DEFLATE_RATIO: u64 = 1032;
/// Rows that there is memory for at once, beside the picture: those of the decoder, and one of unpacked samples.
const ROWS_HELD: usize = 4;
/// First column and row, and steps, of the seven passes of an interlaced picture (PNG specification, 8.2).
const PASSES: [Pass; 7] = [
    ([0, 0], [8, 8]),
    ([4, 0], [8, 8]),
    ([0, 4], [4, 8]),
    ([2, 0], [4, 4]),
    ([0, 2], [2, 4]),
    ([1, 0], [2, 2]),
    ([0, 1], [1, 2]),
];

type Pass = ([usize; 2], [usize; 2]);
type PngReader<'a> = Reader<Cursor<&'a [u8]>>;

/// Reads a PNG file: grey as `[1, 1, h, w]`, colour as `[3, 1, h, w]`, in `u8` or, of 16 bit, in `u16`.
///
/// Samples keep their stored values: grey of 1, 2 or 4 bit is 0 … 1, 3 or 15 and not stretched to 255, and of
/// a picture with a palette the *indices* are read, which in a label map are the labels. Opacity is dropped
/// where all pixels are opaque; other pictures with transparency are refused, as are animations and pictures
/// that ask to be turned. The check sums of all chunks, also of those that are not used, and of the
/// compressed data are verified; bytes after the last chunk are ignored.
pub fn parse_png(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let reader = open(bytes, limits)?;
    let plan = Plan::new(reader.info(), bytes.len() as u64, limits)?;
    data::verify(bytes, plan.raw_bytes())?;
    if must_be_proven(plan.expanded, bytes.len() as u64) {
        fill(reader, &plan, false)?;
        return fill(open(bytes, limits)?, &plan, true)?.finish(plan.kind, ByteOrder::Big, limits);
    }
    fill(reader, &plan, true)?.finish(plan.kind, ByteOrder::Big, limits)
}

/// What the header says about the picture.
struct Plan {
    /// `[c, d, h, w]`.
    shape: [usize; 4],
    kind: VoxelType,
    /// Bits of a sample.
    bits: usize,
    /// Samples of a pixel.
    samples: usize,
    alpha: bool,
    interlaced: bool,
    /// The colour that counts as transparent, as the bytes of its samples.
    key: Option<Vec<u8>>,
    /// Bytes of all rows.
    expanded: u64,
}

impl Plan {
    fn new(info: &Info<'_>, stored: u64, limits: &Limits) -> Result<Self, Problem> {
        let [h, w] = check_sides(info.width.into(), info.height.into())?;
        let (channels, alpha) = match info.color_type {
            ColorType::Grayscale | ColorType::Indexed => (1, false),
            ColorType::GrayscaleAlpha => (1, true),
            ColorType::Rgb => (3, false),
            ColorType::Rgba => (3, true),
        };
        let shape = [channels, 1, h, w];
        let values = limits.check_values(&shape)? as u64;
        let kind = if info.bit_depth == BitDepth::Sixteen { VoxelType::U16 } else { VoxelType::U8 };
        let samples = channels + usize::from(alpha);
        let row = w * samples * kind.bytes();
        limits.check_memory(memory_of(values, kind.bytes()) + (ROWS_HELD * row) as u64, stored)?;
        let expanded = (h * row) as u64;
        if info.raw_bytes() as u64 / DEFLATE_RATIO > stored {
            return Err(field(
                "the size of the picture",
                format!("{w} × {h} pixels in a file of {stored} bytes"),
                "what the file can hold",
                "the file is cut off or damaged: copy it again",
            ));
        }
        if info.animation_control.is_some() {
            return Err(unsupported(
                "an animated PNG",
                "save the frame that is meant as a picture of its own",
            ));
        }
        if let Some(data) = &info.exif_metadata {
            exif::check_upright(data)?;
        }
        // In a picture with a palette the table says how opaque the colours are; the indices do not change.
        let key = info.trns.as_ref().filter(|_| info.color_type != ColorType::Indexed);
        Ok(Self {
            shape,
            kind,
            bits: info.bit_depth as usize,
            samples,
            alpha,
            interlaced: info.interlaced,
            key: key.map(|key| key.to_vec()),
            expanded,
        })
    }
}

impl Plan {
    fn passes(&self) -> &'static [Pass] {
        if self.interlaced { &PASSES } else { &[([0, 0], [1, 1])] }
    }

    /// Bytes of all rows as they are compressed: each with a byte for its filter, and with packed samples.
    fn raw_bytes(&self) -> u64 {
        let [_, _, h, w] = self.shape;
        let pass = |&([x0, y0], [step_x, step_y]): &Pass| {
            let pixels = w.saturating_sub(x0).div_ceil(step_x);
            let rows = if pixels == 0 { 0 } else { h.saturating_sub(y0).div_ceil(step_y) };
            (rows * (1 + (pixels * self.samples * self.bits).div_ceil(8))) as u64
        };
        self.passes().iter().map(pass).sum()
    }
}

fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<PngReader<'a>, Problem> {
    let mut options = DecodeOptions::default();
    options.set_ignore_checksums(false);
    options.set_skip_ancillary_crc_failures(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    let decoder_bytes = limits.header_bytes.saturating_add(ROW_BYTES);
    decoder.set_limits(png::Limits { bytes: decoder_bytes.try_into().unwrap_or(usize::MAX) });
    decoder.set_transformations(Transformations::IDENTITY);
    let info = decoder.read_header_info().map_err(damaged)?;
    check_sides(info.width.into(), info.height.into())?;
    decoder.read_info().map_err(|error| match error {
        DecodingError::LimitsExceeded => Problem::Limit {
            what: "the memory for the chunks before the picture",
            found: decoder_bytes,
            limit: limits.header_bytes,
            name: "header_bytes",
        },
        error => damaged(error),
    })
}

/// Reads all rows, and the file to its last chunk.
fn fill(mut reader: PngReader<'_>, plan: &Plan, keep: bool) -> Result<Canvas, Problem> {
    let mut canvas = Canvas::new(plan.shape, plan.kind.bytes(), plan.alpha, keep);
    let [_, _, h, w] = plan.shape;
    let mut unpacked = vec![];
    for &([x0, y0], [step_x, step_y]) in plan.passes() {
        let pixels = w.saturating_sub(x0).div_ceil(step_x);
        if pixels == 0 {
            continue;
        }
        for y in (y0..h).step_by(step_y) {
            let missing = || Problem::Damaged { part: "the picture", reason: "rows are missing".into() };
            let row = reader.next_row().map_err(damaged)?.ok_or_else(missing)?;
            let row = if plan.bits < 8 {
                unpack(row.data(), plan.bits, pixels, &mut unpacked);
                &unpacked
            } else {
                row.data()
            };
            let pixel = plan.samples * plan.kind.bytes();
            if let Some(key) = &plan.key
                && row.chunks_exact(pixel).any(|p| p == key)
            {
                return Err(not_opaque());
            }
            canvas.put_pixels([0, y, x0], step_x, row)?;
        }
    }
    reader.finish().map_err(damaged)?;
    Ok(canvas)
}

/// Samples of fewer than 8 bit, the first in the highest bits, one per byte.
fn unpack(row: &[u8], bits: usize, pixels: usize, out: &mut Vec<u8>) {
    let mask = u8::MAX >> (8 - bits);
    out.clear();
    let samples = row.iter().flat_map(|&byte| (0..8 / bits).rev().map(move |i| byte >> (i * bits) & mask));
    out.extend(samples.take(pixels));
}

fn damaged(error: DecodingError) -> Problem {
    Problem::Damaged { part: "the PNG file", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_unpacked_from_the_top() {
        let mut out = vec![];
        unpack(&[0b1010_0000, 0b1000_0000], 1, 9, &mut out);
        assert_eq!(out, [1, 0, 1, 0, 0, 0, 0, 0, 1]);
        unpack(&[0b1101_1000], 2, 3, &mut out);
        assert_eq!(out, [3, 1, 2]);
        unpack(&[0x5f], 4, 2, &mut out);
        assert_eq!(out, [5, 15]);
    }
}
