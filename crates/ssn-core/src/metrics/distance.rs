//! The exact Euclidean distance transform on a grid with a spacing per axis.
//!
//! The squared distance splits into one term per axis, so it is found axis by axis: along `w` by two sweeps,
//! along `h` and `d` as the lower envelope of one parabola per voxel of the line (Felzenszwalb and
//! Huttenlocher, 2012). The time is linear in the voxels, and lines are independent, so the threads that
//! share them change no bit.

use rayon::prelude::*;

use crate::{CoreError, Result};

/// The smallest and the largest spacing, so that no squared distance under- or overflows.
pub const SPACING_RANGE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The extents `[d, h, w]` of a volume and the distance of neighboring voxels along each. An image has d =
/// 1.
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
        let voxels = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
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

    /// Fails unless an array has one entry per voxel.
    pub(super) fn check_length(&self, field: &'static str, found: usize) -> Result<()> {
        if found == self.voxels() {
            return Ok(());
        }
        Err(CoreError::Length { field, expected: self.voxels(), found })
    }
}

/// The squared distance `[v]` of every voxel to the nearest voxel of the mask `[v]`; infinite for an empty
/// mask.
///
/// # Errors
/// [`CoreError::Length`] unless the mask has one entry per voxel of the grid.
pub fn squared_distance_transform(mask: &[bool], grid: &Grid) -> Result<Vec<f64>> {
    grid.check_length("mask", mask.len())?;
    let [d, h, w] = grid.shape;
    let [along_d, along_h, along_w] = grid.spacing;
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

/// A parabola of the envelope.
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

    #[test]
    fn distances_by_hand() {
        let grid = Grid::new([2, 2, 3], [10.0, 3.0, 1.0]).unwrap();
        let mut mask = [false; 12];
        mask[0] = true;
        let squared = squared_distance_transform(&mask, &grid).unwrap();
        let plane = [0.0, 1.0, 4.0, 9.0, 10.0, 13.0];
        assert_eq!(squared[..6], plane);
        assert_eq!(squared[6..], plane.map(|value| value + 100.0));
    }

    #[test]
    fn an_empty_mask_is_infinitely_far() {
        let grid = Grid::new([3, 4, 5], [1.0; 3]).unwrap();
        assert!(squared_distance_transform(&[false; 60], &grid).unwrap().iter().all(|d| *d == f64::INFINITY));
    }

    #[test]
    fn transposing_moves_every_entry() {
        let matrix: Vec<f64> = (0..35 * 21).map(f64::from).collect();
        let turned = transposed(&matrix, 21);
        assert!((0..35 * 21).all(|i| turned[(i % 21) * 35 + i / 21] == matrix[i]));
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
        let grid = Grid::new([1, 2, 2], [1.0; 3]).unwrap();
        let error = squared_distance_transform(&[true], &grid).unwrap_err();
        assert_eq!(error, CoreError::Length { field: "mask", expected: 4, found: 1 });
    }
}
