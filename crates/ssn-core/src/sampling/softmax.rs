//! Softmax and its logarithm over the classes of a tile, in binary32 with exactly rounded operations.

use super::kernel::Row;
use crate::random::{LANES, TILE, exp_nonpositive, ln_lanes};

/// Replaces logits by probabilities. A single class is the Bernoulli case: the sigmoid of its logit.
#[inline(always)]
pub(crate) fn tile_probabilities(rows: &mut [Row]) {
    if let [row] = rows {
        for x in row {
            // σ(x) = 1 / (1 + e^−x) for x ≥ 0 and e^x / (1 + e^x) otherwise: no exponential overflows.
            let e = exp_nonpositive(-x.abs());
            *x = (if *x >= 0.0 { 1.0 } else { e }) / (1.0 + e);
        }
        return;
    }
    for from in (0..TILE).step_by(LANES) {
        let largest = largest_of_classes(rows, from);
        let mut sum = [0.0f32; LANES];
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
}

/// log p(label) for every voxel of a tile: η_label − max − ln Σ exp(η − max), never the log of a probability.
/// A single class is the Bernoulli case.
#[inline(always)]
pub(crate) fn tile_log_probability(logits: &[Row], labels: &[u8; TILE], out: &mut Row) {
    if let [row] = logits {
        for from in (0..TILE).step_by(LANES) {
            let mut one_plus_e = [0.0; LANES];
            for lane in 0..LANES {
                one_plus_e[lane] = 1.0 + exp_nonpositive(-row[from + lane].abs());
            }
            let ln = ln_lanes(&one_plus_e);
            for lane in 0..LANES {
                let x = row[from + lane];
                let signed = if labels[from + lane] == 0 { -x } else { x };
                let negative_part = if signed < 0.0 { signed } else { 0.0 };
                out[from + lane] = negative_part - ln[lane];
            }
        }
        return;
    }
    for from in (0..TILE).step_by(LANES) {
        let largest = largest_of_classes(logits, from);
        let (mut sum, mut chosen) = ([0.0f32; LANES], [0.0f32; LANES]);
        for (class, row) in logits.iter().enumerate() {
            for lane in 0..LANES {
                let below = row[from + lane] - largest[lane];
                sum[lane] += exp_nonpositive(below);
                let is_label = u32::from(labels[from + lane]) == class as u32;
                chosen[lane] = if is_label { below } else { chosen[lane] };
            }
        }
        let ln = ln_lanes(&sum);
        for lane in 0..LANES {
            out[from + lane] = chosen[lane] - ln[lane];
        }
    }
}

#[inline(always)]
fn largest_of_classes(rows: &[Row], from: usize) -> [f32; LANES] {
    let mut largest = [f32::NEG_INFINITY; LANES];
    for row in rows {
        for lane in 0..LANES {
            let x = row[from + lane];
            largest[lane] = if x > largest[lane] { x } else { largest[lane] };
        }
    }
    largest
}
