//! One pass over the voxels that serves all samples: chunks in parallel, tiles within, samples innermost.

use std::ops::Range;

use rayon::prelude::*;

use super::Sampler;
use super::kernel::{Draw, Row, TileParameters, tile_logits};
use crate::random::TILE;
use crate::simd::vectorized;

/// Voxels per unit of parallel work. Fixed, so that sums over a chunk never depend on the thread count.
pub(crate) const CHUNK: usize = 32 * TILE;

impl Sampler<'_> {
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
