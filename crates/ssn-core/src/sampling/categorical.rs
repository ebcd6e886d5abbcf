//! Samples of a network without a distribution: every voxel chooses its label by itself.
//!
//! A deterministic network gives probabilities per voxel and nothing that ties voxels together. Samples of these
//! independent categoricals are grainy; they show what the low-rank distribution adds.

use std::ops::Range;

use rayon::prelude::*;

use super::{CHUNK, Row, count, label_count, split_rows, tile_softmax};
use crate::distribution::LowRankNormal;
use crate::error::Result;
use crate::labels::LabelMap;
use crate::random::{CATEGORICAL_STREAM, TILE, word_tile};
use crate::simd::vectorized;

/// 2⁻²⁴: 24 bits make a number that binary32 holds exactly.
const TWO_POW_MINUS_24: f32 = 1.0 / 16_777_216.0;

/// Draws label maps of the categoricals softmax(μ), voxel by voxel, from the mean of a distribution.
///
/// Sample `i` is a function of the seed and `i` alone, as for [`Sampler`](super::Sampler).
#[derive(Debug)]
pub struct CategoricalSampler<'a> {
    distribution: &'a LowRankNormal,
    seed: u64,
}

impl<'a> CategoricalSampler<'a> {
    /// A sampler of the mean of a distribution; its covariance is not looked at.
    pub fn new(distribution: &'a LowRankNormal, seed: u64) -> Self {
        Self { distribution, seed }
    }

    /// The label maps of the samples with these numbers.
    pub fn labels(&self, samples: Range<u64>) -> Result<Vec<LabelMap>> {
        let (c, v) = (self.distribution.classes(), self.distribution.voxels());
        let mut maps = vec![vec![0u8; v]; count(&samples)?];
        split_rows(&mut maps).par_iter_mut().enumerate().for_each_init(
            || vec![[0.0; TILE]; c],
            |probabilities, (chunk, rows)| {
                for (tile, at) in (0..rows[0].len()).step_by(TILE).enumerate() {
                    let tile = (chunk * (CHUNK / TILE) + tile) as u32;
                    load(self.distribution, tile as usize * TILE, probabilities);
                    vectorized(
                        #[inline(always)]
                        || {
                            cumulate(probabilities);
                            for (row, number) in rows.iter_mut().zip(samples.clone()) {
                                let words = word_tile(self.seed, CATEGORICAL_STREAM, number, tile);
                                let labels = choose(probabilities, &words);
                                let out = &mut row[at..];
                                let count = out.len().min(TILE);
                                out[..count].copy_from_slice(&labels[..count]);
                            }
                        },
                    );
                }
            },
        );
        maps.into_iter().map(|labels| LabelMap::new(labels, label_count(self.distribution))).collect()
    }
}

/// Reads the mean of the voxels `start …`, at most [`TILE`] of them, a row per class; 0 beyond the last voxel.
fn load(distribution: &LowRankNormal, start: usize, rows: &mut [Row]) {
    let v = distribution.voxels();
    let count = TILE.min(v - start);
    for (class, row) in rows.iter_mut().enumerate() {
        distribution.mean().read(class * v + start, &mut row[..count]);
        row[count..].fill(0.0);
    }
}

/// Turns logits into thresholds: row k becomes p_0 ⊕ … ⊕ p_k. The row of a single class becomes its p.
#[inline(always)]
fn cumulate(rows: &mut [Row]) {
    tile_softmax(rows, &mut [0.0; TILE]);
    for class in 1..rows.len() {
        let (below, this) = rows.split_at_mut(class);
        for x in 0..TILE {
            this[0][x] += below[class - 1][x];
        }
    }
}

/// The label of every voxel: how many of the thresholds of all classes but the last its uniform number has reached.
#[inline(always)]
fn choose(thresholds: &[Row], words: &[u32; TILE]) -> [u8; TILE] {
    let mut labels = [0u8; TILE];
    for x in 0..TILE {
        let u = (words[x] >> 8) as f32 * TWO_POW_MINUS_24;
        labels[x] = match thresholds {
            [on] => u8::from(u < on[x]),
            [rows @ .., _] => rows.iter().map(|row| u8::from(u >= row[x])).sum(),
            [] => 0,
        };
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::fill_normals;

    /// Logits of `c` classes on `v` voxels without covariance.
    fn logits(c: usize, v: usize) -> LowRankNormal {
        let mut mean = vec![0f32; c * v];
        fill_normals(5, 0, 0, &mut mean);
        LowRankNormal::new(c, v, 0, mean, vec![0f32; c * v], vec![0f32; 0]).unwrap()
    }

    #[test]
    fn labels_are_as_frequent_as_their_probabilities() {
        for classes in [1, 2, 4] {
            let d = logits(classes, 100);
            let samples = 20_000u32;
            let maps = CategoricalSampler::new(&d, 9).labels(0..u64::from(samples)).unwrap();
            for voxel in 0..100 {
                let exp: Vec<f64> =
                    (0..classes).map(|k| f64::from(d.mean().get(k * 100 + voxel)).exp()).collect();
                let total: f64 = exp.iter().sum::<f64>() + if classes == 1 { 1.0 } else { 0.0 };
                for (k, e) in exp.iter().enumerate() {
                    let (label, p) = (k + usize::from(classes == 1), e / total);
                    let found = maps.iter().filter(|map| usize::from(map.labels()[voxel]) == label).count();
                    let error = (p * (1.0 - p) / f64::from(samples)).sqrt();
                    let share = found as f64 / f64::from(samples);
                    assert!((share - p).abs() < 5.0 * error, "{classes} {voxel} {label}: {share}, not {p}");
                }
            }
        }
    }

    #[test]
    fn a_sample_depends_on_seed_and_number_alone() {
        let d = logits(3, CHUNK + 70);
        let sampler = CategoricalSampler::new(&d, 1);
        let all = sampler.labels(0..5).unwrap();
        assert_eq!(sampler.labels(3..5).unwrap(), all[3..]);
        assert_ne!(all[0], all[1]);
        assert_ne!(CategoricalSampler::new(&d, 2).labels(0..1).unwrap()[0], all[0]);
        assert!(sampler.labels(4..4).is_err());
        // The first voxels of an image do not depend on how many follow.
        let mean: Vec<f32> = (0..3)
            .flat_map(|k| (0..10).map(move |x| (k, x)))
            .map(|(k, x)| d.mean().get(k * (CHUNK + 70) + x))
            .collect();
        let few = LowRankNormal::new(3, 10, 0, mean, vec![0f32; 30], vec![0f32; 0]).unwrap();
        let short = CategoricalSampler::new(&few, 1).labels(0..1).unwrap();
        assert_eq!(short[0].labels(), &all[0].labels()[..10]);
    }
}
