//! Writing PNG.

use png::{BitDepth, ColorType, Encoder, EncodingError};

use super::super::{check_plain, field};
use crate::error::Problem;
use crate::volume::Image;
use crate::voxels::Voxels;

/// The bytes of a PNG file, grey or RGB, of 8 or 16 bit.
///
/// # Shapes
/// `[1, 1, h, w]` or `[3, 1, h, w]` in `u8` or `u16`, with the default geometry; others are refused.
pub fn encode_png(image: &Image) -> Result<Vec<u8>, Problem> {
    check_plain(image)?;
    let [c, d, h, w] = image.shape;
    let color = match (c, d) {
        (1, 1) => ColorType::Grayscale,
        (3, 1) => ColorType::Rgb,
        _ => {
            let found = format!("{:?}", image.shape);
            let advice = "write slices of their own, or another format";
            return Err(field("the shape", found, "[1, 1, h, w] or [3, 1, h, w]", advice));
        }
    };
    let (depth, data) = match &image.voxels {
        Voxels::U8(values) => (BitDepth::Eight, interleave(values, c, |x| [x])),
        Voxels::U16(values) => (BitDepth::Sixteen, interleave(values, c, u16::to_be_bytes)),
        other => {
            let found = format!("{:?}", other.kind());
            return Err(field("the type of the values", found, "u8 or u16", "write another format"));
        }
    };
    let side = |n: usize| {
        u32::try_from(n)
            .map_err(|_| field("the size of the picture", n, "at most 2³¹ - 1", "write it in parts"))
    };
    let mut out = vec![];
    let mut encoder = Encoder::new(&mut out, side(w)?, side(h)?);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

/// Planes of channels as pixels, each sample in bytes.
pub(crate) fn interleave<T: Copy, const N: usize>(
    values: &[T],
    channels: usize,
    bytes: impl Fn(T) -> [u8; N],
) -> Vec<u8> {
    if channels == 1 {
        return values.iter().flat_map(|&value| bytes(value)).collect();
    }
    let pixels = values.len() / channels;
    let mut out = Vec::with_capacity(values.len() * N);
    for pixel in 0..pixels {
        for channel in 0..channels {
            out.extend(bytes(values[channel * pixels + pixel]));
        }
    }
    out
}

fn failed(error: EncodingError) -> Problem {
    Problem::Damaged { part: "the PNG file to be written", reason: error.to_string() }
}
