//! Softmax over the classes of a tile and the likelihood of labels, in binary32 with exactly rounded operations.

use super::kernel::Row;
use crate::random::{LANES, TILE, exp_nonpositive, ln_lanes};

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
