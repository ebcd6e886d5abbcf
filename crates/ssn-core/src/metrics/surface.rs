//! Distances between the surfaces of two masks: HD95, ASSD and normalized surface Dice.
//!
//! The surface S of a mask are its voxels with a face neighbor outside the mask or at the border of the
//! image: six neighbors in a volume, four in an image (d = 1), where the depth has no border. Distances run
//! between centers of surface voxels and use the spacing. With d(a, S_B) the distance of a ∈ S_A to the
//! nearest voxel of S_B:
//!
//! - HD95 = max(P95_a d(a, S_B), P95_b d(b, S_A)); the percentile is that of [`quantile`](super::quantile),
//! - ASSD = (Σ_a d(a, S_B) + Σ_b d(b, S_A)) / (|S_A| + |S_B|), so that the larger surface weighs more,
//! - NSD(τ) = (#{a : d(a, S_B) ≤ τ} + #{b : d(b, S_A) ≤ τ}) / (|S_A| + |S_B|).
//!
//! Where both masks are empty, no score has a value; where one is, NSD is 0, and the distances have none.
//!
//! Distances come from an exact Euclidean distance transform. The squared distance splits into one term per axis, so
//! it is found axis by axis: along `w` by two sweeps, along `h` and `d` as the lower envelope of one parabola per
//! voxel of the line (Felzenszwalb and Huttenlocher, 2012). The time is linear in the voxels, and lines are
//! independent, so the threads that share them change no bit.

use rayon::prelude::*;

use super::aggregate::quantile_of_sorted;
use crate::space::{Grid, Region};
use crate::{CoreError, Result};

/// Distances up to this factor above the tolerance of NSD are within it: a tolerance of 0.3 must include
/// three voxels of 0.1, whose distance rounds to just above it.
const TOLERANCE_SLACK: f64 = 1.0 + 1e-9;

/// The surface voxels `[v]` of a mask `[v]` of the given shape; the depth counts only where `deep`.
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
    one_is_empty: bool,
}

impl SurfaceDistances {
    /// Measures two masks `[v]`, such as those of [`ClassGroup::mask`](super::ClassGroup::mask).
    ///
    /// # Errors
    /// [`CoreError::Length`] unless both masks have one entry per voxel of the grid.
    pub fn new(first: &[bool], second: &[bool], grid: &Grid) -> Result<Self> {
        grid.check_length("first", first.len())?;
        grid.check_length("second", second.len())?;
        let [a, b] = [first, second].map(|mask| mask.contains(&true));
        if !(a && b) {
            let (first_to_second, second_to_first) = (Vec::new(), Vec::new());
            return Ok(Self { first_to_second, second_to_first, one_is_empty: a != b });
        }
        // Outside the box around both masks nothing is surface, nor does a shortest line leave it.
        let bounds = bounds(first, second, grid.shape());
        let box_grid = Grid::new(bounds.size, grid.spacing())?;
        let deep = grid.shape()[0] > 1;
        let of = |mask: &[bool]| surface(&bounds.cut(mask, grid.shape()), bounds.size, deep);
        let (a, b) = (of(first), of(second));
        let first_to_second = distances(&a, &squared_distance_transform(&b, &box_grid)?);
        let second_to_first = distances(&b, &squared_distance_transform(&a, &box_grid)?);
        Ok(Self { first_to_second, second_to_first, one_is_empty: false })
    }

    /// The larger of the 95th percentiles of {d(a, S_B)} and of {d(b, S_A)}, each over its own surface.
    pub fn hd95(&self) -> Option<f64> {
        let of = |sorted: &[f64]| quantile_of_sorted(sorted, 0.95);
        Some(of(&self.first_to_second)?.max(of(&self.second_to_first)?))
    }

    /// The average symmetric surface distance.
    pub fn assd(&self) -> Option<f64> {
        let sum = self.first_to_second.iter().sum::<f64>() + self.second_to_first.iter().sum::<f64>();
        self.share(sum)
    }

    /// Whether one mask is empty and the other is not.
    pub fn one_is_empty(&self) -> bool {
        self.one_is_empty
    }

    /// The normalized surface Dice at a tolerance in the unit of the spacing; 0 where one mask is empty.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] for a tolerance that is negative or not a number.
    pub fn nsd(&self, tolerance: f64) -> Result<Option<f64>> {
        if tolerance.is_nan() || tolerance < 0.0 {
            let expected = "at least 0";
            return Err(CoreError::OutOfRange { field: "tolerance", index: 0, value: tolerance, expected });
        }
        if self.one_is_empty {
            return Ok(Some(0.0));
        }
        let within = |sorted: &[f64]| sorted.partition_point(|d| *d <= tolerance * TOLERANCE_SLACK);
        Ok(self.share((within(&self.first_to_second) + within(&self.second_to_first)) as f64))
    }

    /// A sum over both surfaces, divided by their voxels; `None` where there are none.
    fn share(&self, sum: f64) -> Option<f64> {
        let voxels = self.first_to_second.len() + self.second_to_first.len();
        (voxels > 0).then(|| sum / voxels as f64)
    }
}

/// The distances at the voxels of a surface, ascending.
fn distances(surface: &[bool], squared: &[f64]) -> Vec<f64> {
    let at_surface = surface.iter().zip(squared).filter(|(on, _)| **on);
    let mut distances: Vec<f64> = at_surface.map(|(_, squared)| squared.sqrt()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances
}

/// The smallest box that holds both masks, of which one must hold a voxel.
fn bounds(first: &[bool], second: &[bool], [_, h, w]: [usize; 3]) -> Region {
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
    Region { start, size: [0, 1, 2].map(|axis| end[axis] - start[axis]) }
}

/// The squared distance `[v]` of every voxel to the nearest voxel of the mask `[v]`; infinite for an empty mask.
///
/// # Errors
/// [`CoreError::Length`] unless the mask has one entry per voxel of the grid.
pub fn squared_distance_transform(mask: &[bool], grid: &Grid) -> Result<Vec<f64>> {
    grid.check_length("mask", mask.len())?;
    let [d, h, w] = grid.shape();
    let [along_d, along_h, along_w] = grid.spacing();
    let mut squared = vec![f64::INFINITY; mask.len()];
    squared.par_chunks_mut(w).zip(mask.par_chunks(w)).for_each(|(line, mask)| sweep(line, mask, along_w));
    if h > 1 {
        squared.par_chunks_mut(h * w).for_each(|slice| {
            let mut columns = transposed(slice, w); // [w, h]
            lower_envelopes(&mut columns, h, along_h);
            slice.copy_from_slice(&transposed(&columns, h));
        });
    }
    if d > 1 {
        // [d, h·w] → [h·w, d]: the lines become contiguous, so that threads can own them.
        let mut columns = transposed(&squared, h * w);
        columns.par_chunks_mut(w * d).for_each(|lines| lower_envelopes(lines, d, along_d));
        squared = transposed(&columns, d);
    }
    Ok(squared)
}

/// The transpose of a matrix with rows of length `columns`.
fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    /// Edge of the square tiles that are moved at once, so that reads and writes both stay in the cache.
    const TILE: usize = 16;
    let rows = matrix.len() / columns;
    let mut result = vec![0.0; matrix.len()];
    result.par_chunks_mut(rows * TILE).enumerate().for_each(|(tile, band)| {
        let first = tile * TILE;
        for start in (0..rows).step_by(TILE) {
            for (column, line) in band.chunks_exact_mut(rows).enumerate() {
                for row in start..(start + TILE).min(rows) {
                    line[row] = matrix[row * columns + first + column];
                }
            }
        }
    });
    result
}

/// Squared distances along one line, from the last mask voxel on the left and then on the right.
fn sweep(line: &mut [f64], mask: &[bool], spacing: f64) {
    let mut nearest = None;
    for (at, value) in line.iter_mut().enumerate() {
        nearest = if mask[at] { Some(at) } else { nearest };
        if let Some(site) = nearest {
            *value = ((at - site) as f64 * spacing).powi(2);
        }
    }
    nearest = None;
    for (at, value) in line.iter_mut().enumerate().rev() {
        nearest = if mask[at] { Some(at) } else { nearest };
        if let Some(site) = nearest {
            *value = value.min(((site - at) as f64 * spacing).powi(2));
        }
    }
}

struct Parabola {
    site: usize,
    height: f64,
    /// Where it becomes the lowest, in voxels.
    from: f64,
}

/// Replaces each line f of the given length by min_q f(q) + (spacing·(p − q))².
fn lower_envelopes(lines: &mut [f64], length: usize, spacing: f64) {
    let mut envelope: Vec<Parabola> = Vec::with_capacity(length);
    let square = spacing * spacing;
    for line in lines.chunks_exact_mut(length) {
        envelope.clear();
        for (site, &height) in line.iter().enumerate().filter(|(_, height)| height.is_finite()) {
            let mut from = f64::NEG_INFINITY;
            while let Some(last) = envelope.last() {
                // Relative to the middle of the two sites, which loses fewer digits than their squares.
                let (sum, gap) = ((site + last.site) as f64, (site - last.site) as f64);
                from = 0.5 * (sum + (height - last.height) / (square * gap));
                if from > last.from {
                    break;
                }
                envelope.pop();
                from = f64::NEG_INFINITY;
            }
            envelope.push(Parabola { site, height, from });
        }
        let mut lowest = 0;
        if envelope.is_empty() {
            continue;
        }
        for (at, value) in line.iter_mut().enumerate() {
            while envelope.get(lowest + 1).is_some_and(|next| next.from < at as f64) {
                lowest += 1;
            }
            let parabola = &envelope[lowest];
            *value = parabola.height + (at.abs_diff(parabola.site) as f64 * spacing).powi(2);
        }
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
    fn scores_by_hand() {
        let grid = Grid::new([1, 1, 6], [1.0, 1.0, 0.1]).unwrap();
        let found = SurfaceDistances::new(&mask("#....."), &mask("#..#.."), &grid).unwrap();
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} is not {b}");
        close(found.hd95(), 0.95 * 0.3);
        close(found.assd(), 0.1);
        close(found.nsd(0.3).unwrap(), 1.0);
        close(found.nsd(0.2).unwrap(), 2.0 / 3.0);
        assert!(found.nsd(-1.0).is_err() && found.nsd(f64::NAN).is_err());
        let error = SurfaceDistances::new(&mask("#....."), &mask("#"), &grid).unwrap_err();
        assert_eq!(error, CoreError::Length { field: "second", expected: 6, found: 1 });
    }
}
