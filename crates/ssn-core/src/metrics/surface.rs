//! Distances between the surfaces of two masks: HD, HD95, ASSD and normalized surface Dice.
//!
//! The surface S of a mask are its voxels with a face neighbor outside the mask or at the border of the
//! image: six neighbors in a volume, four in an image (d = 1), where the depth has no border. Distances run
//! between centers of surface voxels and use the spacing. With d(a, S_B) the distance of a ∈ S_A to the
//! nearest voxel of S_B:
//!
//! - HD = max(max_a d(a, S_B), max_b d(b, S_A)),
//! - HD95: see [`Hd95`]; the percentile is the linear interpolation of [`quantile`](super::quantile),
//! - ASSD = (Σ_a d(a, S_B) + Σ_b d(b, S_A)) / (|S_A| + |S_B|), so that the larger surface weighs more,
//! - NSD(τ) = (#{a : d(a, S_B) ≤ τ} + #{b : d(b, S_A) ≤ τ}) / (|S_A| + |S_B|).

use rayon::prelude::*;

use super::aggregate::quantile_of_sorted;
use super::distance::{Grid, squared_distance_transform};
use crate::{CoreError, Result};

/// Distances up to this factor above the tolerance of NSD are within it: a tolerance of 0.3 must include
/// three voxels of 0.1, whose distance rounds to just above it.
const TOLERANCE_SLACK: f64 = 1.0 + 1e-9;

/// How HD95 joins the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hd95 {
    /// The larger of the 95th percentiles of {d(a, S_B)} and of {d(b, S_A)}, each over its own surface.
    LargerDirected,
    /// The 95th percentile of both sets of distances put together.
    Pooled,
}

/// The value of a surface score when exactly one mask is empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OneSurfaceEmpty {
    /// There is none.
    Undefined,
    /// This value: the diagonal of the image for a distance, say, or 0 for NSD.
    Penalty(f64),
}

/// The value of a surface score when both masks are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BothSurfacesEmpty {
    /// There is none.
    Undefined,
    /// The best value: 0 for a distance, 1 for NSD.
    Perfect,
}

/// What a surface score is when a mask is empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EmptyPolicy {
    /// When exactly one is.
    pub one: OneSurfaceEmpty,
    /// When both are.
    pub both: BothSurfacesEmpty,
}

impl EmptyPolicy {
    /// No value where any mask is empty.
    pub const UNDEFINED: Self = Self { one: OneSurfaceEmpty::Undefined, both: BothSurfacesEmpty::Undefined };
}

/// The surface voxels `[v]` of a mask `[v]`.
///
/// # Errors
/// [`CoreError::Length`] unless the mask has one entry per voxel of the grid.
pub fn surface_voxels(mask: &[bool], grid: &Grid) -> Result<Vec<bool>> {
    grid.check_length("mask", mask.len())?;
    Ok(surface(mask, grid.shape(), grid.shape()[0] > 1))
}

/// The surface of a mask of the given shape; the depth counts only where `deep`.
fn surface(mask: &[bool], [d, h, w]: [usize; 3], deep: bool) -> Vec<bool> {
    let mut result = vec![false; mask.len()];
    result.par_chunks_mut(w).enumerate().for_each(|(row, line)| {
        let (z, y) = (row / h, row % h);
        let border = y == 0 || y + 1 == h || deep && (z == 0 || z + 1 == d);
        for (x, value) in line.iter_mut().enumerate() {
            let at = row * w + x;
            let inside = |step: usize| mask[at - step] && mask[at + step];
            let interior =
                !border && x > 0 && x + 1 < w && inside(1) && inside(w) && (!deep || inside(h * w));
            *value = mask[at] && !interior;
        }
    });
    result
}

/// The distances from each surface to the other; every surface score derives from one of these.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceDistances {
    first_to_second: Vec<f64>, // ascending; empty when a mask is
    second_to_first: Vec<f64>, // ascending; empty when a mask is
    empty_masks: usize,
}

impl SurfaceDistances {
    /// Measures two masks `[v]`, such as those of [`ClassGroup::mask`](super::ClassGroup::mask).
    ///
    /// # Errors
    /// [`CoreError::Length`] unless both masks have one entry per voxel of the grid.
    pub fn new(first: &[bool], second: &[bool], grid: &Grid) -> Result<Self> {
        grid.check_length("first", first.len())?;
        grid.check_length("second", second.len())?;
        let empty_masks = [first, second].iter().filter(|mask| !mask.contains(&true)).count();
        if empty_masks > 0 {
            return Ok(Self { first_to_second: Vec::new(), second_to_first: Vec::new(), empty_masks });
        }
        // Outside the box around both masks nothing is surface, nor does a shortest line leave it.
        let bounds = Bounds::around(first, second, grid.shape());
        let box_grid = Grid::new(bounds.shape(), grid.spacing())?;
        let deep = grid.shape()[0] > 1;
        let of = |mask: &[bool]| surface(&bounds.crop(mask, grid.shape()), bounds.shape(), deep);
        let (a, b) = (of(first), of(second));
        let first_to_second = distances(&a, &squared_distance_transform(&b, &box_grid)?);
        let second_to_first = distances(&b, &squared_distance_transform(&a, &box_grid)?);
        Ok(Self { first_to_second, second_to_first, empty_masks })
    }

    /// The Hausdorff distance.
    pub fn hd(&self, policy: EmptyPolicy) -> Option<f64> {
        self.score(policy, 0.0, |first, second| Some(first.last()?.max(*second.last()?)))
    }

    /// The 95th percentile of the Hausdorff distance.
    pub fn hd95(&self, form: Hd95, policy: EmptyPolicy) -> Option<f64> {
        self.score(policy, 0.0, |first, second| match form {
            Hd95::LargerDirected => {
                Some(quantile_of_sorted(first, 0.95)?.max(quantile_of_sorted(second, 0.95)?))
            }
            Hd95::Pooled => {
                let mut pooled = [first, second].concat();
                pooled.sort_unstable_by(f64::total_cmp);
                quantile_of_sorted(&pooled, 0.95)
            }
        })
    }

    /// The average symmetric surface distance.
    pub fn assd(&self, policy: EmptyPolicy) -> Option<f64> {
        self.score(policy, 0.0, |first, second| {
            let sum = first.iter().sum::<f64>() + second.iter().sum::<f64>();
            Some(sum / (first.len() + second.len()) as f64)
        })
    }

    /// The normalized surface Dice at a tolerance in the unit of the spacing.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] for a tolerance that is negative or not a number.
    pub fn nsd(&self, tolerance: f64, policy: EmptyPolicy) -> Result<Option<f64>> {
        if tolerance.is_nan() || tolerance < 0.0 {
            let expected = "at least 0";
            return Err(CoreError::OutOfRange { field: "tolerance", index: 0, value: tolerance, expected });
        }
        let within = |sorted: &[f64]| sorted.partition_point(|d| *d <= tolerance * TOLERANCE_SLACK);
        Ok(self.score(policy, 1.0, |first, second| {
            Some((within(first) + within(second)) as f64 / (first.len() + second.len()) as f64)
        }))
    }

    /// The score of two surfaces, or what the policy says where there are not two.
    fn score(
        &self,
        policy: EmptyPolicy,
        perfect: f64,
        score: impl FnOnce(&[f64], &[f64]) -> Option<f64>,
    ) -> Option<f64> {
        match (self.empty_masks, policy.one, policy.both) {
            (0, ..) => score(&self.first_to_second, &self.second_to_first),
            (1, OneSurfaceEmpty::Undefined, _) | (2.., _, BothSurfacesEmpty::Undefined) => None,
            (1, OneSurfaceEmpty::Penalty(value), _) => Some(value),
            (2.., _, BothSurfacesEmpty::Perfect) => Some(perfect),
        }
    }
}

/// The distances at the voxels of a surface, ascending.
fn distances(surface: &[bool], squared: &[f64]) -> Vec<f64> {
    let at_surface = surface.iter().zip(squared).filter(|(on, _)| **on);
    let mut distances: Vec<f64> = at_surface.map(|(_, squared)| squared.sqrt()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances
}

/// A box of voxels: its first along each axis, and the one past its last.
struct Bounds {
    start: [usize; 3],
    end: [usize; 3],
}

impl Bounds {
    /// The smallest box that holds both masks, of which one must hold a voxel.
    fn around(first: &[bool], second: &[bool], [_, h, w]: [usize; 3]) -> Self {
        let (mut start, mut end) = ([usize::MAX; 3], [0; 3]);
        for (row, (a, b)) in first.chunks_exact(w).zip(second.chunks_exact(w)).enumerate() {
            let set = |x: &usize| a[*x] || b[*x];
            let Some(left) = (0..w).find(set) else { continue };
            let right = (left..w).rev().find(set).unwrap_or(left);
            for (axis, (low, high)) in
                [(row / h, row / h), (row % h, row % h), (left, right)].into_iter().enumerate()
            {
                start[axis] = start[axis].min(low);
                end[axis] = end[axis].max(high + 1);
            }
        }
        Self { start, end }
    }

    fn shape(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.end[axis] - self.start[axis])
    }

    fn crop(&self, mask: &[bool], [_, h, w]: [usize; 3]) -> Vec<bool> {
        let rows =
            (self.start[0]..self.end[0]).flat_map(|z| (self.start[1]..self.end[1]).map(move |y| z * h + y));
        rows.flat_map(|row| &mask[row * w + self.start[2]..row * w + self.end[2]]).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mask drawn with one character per voxel.
    fn mask(drawing: &str) -> Vec<bool> {
        drawing.chars().filter(|c| !c.is_whitespace()).map(|c| c == '#').collect()
    }

    #[test]
    fn an_image_has_no_border_in_depth() {
        let grid = Grid::new([1, 5, 5], [9.0, 1.0, 1.0]).unwrap();
        let block = mask("..... .###. .###. .###. .....");
        assert_eq!(surface_voxels(&block, &grid).unwrap(), mask("..... .###. .#.#. .###. ....."));
        let full = vec![true; 25];
        assert_eq!(surface_voxels(&full, &grid).unwrap(), mask("##### #...# #...# #...# #####"));
        // In a volume of two slices both lie at the border.
        let two = Grid::new([2, 5, 5], [1.0; 3]).unwrap();
        assert_eq!(surface_voxels(&[true; 50], &two).unwrap(), [true; 50]);
    }

    #[test]
    fn a_flat_mask_in_a_volume_is_all_surface() {
        let grid = Grid::new([3, 3, 3], [1.0; 3]).unwrap();
        let middle: Vec<bool> = (0..27).map(|i| i / 9 == 1).collect();
        assert_eq!(surface_voxels(&middle, &grid).unwrap(), middle);
        let center: Vec<bool> = (0..27).map(|i| i == 13).collect();
        let found = SurfaceDistances::new(&middle, &center, &grid).unwrap();
        // The center itself belongs to the surface of the slice, so one distance is 0 in each direction.
        let sum = 4.0 + 4.0 * 2f64.sqrt();
        assert!((found.assd(EmptyPolicy::UNDEFINED).unwrap() - sum / 10.0).abs() < 1e-15);
    }

    #[test]
    fn scores_by_hand() {
        let grid = Grid::new([1, 1, 6], [1.0, 1.0, 0.1]).unwrap();
        let found = SurfaceDistances::new(&mask("#....."), &mask("#..#.."), &grid).unwrap();
        let policy = EmptyPolicy::UNDEFINED;
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} is not {b}");
        close(found.hd(policy), 0.3);
        close(found.hd95(Hd95::LargerDirected, policy), 0.95 * 0.3);
        close(found.hd95(Hd95::Pooled, policy), 0.9 * 0.3);
        close(found.assd(policy), 0.1);
        close(found.nsd(0.3, policy).unwrap(), 1.0);
        close(found.nsd(0.2, policy).unwrap(), 2.0 / 3.0);
        assert!(found.nsd(-1.0, policy).is_err() && found.nsd(f64::NAN, policy).is_err());
    }

    #[test]
    fn empty_masks_follow_the_policy() {
        let grid = Grid::new([1, 1, 2], [1.0; 3]).unwrap();
        let (empty, full) = ([false; 2], [true; 2]);
        let policy = EmptyPolicy { one: OneSurfaceEmpty::Penalty(7.0), both: BothSurfacesEmpty::Perfect };
        for (a, b) in [(&empty, &full), (&full, &empty)] {
            let one = SurfaceDistances::new(a, b, &grid).unwrap();
            assert_eq!((one.hd(policy), one.assd(policy)), (Some(7.0), Some(7.0)));
            assert_eq!(one.hd(EmptyPolicy { one: OneSurfaceEmpty::Undefined, ..policy }), None);
        }
        let both = SurfaceDistances::new(&empty, &empty, &grid).unwrap();
        assert_eq!((both.hd95(Hd95::Pooled, policy), both.nsd(1.0, policy).unwrap()), (Some(0.0), Some(1.0)));
        assert_eq!(both.hd(EmptyPolicy { both: BothSurfacesEmpty::Undefined, ..policy }), None);
        let error = SurfaceDistances::new(&empty, &[true; 3], &grid).unwrap_err();
        assert_eq!(error, CoreError::Length { field: "second", expected: 2, found: 3 });
    }
}
