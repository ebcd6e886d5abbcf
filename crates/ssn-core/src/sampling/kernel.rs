//! The inner loops of sampling on one tile of 64 voxels: logits, labels, softmax, and the likelihood of labels.
//!
//! A tile's parameters are copied once into a small scratch, widened and padded, and then serve any number of
//! samples from the first-level cache. The order of operations is part of the sampling specification.

use crate::distribution::LowRankNormal;
use crate::random::{LANES, TILE, exp_nonpositive, ln_lanes, normal_tile};

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

/// Replaces logits by probabilities, and gives ln Σ exp(η − max) for every voxel.
///
/// The largest logit contributes exactly 1 to the sum. The rest is summed apart, so that the logarithm keeps what
/// 1 + rest would round away: the likelihood of confident voxels adds up over millions of them.
///
/// A single class is the Bernoulli case: its logit becomes the sigmoid, and the normalizer is ln(1 + e^−|η|).
#[inline(always)]
pub(crate) fn tile_softmax(rows: &mut [Row], normalizer: &mut Row) {
    for from in (0..TILE).step_by(LANES) {
        let mut rest = [0.0f32; LANES];
        if let [row] = rows {
            for lane in 0..LANES {
                // σ(x) = 1 / (1 + e^−x) for x ≥ 0 and e^x / (1 + e^x) otherwise: no exponential overflows.
                let x = row[from + lane];
                rest[lane] = exp_nonpositive(-x.abs());
                row[from + lane] = (if x >= 0.0 { 1.0 } else { rest[lane] }) / (1.0 + rest[lane]);
            }
        } else {
            let (mut largest, mut top) = ([f32::NEG_INFINITY; LANES], [0u32; LANES]);
            for (class, row) in rows.iter().enumerate() {
                for lane in 0..LANES {
                    let larger = row[from + lane] > largest[lane];
                    largest[lane] = if larger { row[from + lane] } else { largest[lane] };
                    top[lane] = if larger { class as u32 } else { top[lane] };
                }
            }
            for (class, row) in rows.iter_mut().enumerate() {
                for lane in 0..LANES {
                    let e = exp_nonpositive(row[from + lane] - largest[lane]);
                    row[from + lane] = e;
                    rest[lane] += if top[lane] == class as u32 { 0.0 } else { e };
                }
            }
            for row in rows.iter_mut() {
                for lane in 0..LANES {
                    row[from + lane] /= 1.0 + rest[lane];
                }
            }
        }
        normalizer[from..from + LANES].copy_from_slice(&ln_one_plus(&rest));
    }
}

/// ln(1 + x) for x ≥ 0, accurate also where 1 + x rounds: ln(u) + (x − (u − 1)) / u with u = 1 + x rounded.
#[inline(always)]
fn ln_one_plus(x: &[f32; LANES]) -> [f32; LANES] {
    let mut rounded = [0.0; LANES];
    for lane in 0..LANES {
        rounded[lane] = 1.0 + x[lane];
    }
    let mut out = ln_lanes(&rounded);
    for lane in 0..LANES {
        out[lane] += (x[lane] - (rounded[lane] - 1.0)) / rounded[lane];
    }
    out
}

/// log p(label) for every voxel of a tile, from its logits and the normalizer of [`tile_softmax`]: η_label − max −
/// ln Σ exp(η − max), never the log of a probability.
#[inline(always)]
pub(crate) fn tile_log_probability(logits: &[Row], normalizer: &Row, labels: &[u8; TILE], out: &mut Row) {
    if let [row] = logits {
        for x in 0..TILE {
            let signed = if labels[x] == 0 { -row[x] } else { row[x] };
            out[x] = (if signed < 0.0 { signed } else { 0.0 }) - normalizer[x];
        }
        return;
    }
    let mut largest = [f32::NEG_INFINITY; TILE];
    out.fill(0.0);
    for (class, row) in logits.iter().enumerate() {
        for x in 0..TILE {
            largest[x] = if row[x] > largest[x] { row[x] } else { largest[x] };
            out[x] = if u32::from(labels[x]) == class as u32 { row[x] } else { out[x] };
        }
    }
    for x in 0..TILE {
        out[x] = (out[x] - largest[x]) - normalizer[x];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_one_plus_is_accurate_down_to_nothing() {
        for i in 0..2000 {
            let x = 10f32.powf(-38.0 + 0.0195 * i as f32);
            let (found, exact) = (f64::from(ln_one_plus(&[x; LANES])[0]), f64::from(x).ln_1p());
            assert!((found - exact).abs() <= 3e-7 * exact, "{x}: {found} {exact}");
        }
        assert_eq!(ln_one_plus(&[0.0; LANES]), [0.0; LANES]);
    }
}
