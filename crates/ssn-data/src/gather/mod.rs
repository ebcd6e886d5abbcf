//! Values of a case at the places that a map names: images by linear interpolation with the border repeated, labels
//! without inventing any and with 0 outside.
//!
//! However many changes a patch undergoes, its values are interpolated once, and only for its own voxels.

mod image;
mod interleaved;
mod labels;

pub use image::gather_image;
pub use interleaved::Interleaved;
pub use labels::{LabelInterpolation, gather_labels};

use crate::grid::Grid;
use crate::map::Linear;

/// The part of a case that a patch covers before it is changed; it may reach beyond the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first voxel, `[d, h, w]`.
    pub start: [isize; 3],
    /// The number of voxels, `[d, h, w]`.
    pub size: [usize; 3],
}

impl Window {
    /// The window of `size` around a voxel; of an even size, one voxel more lies before the voxel than after it.
    pub fn around(voxel: [usize; 3], size: [usize; 3]) -> Self {
        Self { start: [0, 1, 2].map(|k| voxel[k] as isize - (size[k] / 2) as isize), size }
    }

    /// The window of `size` with the same center; sizes must differ by even numbers.
    pub fn shrunk(&self, size: [usize; 3]) -> Self {
        let start = [0, 1, 2].map(|k| self.start[k] + (self.size[k] as isize - size[k] as isize) / 2);
        Self { start, size }
    }

    /// The center, which for even sizes lies between voxels.
    pub fn center(&self) -> [f32; 3] {
        [0, 1, 2].map(|k| self.start[k] as f32 + (self.size[k] as f32 - 1.0) / 2.0)
    }
}

/// A row of voxels that are copied from voxels of a line along some axis.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// The voxel of the row's first voxel, `[d, h, w]`.
    first: [isize; 3],
    /// The axis of the line.
    axis: usize,
    /// From one voxel to the next.
    step: isize,
}

/// The lines that a map which only swaps and mirrors axes copies rows from; nothing if they fall between voxels.
#[derive(Debug, Clone, Copy)]
struct Lines {
    map: Linear,
    window: Window,
    axis: usize,
}

impl Lines {
    fn new(map: Linear, window: Window) -> Option<Self> {
        let axis = (0..3).find(|&k| map.matrix[k][2] != 0.0)?;
        let lines = Self { map, window, axis };
        lines.begin([0, 0]).iter().all(|x| x.fract() == 0.0).then_some(lines)
    }

    fn begin(&self, [z, y]: [usize; 2]) -> [f32; 3] {
        let middle = self.window.size.map(|n| (n as f32 - 1.0) / 2.0);
        let from = self.map.at([z as f32 - middle[0], y as f32 - middle[1], -middle[2]]);
        let center = self.window.center();
        [0, 1, 2].map(|k| from[k] + center[k])
    }

    /// The line of row `[z, y]` of a grid.
    fn line(&self, grid: &Grid, [z, y]: [usize; 2]) -> Line {
        let row = [grid.start[0] + grid.step[0] * z, grid.start[1] + grid.step[1] * y];
        let mut first = self.begin(row).map(|x| x as isize);
        let step = self.map.matrix[self.axis][2] as isize;
        first[self.axis] += step * grid.start[2] as isize;
        Line { first, axis: self.axis, step: step * grid.step[2] as isize }
    }
}

/// 2²³: a binary32 number from there on has no fraction.
const NO_FRACTION: f32 = 8_388_608.0;

/// The whole part of a number from 0 up to 2²², as an integer and as it is.
///
/// A cast would do the same, but checks every number for being too large, which keeps it out of vector instructions.
#[inline(always)]
fn whole(x: f32) -> (i32, f32) {
    let nearest = (x + NO_FRACTION) - NO_FRACTION;
    let floor = if nearest > x { nearest - 1.0 } else { nearest };
    ((floor + NO_FRACTION).to_bits().wrapping_sub(NO_FRACTION.to_bits()) as i32, floor)
}

/// The nearest number in 0 … `high`; 0 for what is no number.
#[inline(always)]
fn limited(x: f32, high: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    if positive < high { positive } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_are_those_of_a_cast() {
        for i in 0..400_000 {
            for x in [i as f32 * 0.013, i as f32 * 0.25, (i as f32 + 1.0).next_down()] {
                assert_eq!(whole(x), (x as i32, x.floor()));
            }
        }
        assert_eq!([limited(-1.0, 5.0), limited(f32::NAN, 5.0), limited(9.0, 5.0)], [0.0, 0.0, 5.0]);
    }
}
