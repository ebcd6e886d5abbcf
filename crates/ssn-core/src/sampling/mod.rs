//! Samples of a distribution: label maps, logits or probabilities.
//!
//! Sample `i` is a function of the seed and `i` alone. Threads share out the voxels in chunks; no result
//! depends on how many threads there are or on how samples are grouped into calls.

mod categorical;
mod kernel;

use std::ops::Range;

use rayon::prelude::*;

use crate::distribution::LowRankNormal;
use crate::error::{CoreError, Result};
use crate::labels::LabelMap;
use crate::random::{RANK_STREAM, TILE, fill_normals};
use crate::simd::vectorized;
pub use categorical::CategoricalSampler;
use kernel::{Draw, TileParameters, tile_labels, tile_logits};
pub(crate) use kernel::{Row, tile_log_probability, tile_softmax};

/// Voxels per unit of parallel work. Fixed, so that sums over a chunk never depend on the thread count.
pub(crate) const CHUNK: usize = 32 * TILE;

/// How samples are changed after inference, with their noise held:
/// η = μ + T·w_c·(Σ_q g_q ε_q P_q + √D ε): temperature T, class scales w, mode weights g, and the diagonal
/// noise on or off. The default changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Steering {
    /// One temperature for the whole distribution; 0 gives the mean.
    pub temperature: f32,
    /// A scale per class, empty for 1 everywhere.
    pub class_scales: Vec<f32>,
    /// A weight per column of the factor, empty for 1 everywhere.
    pub mode_weights: Vec<f32>,
    /// Whether the independent noise of the diagonal is added.
    pub diagonal_noise: bool,
}

impl Default for Steering {
    fn default() -> Self {
        Self { temperature: 1.0, class_scales: vec![], mode_weights: vec![], diagonal_noise: true }
    }
}

/// The largest size of a mode weight, and of temperature times class scale.
pub const MAX_WEIGHT: f32 = 1e6;

impl Steering {
    /// T·w_c for every class of the distribution, `[c]`.
    fn noise_scales(&self, distribution: &LowRankNormal) -> Result<Vec<f32>> {
        usable("temperature", &[self.temperature])?;
        let scales = weights("class_scales", &self.class_scales, distribution.classes())?;
        let scales: Vec<f32> = scales.into_iter().map(|w| self.temperature * w).collect();
        usable("temperature times class_scales", &scales)?;
        Ok(scales)
    }

    /// g_q for every column of the factor, `[r]`.
    fn rank_weights(&self, distribution: &LowRankNormal) -> Result<Vec<f32>> {
        weights("mode_weights", &self.mode_weights, distribution.rank())
    }
}

/// The given weights, or ones where none are given.
fn weights(field: &'static str, given: &[f32], expected: usize) -> Result<Vec<f32>> {
    if given.is_empty() {
        return Ok(vec![1.0; expected]);
    }
    if given.len() != expected {
        return Err(CoreError::Length { field, expected, found: given.len() });
    }
    usable(field, given)?;
    Ok(given.to_vec())
}

fn usable(field: &'static str, values: &[f32]) -> Result<()> {
    let Some(index) = values.iter().position(|x| !matches!(x.abs(), 0.0..=MAX_WEIGHT)) else { return Ok(()) };
    let value = f64::from(values[index]);
    Err(if value.is_finite() {
        CoreError::OutOfRange { field, index, value, expected: "between -1e6 and 1e6" }
    } else {
        CoreError::NonFinite { field, index, value }
    })
}

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
        self.sweep(
            samples,
            &mut split_rows(&mut maps),
            #[inline(always)]
            |rows: &mut Vec<&mut [u8]>, at, sample, logits| {
                let mut labels = [0u8; TILE];
                tile_labels(logits, &mut labels);
                let out = &mut rows[sample][at..];
                let count = out.len().min(TILE);
                out[..count].copy_from_slice(&labels[..count]);
            },
        );
        maps.into_iter().map(|labels| LabelMap::new(labels, label_count(self.distribution))).collect()
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

    /// Visits every tile of every chunk with the logits of every sample.
    ///
    /// `states` holds what a chunk of [`CHUNK`] voxels works on, in the order of the chunks. `visit` receives
    /// the chunk's state, the first voxel of the tile counted from the chunk's start, the sample counted from
    /// the range's start, and the tile's logits, a row per class, which it may change.
    pub(crate) fn sweep<S: Send>(
        &self,
        samples: Range<u64>,
        states: &mut [S],
        visit: impl Fn(&mut S, usize, usize, &mut [Row]) + Sync,
    ) {
        let voxels = self.distribution.voxels();
        let rank_noise = self.rank_noise(samples.clone());
        states.par_iter_mut().enumerate().for_each_init(
            || {
                (
                    TileParameters::for_distribution(self.distribution),
                    vec![[0.0; TILE]; self.distribution.classes()],
                )
            },
            |(parameters, logits), (chunk, state)| {
                let start = chunk * CHUNK;
                for at in (start..voxels.min(start + CHUNK)).step_by(TILE) {
                    parameters.load(self.distribution, at);
                    vectorized(
                        #[inline(always)]
                        || {
                            for (sample, noise) in rank_noise.iter().enumerate() {
                                let draw = Draw {
                                    seed: self.seed,
                                    number: samples.start + sample as u64,
                                    rank_noise: noise,
                                    noise_scales: &self.noise_scales,
                                    diagonal_noise: self.diagonal_noise,
                                };
                                tile_logits((at / TILE) as u32, parameters, &draw, logits);
                                visit(state, at - start, sample, logits);
                            }
                        },
                    );
                }
            },
        );
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

/// Splits rows of `v` values into chunks of [`CHUNK`]: element `k` holds the `k`-th piece of every row.
pub(crate) fn split_rows<T>(rows: &mut [Vec<T>]) -> Vec<Vec<&mut [T]>> {
    let chunks = rows.first().map_or(0, |row| row.len().div_ceil(CHUNK));
    let mut split: Vec<Vec<&mut [T]>> = (0..chunks).map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (pieces, piece) in split.iter_mut().zip(row.chunks_mut(CHUNK)) {
            pieces.push(piece);
        }
    }
    split
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
mod tests {
    use super::*;

    #[test]
    fn steering_is_checked() {
        let d = LowRankNormal::new(2, 10, 3, vec![0.0; 20], vec![1.0; 20], vec![1.0; 60]).unwrap();
        let with = |steering: Steering| Sampler::new(&d, 0, &steering).unwrap_err().to_string();
        assert_eq!(
            with(Steering { class_scales: vec![1.0; 3], ..Steering::default() }),
            "class_scales has length 3, but the shape asks for 2"
        );
        assert_eq!(
            with(Steering { mode_weights: vec![1.0, f32::NAN, 0.0], ..Steering::default() }),
            "mode_weights[1] is NaN, but every value must be finite"
        );
        assert!(
            with(Steering { temperature: f32::INFINITY, ..Steering::default() }).starts_with("temperature")
        );
        assert!(Sampler::new(&d, 0, &Steering::default()).unwrap().labels(4..4).is_err());
    }
}
