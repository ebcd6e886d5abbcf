//! Boxes and grids of voxels, in the axis order `[d, h, w]`.

use serde::{Deserialize, Serialize};

use crate::{CoreError, Result};

/// A box of voxels of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The first voxel along d, h, w.
    pub start: [usize; 3],
    /// Voxels along d, h, w.
    pub size: [usize; 3],
}

impl Region {
    /// The whole of an image of a size `[d, h, w]`.
    pub fn whole(size: [usize; 3]) -> Self {
        Self { start: [0; 3], size }
    }

    /// The number of voxels; `usize::MAX` if it cannot be counted.
    pub fn voxels(&self) -> usize {
        voxel_count(self.size).unwrap_or(usize::MAX)
    }

    /// Where in the image the voxel with a flat index within the box lies, `[d, h, w]`.
    pub fn voxel(&self, index: usize) -> [usize; 3] {
        let [_, h, w] = self.size;
        let within = [index / (h * w), index / w % h, index % w];
        [0, 1, 2].map(|axis| within[axis] + self.start[axis])
    }

    /// The smallest box that holds all of some voxels `[d, h, w]`; nothing without one.
    pub fn around(voxels: impl IntoIterator<Item = [usize; 3]>) -> Option<Self> {
        let (mut start, mut end) = ([usize::MAX; 3], [0; 3]);
        for voxel in voxels {
            for axis in 0..3 {
                start[axis] = start[axis].min(voxel[axis]);
                end[axis] = end[axis].max(voxel[axis] + 1);
            }
        }
        (end[0] > 0).then(|| Self { start, size: [0, 1, 2].map(|axis| end[axis] - start[axis]) })
    }

    /// The box with `margin` voxels more on each side, as far as an image of a size has them.
    pub fn grown(self, margin: usize, size: [usize; 3]) -> Self {
        let start = self.start.map(|at| at.saturating_sub(margin));
        let end = [0, 1, 2].map(|axis| (self.start[axis] + self.size[axis] + margin).min(size[axis]));
        Self { start, size: [0, 1, 2].map(|axis| end[axis] - start[axis]) }
    }

    /// Whether the box lies in an image of a size `[d, h, w]`.
    pub fn lies_in(&self, size: [usize; 3]) -> bool {
        (0..3).all(|axis| {
            self.start[axis].checked_add(self.size[axis]).is_some_and(|end| end <= size[axis])
                && self.size[axis] > 0
        })
    }

    /// The values of the box out of those `[d, h, w]` of an image of a size.
    pub fn cut<T: Copy>(&self, values: &[T], size: [usize; 3]) -> Vec<T> {
        let mut cut = Vec::with_capacity(self.voxels());
        self.rows(size).for_each(|row| cut.extend_from_slice(&values[row]));
        cut
    }

    /// Where the rows along w lie in an image of a size `[d, h, w]`, as ranges of flat indices.
    pub fn rows(&self, [_, h, w]: [usize; 3]) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let Self { start, size } = *self;
        (start[0]..start[0] + size[0]).flat_map(move |z| {
            (start[1]..start[1] + size[1]).map(move |y| {
                let first = (z * h + y) * w + start[2];
                first..first + size[2]
            })
        })
    }
}

/// The number of voxels of a size, if it does not overflow.
pub fn voxel_count(size: [usize; 3]) -> Option<usize> {
    size.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}

/// The smallest and the largest spacing, so that no squared distance under- or overflows.
pub const SPACING_RANGE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The extents `[d, h, w]` of a volume and the distance of neighboring voxels along each. An image has d = 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    shape: [usize; 3],
    spacing: [f64; 3],
}

impl Grid {
    /// Checks extents and spacing.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] for an extent of 0, for more voxels than memory can hold, or for a spacing
    /// outside [`SPACING_RANGE`].
    pub fn new(shape: [usize; 3], spacing: [f64; 3]) -> Result<Self> {
        let voxels = voxel_count(shape);
        for (index, &extent) in shape.iter().enumerate() {
            if extent == 0 || voxels.is_none_or(|voxels| voxels > isize::MAX as usize / 8) {
                let expected = "at least 1, and small enough that all voxels fit in memory";
                return Err(CoreError::OutOfRange { field: "shape", index, value: extent as f64, expected });
            }
        }
        if let Some(index) = spacing.iter().position(|spacing| !SPACING_RANGE.contains(spacing)) {
            let expected = "between 1e-6 and 1e6";
            return Err(CoreError::OutOfRange { field: "spacing", index, value: spacing[index], expected });
        }
        Ok(Self { shape, spacing })
    }

    /// The extents `[d, h, w]`.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The distance of neighboring voxels along d, h and w.
    pub fn spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// The number of voxels `v` = d·h·w.
    pub fn voxels(&self) -> usize {
        self.shape.iter().product()
    }

    /// For each voxel of this grid the nearest one of another grid with the same middle and axes, along d, h and w; halfway
    /// between two the later one.
    ///
    /// With n and m voxels at distances s and t along an axis, voxel i of this grid lies at
    /// x = (m − 1)/2 + (i − (n − 1)/2)·s/t of the other, and the nearest is ⌊x + ½⌋, within 0 and m − 1.
    pub fn nearest_voxels(&self, other: &Self) -> [Vec<usize>; 3] {
        std::array::from_fn(|axis| {
            let (n, m) = (self.shape[axis] as f64, other.shape[axis] as f64);
            let step = self.spacing[axis] / other.spacing[axis];
            let place = |i: usize| 0.5 * (m - 1.0) + (i as f64 - 0.5 * (n - 1.0)) * step;
            (0..self.shape[axis]).map(|i| (place(i) + 0.5).floor().clamp(0.0, m - 1.0) as usize).collect()
        })
    }

    /// Fails unless an array has one entry per voxel.
    pub(crate) fn check_length(&self, field: &'static str, found: usize) -> Result<()> {
        if found == self.voxels() {
            return Ok(());
        }
        Err(CoreError::Length { field, expected: self.voxels(), found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_goes_around_its_voxels() {
        let found = Region::around([[1, 5, 2], [0, 5, 4]]).unwrap();
        assert_eq!(found, Region { start: [0, 5, 2], size: [2, 1, 3] });
        assert_eq!(found.grown(3, [2, 7, 9]), Region { start: [0, 2, 0], size: [2, 5, 8] });
        assert_eq!(Region::around([]), None);
    }

    #[test]
    fn the_nearest_voxel_is_where_the_middles_meet() {
        let fine = Grid::new([1, 4, 7], [3.0, 1.0, 1.0]).unwrap();
        let coarse = Grid::new([1, 2, 2], [3.0, 2.0, 3.0]).unwrap();
        // Along w, voxels lie at 0.5 + (i − 3)/3: −0.5, −0.17, 0.17, 0.5, …
        let expected = [vec![0], vec![0, 0, 1, 1], vec![0, 0, 0, 1, 1, 1, 1]];
        assert_eq!(fine.nearest_voxels(&coarse), expected);
        assert_eq!(coarse.nearest_voxels(&fine), [vec![0], vec![1, 3], vec![2, 5]]);
        assert_eq!(fine.nearest_voxels(&fine)[2], (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn bad_grids_are_errors() {
        assert!(matches!(
            Grid::new([1, 0, 2], [1.0; 3]),
            Err(CoreError::OutOfRange { field: "shape", index: 1, .. })
        ));
        assert!(Grid::new([usize::MAX, 2, 2], [1.0; 3]).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Grid::new([1, 2, 2], [1.0, 1.0, bad]).unwrap_err();
            assert!(matches!(error, CoreError::OutOfRange { field: "spacing", index: 2, .. }), "{error}");
        }
        let error = Grid::new([1, 2, 2], [1.0; 3]).unwrap().check_length("mask", 1).unwrap_err();
        assert_eq!(error, CoreError::Length { field: "mask", expected: 4, found: 1 });
    }
}
