//! Softmax over the classes of a tile and the likelihood of labels, in binary32 with exactly rounded operations.

use super::kernel::Row;
use crate::random::{LANES, TILE, exp_nonpositive, ln_lanes};

/// Replaces logits by probabilities, and gives ln Σ exp(η − max) for every voxel.
///
/// A single class is the Bernoulli case: its logit becomes the sigmoid, and the normaliser is ln(1 + e^−|η|).
#[inline(always)]
pub(crate) fn tile_softmax(rows: &mut [Row], normaliser: &mut Row) {
    for from in (0..TILE).step_by(LANES) {
        let mut sum = [0.0f32; LANES];
        if let [row] = rows {
            for lane in 0..LANES {
                // σ(x) = 1 / (1 + e^−x) for x ≥ 0 and e^x / (1 + e^x) otherwise: no exponential overflows.
                let x = row[from + lane];
                let e = exp_nonpositive(-x.abs());
                sum[lane] = 1.0 + e;
                row[from + lane] = (if x >= 0.0 { 1.0 } else { e }) / sum[lane];
            }
        } else {
            let mut largest = [f32::NEG_INFINITY; LANES];
            for row in rows.iter() {
                for lane in 0..LANES {
                    let x = row[from + lane];
                    largest[lane] = if x > largest[lane] { x } else { largest[lane] };
                }
            }
            for row in rows.iter_mut() {
                for lane in 0..LANES {
                    let e = exp_nonpositive(row[from + lane] - largest[lane]);
                    row[from + lane] = e;
                    sum[lane] += e;
                }
            }
            for row in rows.iter_mut() {
                for lane in 0..LANES {
                    row[from + lane] /= sum[lane];
                }
            }
        }
        normaliser[from..from + LANES].copy_from_slice(&ln_lanes(&sum));
    }
}

/// log p(label) for every voxel of a tile, from its logits and the normaliser of [`tile_softmax`]: η_label − max −
/// ln Σ exp(η − max), never the log of a probability.
#[inline(always)]
pub(crate) fn tile_log_probability(logits: &[Row], normaliser: &Row, labels: &[u8; TILE], out: &mut Row) {
    if let [row] = logits {
        for x in 0..TILE {
            let signed = if labels[x] == 0 { -row[x] } else { row[x] };
            out[x] = (if signed < 0.0 { signed } else { 0.0 }) - normaliser[x];
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
        out[x] = (out[x] - largest[x]) - normaliser[x];
    }
}
