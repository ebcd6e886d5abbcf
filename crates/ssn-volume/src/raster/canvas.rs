//! Samples on their way from the rows of a file to `[c, d, h, w]`.

use super::unsupported;
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::volume::Image;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// The memory of a picture while it is filled. Where it only has to be proven that a file is right, nothing
/// is kept.
pub(super) struct Canvas {
    bytes: Vec<u8>,
    shape: [usize; 4],
    /// Bytes of a sample.
    size: usize,
    /// Whether pixels have one sample more than there are channels: their opacity.
    alpha: bool,
    keep: bool,
}

impl Canvas {
    /// Memory for a picture, or none if it is not to be kept.
    pub fn new(shape: [usize; 4], size: usize, alpha: bool, keep: bool) -> Self {
        let values: usize = shape.iter().product();
        let bytes = if keep { vec![0; values * size] } else { vec![] };
        Self { bytes, shape, size, alpha, keep }
    }

    /// Puts pixels with all their samples side by side, from `(x, y)` of page `d` to the right, every `step`
    /// pixels; pixels beyond the width are left out.
    ///
    /// Refuses pixels that are not opaque.
    pub fn put_pixels(&mut self, [d, y, x]: [usize; 3], step: usize, row: &[u8]) -> Result<(), Problem> {
        let [channels, ..] = self.shape;
        let pixel = (channels + usize::from(self.alpha)) * self.size;
        if self.alpha {
            let colour = channels * self.size;
            if row.chunks_exact(pixel).any(|p| p[colour..].iter().any(|&b| b != u8::MAX)) {
                return Err(not_opaque());
            }
        }
        if pixel == self.size && step == 1 {
            self.put_plane(0, [d, y, x], row);
            return Ok(());
        }
        if !self.keep {
            return Ok(());
        }
        let width = self.shape[3];
        for c in 0..channels {
            let start = self.row_start(c, d, y);
            for (i, samples) in row.chunks_exact(pixel).enumerate() {
                let x = x + i * step;
                if x >= width {
                    break;
                }
                let to = start + x * self.size;
                self.bytes[to..to + self.size].copy_from_slice(&samples[c * self.size..][..self.size]);
            }
        }
        Ok(())
    }

    /// Puts samples of one channel from `(x, y)` of page `d` to the right; those beyond the width are left
    /// out.
    pub fn put_plane(&mut self, c: usize, [d, y, x]: [usize; 3], row: &[u8]) {
        if !self.keep {
            return;
        }
        let room = self.shape[3].saturating_sub(x) * self.size;
        let row = &row[..row.len().min(room)];
        let to = self.row_start(c, d, y) + x * self.size;
        self.bytes[to..to + row.len()].copy_from_slice(row);
    }

    fn row_start(&self, c: usize, d: usize, y: usize) -> usize {
        let [_, depth, height, width] = self.shape;
        ((c * depth + d) * height + y) * width * self.size
    }

    /// The image, with samples of a type in a byte order.
    pub fn finish(self, kind: VoxelType, order: ByteOrder, limits: &Limits) -> Result<Image, Problem> {
        let voxels = match kind {
            VoxelType::U8 => Voxels::U8(self.bytes),
            _ => Voxels::from_bytes(kind, &self.bytes, order),
        };
        Image::new(voxels, self.shape, Geometry::default(), limits)
    }

    /// The bytes of all samples.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The refusal of a picture through which one can see.
pub(super) fn not_opaque() -> Problem {
    unsupported(
        "a picture with transparent pixels",
        "whether they count is not known: remove the alpha channel before using the picture",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_apart() {
        let mut canvas = Canvas::new([3, 1, 1, 2], 1, true, true);
        canvas.put_pixels([0, 0, 0], 1, &[1, 2, 3, 255, 4, 5, 6, 255]).unwrap();
        assert_eq!(canvas.bytes, [1, 4, 2, 5, 3, 6]);
        let message = canvas.put_pixels([0, 0, 0], 1, &[1, 2, 3, 254]).unwrap_err().to_string();
        assert!(message.contains("transparent"), "{message}");
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut canvas = Canvas::new([1, 2, 2, 3], 2, false, true);
        canvas.put_pixels([1, 1, 2], 1, &[7, 8, 9, 9]).unwrap();
        canvas.put_pixels([1, 0, 1], 2, &[1, 2, 9, 9]).unwrap();
        assert_eq!(canvas.bytes[12..], [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 7, 8]);
    }
}
