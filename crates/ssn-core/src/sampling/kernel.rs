//! The inner loop of sampling: the logits of one tile of 64 voxels for one sample.
//!
//! A tile's parameters are copied once into a small scratch, widened and padded, and then serve any number of
//! samples from the first-level cache. The order of operations is part of the sampling specification.

use crate::distribution::LowRankNormal;
use crate::random::{LANES, TILE, normal_tile};

/// One row of a tile: a value for each of its 64 voxels.
pub(crate) type Row = [f32; TILE];

/// The parameters of one tile, in single precision and padded with zeros beyond the last voxel.
pub(crate) struct TileParameters {
    /// μ, a row per class.
    mean: Vec<Row>,
    /// √D, a row per class.
    deviation: Vec<Row>,
    /// P, a row per class and column: row `class·r + q`, so that a class reads memory in order.
    factor: Vec<Row>,
    rank: usize,
}

impl TileParameters {
    pub(crate) fn for_distribution(distribution: &LowRankNormal) -> Self {
        let (c, r) = (distribution.classes(), distribution.rank());
        let rows = |n| vec![[0.0; TILE]; n];
        Self { mean: rows(c), deviation: rows(c), factor: rows(c * r), rank: r }
    }

    /// Reads the parameters of the voxels `start …`, at most [`TILE`] of them.
    pub(crate) fn load(&mut self, distribution: &LowRankNormal, start: usize) {
        let (c, v, r) = (distribution.classes(), distribution.voxels(), self.rank);
        let count = TILE.min(v - start);
        for class in 0..c {
            let at = class * v + start;
            distribution.mean().read(at, &mut self.mean[class][..count]);
            distribution.diagonal().read(at, &mut self.deviation[class][..count]);
            for x in &mut self.deviation[class] {
                *x = x.sqrt();
            }
            for q in 0..r {
                distribution.factor().read(q * c * v + at, &mut self.factor[class * r + q][..count]);
            }
            if count < TILE {
                self.mean[class][count..].fill(0.0);
                self.deviation[class][count..].fill(0.0);
                self.factor[class * r..(class + 1) * r].iter_mut().for_each(|row| row[count..].fill(0.0));
            }
        }
    }
}

/// What all voxels of one sample share.
pub(crate) struct Draw<'a> {
    pub(crate) seed: u64,
    /// The sample's number.
    pub(crate) number: u64,
    /// g_q ε_q, `[r]`.
    pub(crate) rank_noise: &'a [f32],
    /// T·w_c, `[c]`.
    pub(crate) noise_scales: &'a [f32],
    pub(crate) diagonal_noise: bool,
}

/// The logits of one tile in one sample, a row per class.
#[inline(always)]
pub(crate) fn tile_logits(tile: u32, parameters: &TileParameters, draw: &Draw<'_>, logits: &mut [Row]) {
    let mut noise = [0.0; TILE];
    for (class, out) in logits.iter_mut().enumerate() {
        if draw.noise_scales[class] == 0.0 {
            out.copy_from_slice(&parameters.mean[class]);
            continue;
        }
        if draw.diagonal_noise {
            normal_tile(draw.seed, class as u32, draw.number, tile, &mut noise);
        }
        let columns = &parameters.factor[class * parameters.rank..][..draw.rank_noise.len()];
        let (mean, deviation) = (&parameters.mean[class], &parameters.deviation[class]);
        let scale = draw.noise_scales[class];
        for from in (0..TILE).step_by(LANES) {
            let mut sum = [0.0f32; LANES];
            for (column, &z) in columns.iter().zip(draw.rank_noise) {
                for lane in 0..LANES {
                    sum[lane] += z * column[from + lane];
                }
            }
            if draw.diagonal_noise {
                for lane in 0..LANES {
                    sum[lane] += deviation[from + lane] * noise[from + lane];
                }
            }
            // Whole vectors are stored from a local array: stored lane by lane they would be taken apart.
            let mut result = [0.0; LANES];
            for lane in 0..LANES {
                result[lane] = mean[from + lane] + scale * sum[lane];
            }
            out[from..from + LANES].copy_from_slice(&result);
        }
    }
}

/// The class with the largest logit for every voxel of a tile; the lowest of equal ones.
///
/// A single class is the Bernoulli case: label 1 where its logit is positive.
#[inline(always)]
pub(crate) fn tile_labels(logits: &[Row], labels: &mut [u8; TILE]) {
    if let [row] = logits {
        for (label, &logit) in labels.iter_mut().zip(row) {
            *label = u8::from(logit > 0.0);
        }
        return;
    }
    for from in (0..TILE).step_by(LANES) {
        let mut best = [0.0f32; LANES];
        best.copy_from_slice(&logits[0][from..from + LANES]);
        let mut label = [0u32; LANES];
        for (class, row) in logits.iter().enumerate().skip(1) {
            for lane in 0..LANES {
                let larger = row[from + lane] > best[lane];
                best[lane] = if larger { row[from + lane] } else { best[lane] };
                label[lane] = if larger { class as u32 } else { label[lane] };
            }
        }
        labels[from..from + LANES].copy_from_slice(&label.map(|label| label as u8));
    }
}
