//! PNG, 8 and 16 bit.

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Encoder, EncodingError};

use super::{check_claim, check_exif, check_plain, interleave, planes, transparent, unpack, unsupported};
use crate::geometry::Geometry;
use crate::limits::{Limits, check_left, memory_of};
use crate::problem::{Problem, catch_panic, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// Bytes of the longest row: a million pixels with four samples of 16 bit.
const ROW_BYTES: u64 = 8_000_000;
/// Deflate never expands by more than this (RFC 1951: 258 bytes from 2 bits).
const DEFLATE_RATIO: u64 = 1032;

/// Reads a PNG file: gray as `[1, 1, h, w]`, color as `[3, 1, h, w]`, in `u8` or, of 16 bit, in `u16`.
///
/// Samples keep their stored values: gray of 1, 2 or 4 bit is 0 … 1, 3 or 15 and not stretched to 255. A picture
/// with a palette has its colors: gray if all colors of the palette are. Opacity is dropped
/// where all pixels are opaque; other transparent pictures are refused, as are animations and pictures that ask
/// to be turned. All checksums are verified, also of unused chunks; bytes after the last chunk are ignored.
pub fn parse_png(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    catch_panic("the PNG file", || match read(bytes, limits, false)? {
        (image, None) => Ok(image),
        (indices, Some(palette)) => palette.colors_of(&indices, limits),
    })
}

/// Reads a PNG file as a label map: like [`parse_png`], but a picture with a palette has its indices, and opacity is one
/// more channel where not all pixels are opaque, for masks that are drawn with it.
pub fn parse_png_labels(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let read = |keep_opacity| catch_panic("the PNG file", || Ok(read(bytes, limits, keep_opacity)?.0));
    match read(false) {
        Err(Problem::Unsupported { .. }) => read(true),
        other => other,
    }
}

/// The colors of a picture that stores indices.
struct Palette {
    /// Red, green and blue.
    colors: Vec<[u8; 3]>,
    /// The opacity of the first colors; the others are opaque.
    opacity: Vec<u8>,
}

impl Palette {
    /// Returns the picture with one channel if all colors are gray, and three otherwise.
    fn colors_of(&self, indices: &Image, limits: &Limits) -> Result<Image, Problem> {
        let is_gray = self.colors.iter().all(|[red, green, blue]| red == green && green == blue);
        let [_, d, h, w] = indices.shape;
        let shape = [if is_gray { 1 } else { 3 }, d, h, w];
        let values = limits.check_values(&shape)? as u64;
        // The indices are there twice.
        check_left(memory_of(values, 1) + 2 * indices.voxels.len() as u64)?;
        let indices = indices.voxels.to_le_bytes();
        let most = usize::from(indices.iter().copied().max().unwrap_or(0));
        if most >= self.colors.len() {
            let (found, allowed) = (format!("{most} of {}", self.colors.len()), "one that the palette has");
            return Err(refused("the number of a color", found, allowed, "export the picture again"));
        }
        let is_opaque =
            |index: &u8| self.opacity.get(usize::from(*index)).is_none_or(|&alpha| alpha == u8::MAX);
        if !indices.iter().all(is_opaque) {
            return Err(transparent());
        }
        let mut voxels = Vec::with_capacity(values as usize);
        for channel in 0..shape[0] {
            voxels.extend(indices.iter().map(|&index| self.colors[usize::from(index)][channel]));
        }
        Image::new(Voxels::U8(voxels), shape, Geometry::default(), limits)
    }
}

/// Reads samples as they are stored, and the palette where they are indices.
fn read(bytes: &[u8], limits: &Limits, keep_opacity: bool) -> Result<(Image, Option<Palette>), Problem> {
    let mut options = DecodeOptions::default();
    options.set_ignore_checksums(false);
    options.set_skip_ancillary_crc_failures(false);
    // They may be compressed, and are not expanded.
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    let most = limits.header_bytes.saturating_add(ROW_BYTES);
    decoder.set_limits(png::Limits { bytes: most.try_into().unwrap_or(usize::MAX) });
    let mut reader = decoder.read_info().map_err(damaged)?;
    let info = reader.info().clone();
    let [h, w] = [info.height, info.width].map(|side| side as usize);
    let (channels, samples) = match info.color_type {
        ColorType::Grayscale | ColorType::Indexed => (1, 1),
        ColorType::GrayscaleAlpha => (1, 2),
        ColorType::Rgb => (3, 3),
        ColorType::Rgba => (3, 4),
    };
    let channels = if keep_opacity { samples } else { channels };
    let shape = [channels, 1, h, w];
    let kind = if info.bit_depth == BitDepth::Sixteen { VoxelType::U16 } else { VoxelType::U8 };
    let stored = bytes.len() as u64;
    let memory = memory_of(limits.check_values(&shape)? as u64, kind.bytes());
    check_claim([h, w], info.raw_bytes() as u64 / DEFLATE_RATIO, stored)?;
    if info.animation_control.is_some() {
        return Err(unsupported("an animated PNG", "save the frame that is meant as a picture of its own"));
    }
    let size = reader.output_buffer_size().ok_or_else(|| damaged(DecodingError::LimitsExceeded))?;
    check_left(memory)?;
    let mut pixels = vec![0; size];
    reader.next_frame(&mut pixels).map_err(damaged)?;
    reader.finish().map_err(damaged)?;
    reader.info().exif_metadata.as_deref().map_or(Ok(()), check_exif)?;
    if (info.bit_depth as usize) < 8 {
        pixels = unpack(&pixels, info.bit_depth as usize, w);
    }
    // In a picture with a palette the table says how opaque the colors are; the indices do not change.
    let key = info.trns.as_deref().filter(|_| info.color_type != ColorType::Indexed);
    if key.is_some_and(|key| pixels.chunks_exact(samples * kind.bytes()).any(|pixel| pixel == key)) {
        return Err(transparent());
    }
    let voxels = match (kind, planes(pixels, channels, samples, kind.bytes())?) {
        (VoxelType::U8, values) => Voxels::U8(values),
        (_, values) => Voxels::from_bytes(kind, &values, ByteOrder::Big),
    };
    let palette = (info.color_type == ColorType::Indexed).then(|| Palette {
        colors: info.palette.as_deref().unwrap_or_default().as_chunks().0.to_vec(),
        opacity: info.trns.as_deref().unwrap_or_default().to_vec(),
    });
    Ok((Image::new(voxels, shape, Geometry::default(), limits)?, palette))
}

fn damaged(error: DecodingError) -> Problem {
    Problem::Damaged { part: "the PNG file", reason: error.to_string() }
}

/// The bytes of a PNG file, gray or RGB, of 8 or 16 bit.
///
/// # Shapes
/// `[1, 1, h, w]` or `[3, 1, h, w]` in `u8` or `u16`, with the default geometry; others are refused.
pub fn encode_png(image: &Image) -> Result<Vec<u8>, Problem> {
    check_plain(image)?;
    let [c, _, h, w] = image.shape;
    let (depth, data) = match (&image.voxels, image.shape) {
        (Voxels::U8(values), [1 | 3, 1, ..]) => (BitDepth::Eight, interleave(values, c)),
        (Voxels::U16(values), [1 | 3, 1, ..]) => {
            (BitDepth::Sixteen, interleave(values, c).into_iter().flat_map(u16::to_be_bytes).collect())
        }
        (voxels, shape) => {
            let found = format!("{shape:?} of {:?}", voxels.kind());
            let allowed = "[1, 1, h, w] or [3, 1, h, w] of u8 or u16";
            return Err(refused("the image", found, allowed, "write slices of their own, or another format"));
        }
    };
    let part = "the PNG file to be written";
    let failed = |error: EncodingError| Problem::Damaged { part, reason: error.to_string() };
    // The encoder refuses sides of 0.
    let [height, width] = [h, w].map(|side| u32::try_from(side).unwrap_or(0));
    let mut out = vec![];
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(if c == 1 { ColorType::Grayscale } else { ColorType::Rgb });
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 3 × 1 pixels with these numbers of colors.
    fn indexed(colors: &[[u8; 3]], opacity: &[u8], numbers: [u8; 3]) -> Vec<u8> {
        let mut bytes = vec![];
        let mut encoder = Encoder::new(&mut bytes, 3, 1);
        encoder.set_color(ColorType::Indexed);
        encoder.set_palette(colors.concat());
        encoder.set_trns(opacity.to_vec());
        encoder.write_header().unwrap().write_image_data(&numbers).unwrap();
        bytes
    }

    #[test]
    fn palettes_are_colors_in_images_and_numbers_in_labels() {
        let limits = Limits::default();
        let image = |values: &[u8], channels| {
            let voxels = Voxels::U8(values.to_vec());
            Image::new(voxels, [channels, 1, 1, 3], Geometry::default(), &limits).unwrap()
        };
        let colors = indexed(&[[1, 2, 3], [40, 50, 60]], &[], [1, 0, 1]);
        assert_eq!(parse_png(&colors, &limits).unwrap(), image(&[40, 1, 40, 50, 2, 50, 60, 3, 60], 3));
        assert_eq!(parse_png_labels(&colors, &limits).unwrap(), image(&[1, 0, 1], 1));
        let gray = indexed(&[[9; 3], [200; 3]], &[], [1, 0, 1]);
        assert_eq!(parse_png(&gray, &limits).unwrap(), image(&[200, 9, 200], 1));
        // Only colors that occur count.
        let clear = indexed(&[[9; 3], [200; 3], [7; 3]], &[255, 0], [2, 0, 2]);
        assert_eq!(parse_png(&clear, &limits).unwrap(), image(&[7, 9, 7], 1));
        let clear = indexed(&[[9; 3], [200; 3]], &[255, 0], [1, 0, 1]);
        assert!(parse_png(&clear, &limits).unwrap_err().to_string().contains("transparent pixels"));
        assert_eq!(parse_png_labels(&clear, &limits).unwrap(), image(&[1, 0, 1], 1));
        let beyond = indexed(&[[9; 3], [200; 3]], &[], [1, 0, 2]);
        let message = parse_png(&beyond, &limits).unwrap_err().to_string();
        assert!(message.contains("the number of a color is 2 of 2"), "{message}");
        assert_eq!(parse_png_labels(&beyond, &limits).unwrap(), image(&[1, 0, 2], 1));
    }
}
