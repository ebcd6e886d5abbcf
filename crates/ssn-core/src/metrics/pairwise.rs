//! The distance of the energy distance, and its matrix over all samples and raters of one image.
//!
//! d(a, b) = 1 − (1 / (c − 1)) Σ_{k=1}^{c−1} IoU_k(a, b): one minus the mean IoU of the foreground classes,
//! where a class that is absent in both maps has IoU 1. So d lies in 0…1, d(a, a) = 0, and two empty maps are
//! at distance 0.
//!
//! One [`PairwiseDistances`] serves GED² at every number of samples and HM-IoU alike.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::check::{self, Space};
use crate::Result;
use crate::labels::BitPlanes;
use crate::popcount::count_common;

/// Words of each plane that are compared for all pairs before the next: 100 maps of 3 foreground classes then
/// need 1.2 MiB at a time, which stays in the second-level cache.
const BLOCK_WORDS: usize = 512;

/// d of two maps: 1 − mean IoU over the foreground classes, a class absent in both counting 1.
///
/// # Errors
/// When the maps differ in voxels or classes; the second is named `raters`.
pub fn foreground_distance(first: &BitPlanes, second: &BitPlanes) -> Result<f64> {
    check::all_in(Space::from(first), &check::RATERS, std::slice::from_ref(second))?;
    let counts: Vec<u64> = foreground(first).map(|class| first.intersection(second, class) as u64).collect();
    Ok(distance(first, second, &counts))
}

/// The foreground classes; a class fits a byte because a map has at most 256.
fn foreground(planes: &BitPlanes) -> impl Iterator<Item = u8> {
    (1..planes.classes()).map(|class| class as u8)
}

/// d from the intersection count of each foreground class `[c − 1]`.
fn distance(first: &BitPlanes, second: &BitPlanes, intersections: &[u64]) -> f64 {
    let mut sum = 0.0;
    for (class, &both) in foreground(first).zip(intersections) {
        let union = first.volume(class) as u64 + second.volume(class) as u64 - both;
        sum += if union == 0 { 1.0 } else { both as f64 / union as f64 };
    }
    1.0 - sum / intersections.len() as f64
}

/// d between every two of the `m` samples and `n` raters of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseDistances {
    samples: usize,
    raters: usize,
    matrix: Vec<f64>, // [m + n, m + n], samples first, symmetric, zero diagonal
}

impl PairwiseDistances {
    /// Compares all maps with each other, each pair once, in parallel.
    ///
    /// Threads share only integer counts, so the result does not depend on their number.
    ///
    /// # Errors
    /// When there is no sample or no rater, or when the maps differ in voxels or classes.
    pub fn new(samples: &[BitPlanes], raters: &[BitPlanes]) -> Result<Self> {
        let space = check::common_space(&check::SAMPLES, samples)?;
        check::all_in(space, &check::RATERS, raters)?;
        let maps: Vec<&BitPlanes> = samples.iter().chain(raters).collect();
        let counts = intersections(&maps);
        let (size, mut pairs) = (maps.len(), counts.chunks_exact(space.classes - 1));
        let mut matrix = vec![0.0; size * size];
        for i in 0..size {
            for (j, counts) in (i + 1..size).zip(pairs.by_ref()) {
                let d = distance(maps[i], maps[j], counts);
                matrix[i * size + j] = d;
                matrix[j * size + i] = d;
            }
        }
        Ok(Self { samples: samples.len(), raters: raters.len(), matrix })
    }

    /// The number of samples `m`, at least 1.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The number of raters `n`, at least 1.
    pub fn raters(&self) -> usize {
        self.raters
    }

    /// d of one sample to each sample `[m]`; empty for a sample that does not exist.
    pub fn sample_to_samples(&self, sample: usize) -> &[f64] {
        if sample < self.samples { &self.row(sample)[..self.samples] } else { &[] }
    }

    /// d of one sample to each rater `[n]`; empty for a sample that does not exist.
    pub fn sample_to_raters(&self, sample: usize) -> &[f64] {
        if sample < self.samples { &self.row(sample)[self.samples..] } else { &[] }
    }

    /// d of one rater to each rater `[n]`; empty for a rater that does not exist.
    pub fn rater_to_raters(&self, rater: usize) -> &[f64] {
        if rater < self.raters { &self.row(self.samples + rater)[self.samples..] } else { &[] }
    }

    fn row(&self, map: usize) -> &[f64] {
        let size = self.samples + self.raters;
        &self.matrix[map * size..(map + 1) * size]
    }
}

/// Intersection counts `[pairs, c − 1]` of all pairs i < j, in the order (0,1), (0,2), …, (1,2), ….
fn intersections(maps: &[&BitPlanes]) -> Vec<u64> {
    let Some(first) = maps.first() else { return Vec::new() };
    let planes: Vec<&[u64]> = maps.iter().flat_map(|map| foreground(map).map(|k| map.plane(k))).collect();
    let foreground = first.classes() - 1;
    let pairs = maps.len() * (maps.len() - 1) / 2;
    let blocks = first.plane(1).len().div_ceil(BLOCK_WORDS);
    let zeros = || vec![0u64; pairs * foreground];
    (0..blocks)
        .into_par_iter()
        .fold(zeros, |mut counts, block| {
            Arch::new().dispatch(CountBlock { planes: &planes, foreground, block, counts: &mut counts });
            counts
        })
        .reduce(zeros, |mut sum, part| {
            sum.iter_mut().zip(part).for_each(|(total, count)| *total += count);
            sum
        })
}

/// Adds what one block of words contributes to the intersections of all pairs.
struct CountBlock<'a> {
    planes: &'a [&'a [u64]], // [maps · (c − 1)] planes
    foreground: usize,
    block: usize,
    counts: &'a mut [u64],
}

impl WithSimd for CountBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let start = self.block * BLOCK_WORDS;
        let part = |plane: &'_ [u64]| start..(start + BLOCK_WORDS).min(plane.len());
        let mut counts = self.counts.iter_mut();
        for (i, first) in self.planes.chunks_exact(self.foreground).enumerate() {
            for second in self.planes.chunks_exact(self.foreground).skip(i + 1) {
                for ((a, b), count) in first.iter().zip(second).zip(counts.by_ref()) {
                    *count += count_common(simd, &a[part(a)], &b[part(b)]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreError;
    use crate::labels::LabelMap;

    fn planes(labels: Vec<u8>, classes: usize) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels, classes).unwrap())
    }

    #[test]
    fn the_distance_by_hand() {
        // Class 1: 1 of 3; class 2: absent in both; class 3: 0 of 1.
        let (a, b) = (planes(vec![1, 1, 0, 3], 4), planes(vec![1, 0, 1, 0], 4));
        assert_eq!(foreground_distance(&a, &b).unwrap(), 1.0 - (1.0 / 3.0 + 1.0) / 3.0);
        assert_eq!(foreground_distance(&a, &a).unwrap(), 0.0);
    }

    #[test]
    fn the_matrix_holds_each_distance_across_blocks() {
        let voxels = 64 * BLOCK_WORDS * 2 + 77;
        let map = |k: usize| planes((0..voxels).map(|i| ((i * (k + 3) + i / 11) % 3) as u8).collect(), 3);
        let (samples, raters): (Vec<_>, Vec<_>) = ((0..4).map(map).collect(), (4..6).map(map).collect());
        let all = PairwiseDistances::new(&samples, &raters).unwrap();
        assert_eq!((all.samples(), all.raters()), (4, 2));
        for (i, sample) in samples.iter().enumerate() {
            for (j, other) in samples.iter().enumerate() {
                assert_eq!(all.sample_to_samples(i)[j], foreground_distance(sample, other).unwrap());
            }
            for (j, rater) in raters.iter().enumerate() {
                assert_eq!(all.sample_to_raters(i)[j], foreground_distance(sample, rater).unwrap());
            }
        }
        assert_eq!(all.rater_to_raters(1)[0], foreground_distance(&raters[1], &raters[0]).unwrap());
        assert!(all.sample_to_raters(4).is_empty() && all.rater_to_raters(2).is_empty());
    }

    #[test]
    fn misfits_are_errors() {
        let (two, three) = (planes(vec![0, 1], 2), planes(vec![0, 1, 1], 2));
        let fail = |samples: &[BitPlanes], raters: &[BitPlanes]| {
            PairwiseDistances::new(samples, raters).unwrap_err()
        };
        let two = std::slice::from_ref(&two);
        assert_eq!(fail(&[], two), CoreError::Empty { field: "samples" });
        assert_eq!(fail(two, &[]), CoreError::Empty { field: "raters" });
        let mixed = [two[0].clone(), three];
        let expected = "the same as in the first map";
        let error = CoreError::OutOfRange { field: "samples.voxels", index: 1, value: 3.0, expected };
        assert_eq!(fail(&mixed, two), error);
        let error = CoreError::OutOfRange { field: "raters.classes", index: 0, value: 5.0, expected };
        assert_eq!(fail(two, &[planes(vec![0, 4], 5)]), error);
    }
}
