//! The generalized energy distance between a set of samples and a set of raters, and the distances behind it.
//!
//! d(a, b) = 1 − (1 / (c − 1)) Σ_{k=1}^{c−1} IoU_k(a, b): one minus the mean IoU of the foreground classes,
//! where a class that is absent in both maps has IoU 1. So d lies in 0…1, d(a, a) = 0, and two empty maps are
//! at distance 0.
//!
//! GED² = 2 E d(s, y) − E d(s, s′) − E d(y, y′) with samples s, s′ and raters y, y′ drawn independently. The paper
//! takes each expectation as the mean over all ordered pairs, those of a map with itself included, (1 / m²) Σ_ij d_ij: this
//! V-statistic is low by a factor (m − 1) / m and never makes GED² negative. GED² then falls as the number of samples grows
//! even where the model stays the same, so a [`Ged`] always carries its counts.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::check::{self, Space};
use crate::labels::BitPlanes;
use crate::popcount::count_common;
use crate::{CoreError, Result};

/// Words of each plane that are compared for all pairs before the next: 100 maps of 3 foreground classes then
/// need 1.2 MiB at a time, which stays in the second-level cache.
const BLOCK_WORDS: usize = 512;

/// How far two maps are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distance {
    /// 1 − mean IoU of the foreground classes, a class absent in both counting 1: the paper's.
    #[default]
    Iou,
    /// 1 − mean IoU of the foreground classes that either map has, as in the code of the probabilistic U-Net; two maps without
    /// foreground are at distance 0, where that code has no value.
    IouOfPresent,
    /// 1 − mean Dice of the foreground classes, a class absent in both counting 1, as in ValUES.
    Dice,
}

/// d of two maps: 1 − mean IoU over the foreground classes, a class absent in both counting 1.
pub fn foreground_distance(first: &BitPlanes, second: &BitPlanes) -> Result<f64> {
    check::all_in(Space::from(first), &check::RATERS, std::slice::from_ref(second))?;
    let counts: Vec<u64> = foreground(first).map(|class| first.intersection(second, class) as u64).collect();
    Ok(distance(first, second, &counts, Distance::Iou))
}

/// The foreground classes; a class fits a byte because a map has at most 256.
fn foreground(planes: &BitPlanes) -> impl Iterator<Item = u8> {
    (1..planes.classes()).map(|class| class as u8)
}

/// d from the intersection count of each foreground class `[c − 1]`.
fn distance(first: &BitPlanes, second: &BitPlanes, intersections: &[u64], rule: Distance) -> f64 {
    let (mut sum, mut classes) = (0.0, 0usize);
    for (class, &both) in foreground(first).zip(intersections) {
        let volumes = first.volume(class) as u64 + second.volume(class) as u64;
        if volumes == 0 && rule == Distance::IouOfPresent {
            continue;
        }
        classes += 1;
        sum += match rule {
            _ if volumes == 0 => 1.0,
            Distance::Iou | Distance::IouOfPresent => both as f64 / (volumes - both) as f64,
            Distance::Dice => 2.0 * both as f64 / volumes as f64,
        };
    }
    if classes == 0 { 0.0 } else { 1.0 - sum / classes as f64 }
}

/// d between every two of the `m` samples and `n` raters of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseDistances {
    samples: usize,
    raters: usize,
    matrix: Vec<f64>, // [m + n, m + n], samples first, symmetric, zero diagonal
}

impl PairwiseDistances {
    /// Compares all maps with each other by the paper's distance.
    pub fn new(samples: &[BitPlanes], raters: &[BitPlanes]) -> Result<Self> {
        Self::with(samples, raters, Distance::Iou)
    }

    /// Compares all maps with each other, each pair once, in parallel.
    ///
    /// Threads share only integer counts, so the result does not depend on their number.
    pub fn with(samples: &[BitPlanes], raters: &[BitPlanes], rule: Distance) -> Result<Self> {
        let space = check::common_space(&check::SAMPLES, samples)?;
        check::all_in(space, &check::RATERS, raters)?;
        let maps: Vec<&BitPlanes> = samples.iter().chain(raters).collect();
        let counts = intersections(&maps);
        let (size, mut pairs) = (maps.len(), counts.chunks_exact(space.classes - 1));
        let mut matrix = vec![0.0; size * size];
        for i in 0..size {
            for (j, counts) in (i + 1..size).zip(pairs.by_ref()) {
                let d = distance(maps[i], maps[j], counts, rule);
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

/// GED² and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ged {
    /// 2 E d(s, y) − E d(s, s′) − E d(y, y′).
    pub squared: f64,
    /// E d(s, y).
    pub sample_rater_distance: f64,
    /// E d(s, s′), the paper's diversity.
    pub sample_diversity: f64,
    /// E d(y, y′), the diversity of the experts.
    pub rater_diversity: f64,
    /// The number of samples `m` behind it.
    pub samples: usize,
    /// The number of raters `n` behind it.
    pub raters: usize,
}

/// GED² of all samples against all raters.
pub fn ged(samples: &[BitPlanes], raters: &[BitPlanes]) -> Result<Ged> {
    PairwiseDistances::new(samples, raters)?.ged()
}

impl PairwiseDistances {
    /// GED² of all samples.
    pub fn ged(&self) -> Result<Ged> {
        self.ged_at(self.samples())
    }

    /// GED² of the first `samples` samples.
    pub fn ged_at(&self, samples: usize) -> Result<Ged> {
        if samples == 0 || samples > self.samples() {
            let expected = "at least 1 and at most the number of samples drawn";
            let value = samples as f64;
            return Err(CoreError::OutOfRange { field: "samples", index: 0, value, expected });
        }
        let raters = self.raters();
        let between: f64 = (0..samples).map(|i| self.sample_to_raters(i).iter().sum::<f64>()).sum();
        let sample_rater_distance = between / (samples * raters) as f64;
        let sample_diversity = mean_of_pairs(samples, |i| &self.sample_to_samples(i)[i + 1..samples]);
        let rater_diversity = mean_of_pairs(raters, |i| &self.rater_to_raters(i)[i + 1..]);
        let squared = 2.0 * sample_rater_distance - sample_diversity - rater_diversity;
        Ok(Ged { squared, sample_rater_distance, sample_diversity, rater_diversity, samples, raters })
    }
}

/// E d over all ordered pairs of a set of `count` maps, (1 / count²) Σ_ij d_ij, where `later(i)` holds the distances of map i to
/// those after it.
fn mean_of_pairs<'a>(count: usize, later: impl Fn(usize) -> &'a [f64]) -> f64 {
    let sum: f64 = (0..count).map(|i| later(i).iter().sum::<f64>()).sum();
    // An empty sum is −0.0, which would show as such.
    2.0 * sum.abs() / (count * count) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelMap;

    fn planes(labels: Vec<u8>, classes: usize) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels, classes).unwrap())
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
        let one = PairwiseDistances::new(two, two).unwrap();
        assert!([0, 2].iter().all(|count| one.ged_at(*count).is_err()));
    }
}
