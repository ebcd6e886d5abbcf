//! Means, quantiles and bootstrap intervals over scores that may be undefined.

use rayon::prelude::*;

use crate::{CoreError, Result};

/// The most resamples of a bootstrap; more only refine the third digit of an interval.
pub const MAX_RESAMPLES: usize = 1_000_000;

/// The increment of SplitMix64: 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mean ± standard error of the values that are defined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean; `None` without a value.
    pub mean: Option<f64>,
    /// s / √count with s² = Σ(x − mean)² / (count − 1); `None` below two values.
    pub standard_error: Option<f64>,
    /// The number of values.
    pub count: usize,
    /// The number of `None` that were left out.
    pub skipped: usize,
}

impl Summary {
    /// Summarizes values; `None` are counted but otherwise left out.
    ///
    /// # Errors
    /// [`CoreError::NonFinite`] for a value that is infinite or not a number.
    pub fn of(values: &[Option<f64>]) -> Result<Self> {
        let defined = defined(values)?;
        Ok(Self::of_finite(&defined, values.len() - defined.len()))
    }

    /// [`Summary::of`] for scores of this crate, which are finite wherever they are defined.
    pub(super) fn of_scores(values: &[Option<f64>]) -> Self {
        let defined: Vec<f64> = values.iter().copied().flatten().collect();
        Self::of_finite(&defined, values.len() - defined.len())
    }

    fn of_finite(values: &[f64], skipped: usize) -> Self {
        let count = values.len();
        let mean = mean(values);
        let standard_error = mean.filter(|_| count > 1).map(|mean| {
            let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
            (squares / (count - 1) as f64 / count as f64).sqrt()
        });
        Self { mean, standard_error, count, skipped }
    }
}

/// The quantile `q` of unsorted values by linear interpolation; `None` without a value.
///
/// With the n values in ascending order x_0 … x_{n−1} and h = (n − 1) q, it is x_⌊h⌋ + (h − ⌊h⌋)(x_⌊h⌋+1 −
/// x_⌊h⌋): the default of most numerical packages.
///
/// # Errors
/// [`CoreError::OutOfRange`] unless 0 ≤ `q` ≤ 1, [`CoreError::NonFinite`] for a value that is not finite.
pub fn quantile(values: &[f64], q: f64) -> Result<Option<f64>> {
    check_quantile("q", q)?;
    let mut sorted = defined(&values.iter().copied().map(Some).collect::<Vec<_>>())?;
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(quantile_of_sorted(&sorted, q))
}

/// [`quantile`] of finite values in ascending order, for 0 ≤ `q` ≤ 1.
pub(super) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q;
    let below = (position.floor() as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (position - below as f64) * (high - low))
}

pub(super) fn check_quantile(field: &'static str, q: f64) -> Result<()> {
    if (0.0..=1.0).contains(&q) {
        return Ok(());
    }
    Err(CoreError::OutOfRange { field, index: 0, value: q, expected: "between 0 and 1" })
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How to bootstrap a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The share of the resampled means inside the interval, such as 0.95.
    pub level: f64,
    /// The number of resamples, 1 to [`MAX_RESAMPLES`].
    pub resamples: usize,
    /// Equal seeds give equal intervals, whatever the number of threads.
    pub seed: u64,
}

impl Bootstrap {
    /// The percentile interval of the mean over the values that are defined; `None` without a value.
    ///
    /// Each resample draws as many values as there are, with replacement; the interval reaches from the
    /// quantile (1 − level) / 2 of the means of the resamples to the quantile (1 + level) / 2.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] for a level outside 0…1 or a number of resamples outside
    /// 1…[`MAX_RESAMPLES`], [`CoreError::NonFinite`] for a value that is not finite.
    pub fn mean_interval(&self, values: &[Option<f64>]) -> Result<Option<Interval>> {
        check_quantile("level", self.level)?;
        if !(1..=MAX_RESAMPLES).contains(&self.resamples) {
            let (value, expected) = (self.resamples as f64, "1 to 1,000,000");
            return Err(CoreError::OutOfRange { field: "resamples", index: 0, value, expected });
        }
        let defined = defined(values)?;
        if defined.is_empty() {
            return Ok(None);
        }
        let mut means: Vec<f64> = (0..self.resamples)
            .into_par_iter()
            .map(|i| resampled_mean(&defined, self.seed, i as u64))
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        let at = |q| quantile_of_sorted(&means, q);
        Ok(at((1.0 - self.level) / 2.0)
            .zip(at((1.0 + self.level) / 2.0))
            .map(|(low, high)| Interval { low, high }))
    }
}

/// The mean of one resample. Every resample has a generator of its own, so that they can run in any order.
fn resampled_mean(values: &[f64], seed: u64, resample: u64) -> f64 {
    let mut generator = SplitMix64(SplitMix64(seed).next().wrapping_add(SplitMix64(!resample).next()));
    let sum: f64 = (0..values.len()).map(|_| values[generator.below(values.len())]).sum();
    sum / values.len() as f64
}

/// The generator SplitMix64 of Steele, Lea and Flood (2014): a Weyl sequence whose terms pass through a
/// bijective mixing function. Its 64 bits of state are enough to draw indices, not to draw samples of a
/// distribution.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// An index below `n`: the high half of the product, whose bias of n / 2⁶⁴ no interval can show.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// The mean, `None` without a value.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The values that are defined, all of them finite.
fn defined(values: &[Option<f64>]) -> Result<Vec<f64>> {
    let mut finite = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        match *value {
            Some(value) if !value.is_finite() => {
                return Err(CoreError::NonFinite { field: "values", index, value });
            }
            Some(value) => finite.push(value),
            None => {}
        }
    }
    Ok(finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_skip_and_count() {
        let summary = Summary::of(&[Some(1.0), None, Some(2.0), Some(3.0)]).unwrap();
        assert_eq!((summary.mean, summary.count, summary.skipped), (Some(2.0), 3, 1));
        assert!((summary.standard_error.unwrap() - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
        let one = Summary::of(&[Some(4.0)]).unwrap();
        assert_eq!((one.mean, one.standard_error), (Some(4.0), None));
        let none = Summary::of(&[None, None]).unwrap();
        assert_eq!((none.mean, none.standard_error, none.count, none.skipped), (None, None, 0, 2));
        let error = Summary::of(&[None, Some(f64::INFINITY)]).unwrap_err();
        assert_eq!(error, CoreError::NonFinite { field: "values", index: 1, value: f64::INFINITY });
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let expected = [(0.0, 1.0), (1.0, 4.0), (0.5, 2.5), (0.25, 1.75), (0.95, 3.85)];
        for (q, value) in expected {
            assert!((quantile(&values, q).unwrap().unwrap() - value).abs() < 1e-12, "{q}");
        }
        assert_eq!(quantile(&[], 0.5).unwrap(), None);
        assert_eq!(quantile(&[7.0], 0.3).unwrap(), Some(7.0));
        assert!(quantile(&values, 1.1).is_err() && quantile(&values, f64::NAN).is_err());
        assert!(quantile(&[f64::NAN], 0.5).is_err());
    }

    #[test]
    fn splitmix_gives_the_published_sequence() {
        // The first outputs for seed 1234567 in the reference code of the generator.
        let mut generator = SplitMix64(1_234_567);
        assert_eq!(generator.next(), 6_457_827_717_110_365_317);
        assert_eq!(generator.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn the_bootstrap_finds_the_standard_error() {
        let values: Vec<_> = (0..400).map(|i| Some(f64::from(i % 20))).collect();
        let bootstrap = Bootstrap { level: 0.95, resamples: 4000, seed: 3 };
        let interval = bootstrap.mean_interval(&values).unwrap().unwrap();
        let summary = Summary::of(&values).unwrap();
        let (mean, half) = (summary.mean.unwrap(), 1.96 * summary.standard_error.unwrap());
        assert!((interval.low - (mean - half)).abs() < 0.1 * half, "{interval:?}");
        assert!((interval.high - (mean + half)).abs() < 0.1 * half, "{interval:?}");
        assert_eq!(bootstrap.mean_interval(&values).unwrap(), Some(interval));
        let other = Bootstrap { seed: 4, ..bootstrap };
        assert_ne!(other.mean_interval(&values).unwrap(), Some(interval));
    }

    #[test]
    fn the_bootstrap_rejects_bad_settings() {
        let good = Bootstrap { level: 0.95, resamples: 10, seed: 0 };
        assert_eq!(good.mean_interval(&[None]).unwrap(), None);
        assert!(Bootstrap { level: 1.5, ..good }.mean_interval(&[None]).is_err());
        assert!(Bootstrap { resamples: 0, ..good }.mean_interval(&[None]).is_err());
    }
}
