//! The generalized energy distance between a set of samples and a set of raters.
//!
//! GED² = 2 E d(s, y) − E d(s, s′) − E d(y, y′) with samples s, s′ and raters y, y′ drawn independently, and
//! d of [`foreground_distance`](super::foreground_distance). The paper takes each expectation as the mean
//! over all ordered pairs, those of a map with itself included ([`PairStatistic::V`]). GED² then falls as the
//! number of samples grows even where the model stays the same, so a [`Ged`] always carries its counts.

use super::pairwise::PairwiseDistances;
use crate::labels::BitPlanes;
use crate::{CoreError, Result};

/// Which pairs estimate E d(s, s′) and E d(y, y′).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairStatistic {
    /// All ordered pairs with the self-pairs, (1 / m²) Σ_ij d_ij: the paper's estimate, biased low by a
    /// factor (m − 1) / m and never making GED² negative.
    V,
    /// Only pairs of different maps, (1 / m(m − 1)) Σ_{i≠j} d_ij: unbiased for independent maps, may make
    /// GED² negative, and needs two maps in each set.
    U,
}

/// GED² and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ged {
    /// 2 E d(s, y) − E d(s, s′) − E d(y, y′).
    pub squared: f64,
    /// E d(s, y).
    pub sample_rater_distance: f64,
    /// E d(s, s′), the paper's diversity.
    pub sample_diversity: f64,
    /// E d(y, y′), the diversity of the experts.
    pub rater_diversity: f64,
    /// The number of samples `m` behind it.
    pub samples: usize,
    /// The number of raters `n` behind it.
    pub raters: usize,
}

/// GED² of all samples against all raters.
///
/// # Errors
/// When there is no sample or no rater, when the maps differ in voxels or classes, or when
/// [`PairStatistic::U`] meets a set of one.
pub fn ged(samples: &[BitPlanes], raters: &[BitPlanes], statistic: PairStatistic) -> Result<Ged> {
    PairwiseDistances::new(samples, raters)?.ged(statistic)
}

impl PairwiseDistances {
    /// GED² of all samples.
    ///
    /// # Errors
    /// When [`PairStatistic::U`] meets a set of one.
    pub fn ged(&self, statistic: PairStatistic) -> Result<Ged> {
        self.ged_at(self.samples(), statistic)
    }

    /// GED² of the first `samples` samples.
    ///
    /// # Errors
    /// When there are not so many samples, or when [`PairStatistic::U`] meets a set of one.
    pub fn ged_at(&self, samples: usize, statistic: PairStatistic) -> Result<Ged> {
        if samples == 0 || samples > self.samples() {
            let expected = "at least 1 and at most the number of samples drawn";
            return Err(CoreError::OutOfRange {
                field: "samples",
                index: 0,
                value: samples as f64,
                expected,
            });
        }
        let raters = self.raters();
        let between: f64 = (0..samples).map(|i| self.sample_to_raters(i).iter().sum::<f64>()).sum();
        let sample_rater_distance = between / (samples * raters) as f64;
        let sample_diversity =
            mean_of_pairs("samples", samples, statistic, |i| &self.sample_to_samples(i)[i + 1..samples])?;
        let rater_diversity =
            mean_of_pairs("raters", raters, statistic, |i| &self.rater_to_raters(i)[i + 1..])?;
        let squared = 2.0 * sample_rater_distance - sample_diversity - rater_diversity;
        Ok(Ged { squared, sample_rater_distance, sample_diversity, rater_diversity, samples, raters })
    }

    /// GED² of the first samples at each of several counts, such as 16, 32, 50 and 100.
    ///
    /// # Errors
    /// As [`PairwiseDistances::ged_at`], for the first count that fails.
    pub fn ged_at_each(&self, counts: &[usize], statistic: PairStatistic) -> Result<Vec<Ged>> {
        counts.iter().map(|&samples| self.ged_at(samples, statistic)).collect()
    }
}

/// E d over the pairs of a set of `count` maps, where `later(i)` holds the distances of map i to those after
/// it.
fn mean_of_pairs<'a>(
    field: &'static str,
    count: usize,
    statistic: PairStatistic,
    later: impl Fn(usize) -> &'a [f64],
) -> Result<f64> {
    let ordered_pairs = match statistic {
        PairStatistic::V => count * count,
        PairStatistic::U if count < 2 => {
            let expected = "at least 2 without self-pairs";
            return Err(CoreError::OutOfRange { field, index: 0, value: count as f64, expected });
        }
        PairStatistic::U => count * (count - 1),
    };
    let sum: f64 = (0..count).map(|i| later(i).iter().sum::<f64>()).sum();
    // An empty sum is −0.0, which would show as such.
    Ok(2.0 * sum.abs() / ordered_pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelMap;

    fn planes(labels: &[u8]) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), 2).unwrap())
    }

    #[test]
    fn by_hand() {
        // d(s0,s1) = 1/2; d(s0,y) = 1, d(s1,y) = 1/2.
        let samples = [planes(&[1, 0]), planes(&[1, 1])];
        let raters = [planes(&[0, 1])];
        let found = ged(&samples, &raters, PairStatistic::V).unwrap();
        assert_eq!(
            (found.sample_rater_distance, found.sample_diversity, found.rater_diversity),
            (0.75, 0.25, 0.0)
        );
        assert_eq!((found.squared, found.samples, found.raters), (1.25, 2, 1));
    }

    #[test]
    fn the_unbiased_statistic_leaves_self_pairs_out() {
        let maps = [planes(&[1, 0]), planes(&[1, 1]), planes(&[0, 0])];
        let biased = ged(&maps, &maps, PairStatistic::V).unwrap();
        let unbiased = ged(&maps, &maps, PairStatistic::U).unwrap();
        assert!((unbiased.sample_diversity - biased.sample_diversity * 1.5).abs() < 1e-15);
        assert!(biased.squared.abs() < 1e-15 && unbiased.squared < 0.0);
        let error = ged(&maps, &maps[..1], PairStatistic::U).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "raters", value: 1.0, .. }), "{error}");
    }

    #[test]
    fn prefixes_equal_separate_runs() {
        let samples: Vec<_> = (0..7u8).map(|i| planes(&[i & 1, i >> 1 & 1, i >> 2 & 1, 1])).collect();
        let raters = [planes(&[1, 1, 0, 0]), planes(&[0, 0, 0, 0])];
        let all = PairwiseDistances::new(&samples, &raters).unwrap();
        let prefixes = all.ged_at_each(&[1, 3, 7], PairStatistic::V).unwrap();
        for found in prefixes {
            assert_eq!(found, ged(&samples[..found.samples], &raters, PairStatistic::V).unwrap());
        }
        for count in [0, 8] {
            assert!(all.ged_at(count, PairStatistic::V).is_err());
        }
    }
}
