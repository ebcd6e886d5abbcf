//! Which voxels of a case the browser needs, and which cannot change whatever is steered.
//!
//! Let `m` be the label of the mean and `k` another class. Under temperature T, class scales w and mode weights g, the logit
//! of a class moves by at most `|T·w|·|a|` with `a = Σ_q g_q ε_q P_q + √D ε`. By Cauchy and Schwarz the sum is at most
//! `max|g|·|ε|·|P|`, for all voxels and all settings at once, and the length of the noise ε of r columns exceeds R only
//! in one sample of a million. A normal number of ours is never larger than 6.7. So with
//! `A_k = max|g|·R·|P_k| + 6.7·√D_k`, the gap `μ_m − μ_k` never shrinks by more than `max|T·w|·(A_m + A_k)` in the
//! other samples. A voxel is left out where what remains of the gap makes its label almost certain.

use rayon::prelude::*;
use ssn_core::{LowRankNormal, Values};
use ssn_eval::{DistributionFile, PredictionKind};

/// The largest temperature that the page offers.
pub(crate) const TEMPERATURE: f64 = 3.0;
/// The largest scale of a class, in either direction.
pub(crate) const CLASS_SCALE: f64 = 3.0;
/// The largest weight of a mode, in either direction.
pub(crate) const MODE_WEIGHT: f64 = 3.0;
/// The rule in a sentence.
pub(crate) const RULE: &str = "Left out are voxels whose label has a probability of at least 0.999 under every temperature \
    up to 3, all class scales from -3 to 3 and all mode weights from -3 to 3, in all samples but at most one of a million.";

/// The share of samples for which the rule may fail.
const FAILING: f64 = 1e-6;
/// The probability of every label that is left out is at least 1 minus this.
const UNSURE: f64 = 1e-3;
/// The largest normal number of the sampling specification (`docs/reference/sampling.md`, section 2).
const LARGEST_NORMAL: f64 = 6.7;
/// Far above what single precision loses in a logit, as a share of its terms.
const ROUNDING: f64 = 1e-5;
/// Regions of so many voxels are small enough to be kept whole: a picture of 512 × 512.
const SMALL: usize = 1 << 18;
/// Voxels per unit of parallel work.
const CHUNK: usize = 1 << 12;

/// The voxels of the region that a package holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptVoxels {
    /// Their numbers in the region, ascending; nothing means all.
    pub(crate) voxels: Option<Vec<u32>>,
    /// How many are left out because they cannot change.
    pub(crate) frozen: usize,
}

impl KeptVoxels {
    /// Chooses the voxels of a file: inside its mask, and of a large stochastic one those that can change.
    pub(crate) fn of(file: &DistributionFile) -> Self {
        let (distribution, v) = (file.distribution(), file.distribution().voxels());
        let mut keep = match file.mask() {
            Some(mask) => mask.iter().map(|&inside| inside > 0).collect(),
            None => vec![true; v],
        };
        let inside = count(&keep);
        if file.description().kind == PredictionKind::Stochastic && v > SMALL {
            leave_out_certain(distribution, &mut keep);
        }
        let kept = count(&keep);
        let numbers = || keep.iter().enumerate().filter(|(_, kept)| **kept).map(|(x, _)| x as u32).collect();
        Self { voxels: (kept < v).then(numbers), frozen: inside - kept }
    }

    /// How many voxels are kept of a region of `v`.
    pub(crate) fn count(&self, v: usize) -> usize {
        self.voxels.as_ref().map_or(v, Vec::len)
    }
}

fn count(keep: &[bool]) -> usize {
    keep.iter().filter(|kept| **kept).count()
}

/// Clears `keep` `[v]` where no setting can change the label.
fn leave_out_certain(distribution: &LowRankNormal, keep: &mut [bool]) {
    let c = distribution.classes();
    let radius = noise_radius(distribution.rank());
    // The odds against the label, shared by the other classes.
    let sure = ((1.0 - UNSURE) * c.saturating_sub(1).max(1) as f64 / UNSURE).ln();
    keep.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, keep)| {
        let (start, count) = (chunk * CHUNK, keep.len());
        let (means, reaches) = reaches(distribution, start, count, radius);
        for x in 0..count {
            let of = |class: usize| (means[class * count + x], reaches[class * count + x]);
            if is_certain(c, of, sure) {
                keep[x] = false;
            }
        }
    });
}

/// Whether the label of a voxel is certain, given mean and largest change `A` of the logit of each class.
fn is_certain(classes: usize, of: impl Fn(usize) -> (f64, f64), sure: f64) -> bool {
    let scale = TEMPERATURE * CLASS_SCALE;
    let safe =
        |gap: f64, reach: f64, size: f64| gap - scale * reach > sure + ROUNDING * (size + scale * reach);
    if classes == 1 {
        let (mean, reach) = of(0);
        return safe(mean.abs(), reach, mean.abs());
    }
    let top = (1..classes).fold(0, |top, class| if of(class).0 > of(top).0 { class } else { top });
    let (top_mean, top_reach) = of(top);
    (0..classes).filter(|class| *class != top).all(|class| {
        let (mean, reach) = of(class);
        safe(top_mean - mean, top_reach + reach, top_mean.abs() + mean.abs())
    })
}

/// The means and the largest changes `A`, `[c, count]` each, of the voxels from `start` on.
fn reaches(distribution: &LowRankNormal, start: usize, count: usize, radius: f64) -> (Vec<f64>, Vec<f64>) {
    let (c, v, r) = (distribution.classes(), distribution.voxels(), distribution.rank());
    let mut row = vec![0f32; count];
    let mut read = |values: &Values, at: usize| {
        values.read(at, &mut row);
        row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>()
    };
    let (mut means, mut all) = (vec![], vec![]);
    for class in 0..c {
        let at = class * v + start;
        means.extend(read(distribution.mean(), at));
        let mut squares = vec![0f64; count];
        for q in 0..r {
            let column = read(distribution.factor(), q * c * v + at);
            squares.iter_mut().zip(column).for_each(|(sum, x)| *sum += x * x);
        }
        let variances = read(distribution.diagonal(), at);
        let reach = |(square, variance): (f64, f64)| {
            MODE_WEIGHT * radius * square.sqrt() + LARGEST_NORMAL * variance.sqrt()
        };
        all.extend(squares.into_iter().zip(variances).map(reach));
    }
    (means, all)
}

/// A length that r independent normal numbers together exceed with a probability of at most [`FAILING`].
///
/// For an even number of them the probability is `e^{-y} Σ_{j < r/2} y^j / j!` with `y` half the squared length; an odd
/// number is rounded up.
fn noise_radius(rank: usize) -> f64 {
    if rank == 0 {
        return 0.0;
    }
    let terms = rank.div_ceil(2);
    let probability = |y: f64| {
        // Each term by itself in logarithms: large ranks have terms that no number holds.
        let mut term = -y;
        let mut sum = term.exp();
        for j in 1..terms {
            term += (y / j as f64).ln();
            sum += term.exp();
        }
        sum
    };
    let (mut low, mut high) = (0.0, rank as f64 + 100.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if probability(middle) > FAILING { low = middle } else { high = middle }
    }
    (2.0 * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_noise_has_its_probability() {
        // Of two numbers the squared length is exponential.
        assert!((noise_radius(2) - (2.0 * 1e6f64.ln()).sqrt()).abs() < 1e-9);
        assert_eq!(noise_radius(1), noise_radius(2), "odd ranks are rounded up");
        // The quantile of χ² with ten degrees of freedom, by numerical integration of its density.
        assert!((noise_radius(10).powi(2) - CHI_SQUARED_10).abs() < 1e-3, "{}", noise_radius(10).powi(2));
        assert!(noise_radius(200) > 200f64.sqrt() && noise_radius(200) < 20.0);
        assert_eq!(noise_radius(0), 0.0);
    }

    const CHI_SQUARED_10: f64 = 46.863;

    #[test]
    fn a_label_is_certain_only_beyond_reach() {
        let sure = 999f64.ln();
        // Two classes 20 apart; together they may reach (20 - 6.9) / 9.
        let of = |reach: f64| move |class: usize| ([10.0, -10.0][class], reach);
        assert!(is_certain(2, of(0.72), sure) && !is_certain(2, of(0.74), sure));
        // The class that is nearest decides.
        let three = |class: usize| ([10.0, -10.0, 5.0][class], 0.1);
        assert!(!is_certain(3, three, sure));
        assert!(is_certain(1, |_| (-10.0, 0.3), sure) && !is_certain(1, |_| (-10.0, 0.4), sure));
        // Logits so large that single precision no longer tells them apart are never certain.
        assert!(!is_certain(2, |class| ([1e8, 1e8 - 100.0][class], 0.0), sure));
    }
}
