//! Samples of a distribution: label maps, logits or probabilities.
//!
//! Sample `i` is a function of the seed and `i` alone. Threads share out the voxels in chunks; no result
//! depends on how many threads there are or on how samples are grouped into calls.

mod categorical;
pub(crate) mod kernel;
mod softmax;
mod sweep;

use std::ops::Range;

use crate::distribution::LowRankNormal;
use crate::error::{CoreError, Result};
use crate::labels::LabelMap;
use crate::random::{RANK_STREAM, TILE, fill_normals};
use crate::steering::Steering;
pub use categorical::CategoricalSampler;
pub(crate) use kernel::{Row, tile_labels};
pub(crate) use softmax::{tile_log_probability, tile_softmax};
pub(crate) use sweep::{CHUNK, split_rows};

/// Draws samples of one distribution with one seed and one steering.
#[derive(Debug)]
pub struct Sampler<'a> {
    distribution: &'a LowRankNormal,
    seed: u64,
    noise_scales: Vec<f32>,
    rank_weights: Vec<f32>,
    diagonal_noise: bool,
}

impl<'a> Sampler<'a> {
    /// A sampler; the steering's weights must fit the distribution.
    pub fn new(distribution: &'a LowRankNormal, seed: u64, steering: &Steering) -> Result<Self> {
        Ok(Self {
            distribution,
            seed,
            noise_scales: steering.noise_scales(distribution)?,
            rank_weights: steering.rank_weights(distribution)?,
            diagonal_noise: steering.diagonal_noise,
        })
    }

    /// The distribution that is sampled.
    pub fn distribution(&self) -> &LowRankNormal {
        self.distribution
    }

    /// The label maps of the samples with these numbers: the class with the largest logit, the lowest of equals.
    ///
    /// With one class the label is 1 where the logit is positive, as for the Bernoulli likelihood.
    pub fn labels(&self, samples: Range<u64>) -> Result<Vec<LabelMap>> {
        let v = self.distribution.voxels();
        let mut maps = vec![vec![0u8; v]; count(&samples)?];
        self.label_rows(samples, &mut maps);
        maps.into_iter().map(|labels| LabelMap::new(labels, label_count(self.distribution))).collect()
    }

    fn label_rows(&self, samples: Range<u64>, maps: &mut [Vec<u8>]) {
        self.sweep(
            samples,
            &mut split_rows(maps),
            #[inline(always)]
            |rows: &mut Vec<&mut [u8]>, at, sample, logits| {
                let mut labels = [0u8; TILE];
                tile_labels(logits, &mut labels);
                let out = &mut rows[sample][at..];
                let count = out.len().min(TILE);
                out[..count].copy_from_slice(&labels[..count]);
            },
        );
    }

    /// The logits of the samples with these numbers, one `[c, v]` array each.
    pub fn logits(&self, samples: Range<u64>) -> Result<Vec<Vec<f32>>> {
        self.class_rows(
            samples,
            #[inline(always)]
            |_| {},
        )
    }

    /// The softmax of the logits of the samples with these numbers, one `[c, v]` array each.
    pub fn probabilities(&self, samples: Range<u64>) -> Result<Vec<Vec<f32>>> {
        self.class_rows(
            samples,
            #[inline(always)]
            |logits| tile_softmax(logits, &mut [0.0; TILE]),
        )
    }

    /// One `[c, v]` array per sample, with the logits of each tile passed through `map`.
    fn class_rows(&self, samples: Range<u64>, map: impl Fn(&mut [Row]) + Sync) -> Result<Vec<Vec<f32>>> {
        let (c, v) = (self.distribution.classes(), self.distribution.voxels());
        let mut rows = vec![vec![0f32; v]; count(&samples)? * c];
        self.sweep(
            samples,
            &mut split_rows(&mut rows),
            #[inline(always)]
            |rows: &mut Vec<&mut [f32]>, at, sample, logits| {
                map(logits);
                for (class, row) in logits.iter().enumerate() {
                    let out = &mut rows[sample * c + class][at..];
                    let count = out.len().min(TILE);
                    out[..count].copy_from_slice(&row[..count]);
                }
            },
        );
        Ok(rows.chunks(c).map(|rows| rows.concat()).collect())
    }

    /// g_q ε_q for each sample and column of the factor, `[m][r]`.
    fn rank_noise(&self, samples: Range<u64>) -> Vec<Vec<f32>> {
        samples
            .map(|number| {
                let mut noise = vec![0.0; self.rank_weights.len()];
                fill_normals(self.seed, RANK_STREAM, number, &mut noise);
                noise.iter_mut().zip(&self.rank_weights).for_each(|(e, g)| *e *= g);
                noise
            })
            .collect()
    }
}

/// How many labels a sample may have: one per class, and two for the Bernoulli case of a single class.
pub(crate) fn label_count(distribution: &LowRankNormal) -> usize {
    distribution.classes().max(2)
}

/// How many samples a range asks for; none is an error.
pub(crate) fn count(samples: &Range<u64>) -> Result<usize> {
    match samples.end.saturating_sub(samples.start) {
        0 => Err(CoreError::Empty { field: "samples" }),
        n => Ok(n as usize),
    }
}

#[cfg(test)]
mod tests;
