//! Means and quantiles over scores that may be undefined.

use crate::random::philox4x32;
use crate::{CoreError, Result};

/// Mean ± standard error of the values that are defined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean; `None` without a value.
    pub mean: Option<f64>,
    /// The standard error of the mean, with cases as clusters; `None` below two cases with a value.
    pub standard_error: Option<f64>,
    /// The number of values.
    pub count: usize,
    /// The number of `None` that were left out.
    pub skipped: usize,
}

impl Summary {
    /// Summarizes values, each of a case of its own; `None` are counted but otherwise left out. The standard error is s / √count
    /// with s² = Σ(x − mean)² / (count − 1).
    ///
    /// # Errors
    /// [`CoreError::NonFinite`] for a value that is infinite or not a number.
    pub fn of(values: &[Option<f64>]) -> Result<Self> {
        defined(values)?;
        let alone: Vec<&[Option<f64>]> = values.iter().map(std::slice::from_ref).collect();
        Self::of_cases(&alone)
    }

    /// Summarizes the values of cases, of which each may have several, such as one per rater, that are not independent: with G
    /// cases that have a value, N values and e_g the sum of the deviations of case g from the mean of all values, the standard
    /// error is √(G / (G − 1) Σ_g e_g²) / N. With one value per case that is [`Summary::of`].
    ///
    /// # Errors
    /// [`CoreError::NonFinite`] for a value that is infinite or not a number.
    pub fn of_cases(cases: &[&[Option<f64>]]) -> Result<Self> {
        let cases: Vec<(Vec<f64>, usize)> =
            cases.iter().map(|values| Ok((defined(values)?, values.len()))).collect::<Result<_>>()?;
        let all: Vec<f64> = cases.iter().flat_map(|(finite, _)| finite).copied().collect();
        let (mean, count) = (mean(&all), all.len());
        let clusters: Vec<&Vec<f64>> =
            cases.iter().map(|(finite, _)| finite).filter(|finite| !finite.is_empty()).collect();
        let standard_error = mean.filter(|_| clusters.len() > 1).map(|mean| {
            let (g, n) = (clusters.len() as f64, count as f64);
            let squares: f64 =
                clusters.iter().map(|values| values.iter().map(|x| x - mean).sum::<f64>().powi(2)).sum();
            (g / (g - 1.0) * squares).sqrt() / n
        });
        let values: usize = cases.iter().map(|(_, values)| values).sum();
        Ok(Self { mean, standard_error, count, skipped: values - count })
    }
}

/// Draws of the bootstrap.
const DRAWS: usize = 2000;

/// The percentile bootstrap interval of the mean of all values over cases, drawn with replacement as wholes: the quantiles
/// (1 − level)/2 and (1 + level)/2 of 2,000 means. `None` below two cases with a value.
///
/// # Errors
/// [`CoreError::OutOfRange`] unless 0 < `level` < 1, [`CoreError::NonFinite`] for a value that is not finite.
pub fn bootstrap_interval(cases: &[&[Option<f64>]], level: f64, seed: u64) -> Result<Option<[f64; 2]>> {
    if !(level > 0.0 && level < 1.0) {
        let expected = "between 0 and 1";
        return Err(CoreError::OutOfRange { field: "level", index: 0, value: level, expected });
    }
    let mut sums: Vec<(f64, f64)> = vec![];
    for values in cases {
        let finite = defined(values)?;
        if !finite.is_empty() {
            sums.push((finite.iter().sum(), finite.len() as f64));
        }
    }
    if sums.len() < 2 {
        return Ok(None);
    }
    let draw = |number: usize| {
        let (mut sum, mut count) = (0.0, 0.0);
        for place in 0..sums.len() {
            let word = philox4x32([number as u32, place as u32, 0, 0], [seed as u32, (seed >> 32) as u32])[0];
            let (of_case, values) = sums[((u64::from(word) * sums.len() as u64) >> 32) as usize];
            sum += of_case;
            count += values;
        }
        sum / count
    };
    let mut means: Vec<f64> = (0..DRAWS).map(draw).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| quantile_of_sorted(&means, q);
    Ok(at(0.5 * (1.0 - level)).zip(at(0.5 * (1.0 + level))).map(|(low, high)| [low, high]))
}

/// The quantile `q` of unsorted values by linear interpolation; `None` without a value.
///
/// With the n values in ascending order x_0 … x_{n−1} and h = (n − 1) q, it is x_⌊h⌋ + (h − ⌊h⌋)(x_⌊h⌋+1 −
/// x_⌊h⌋): the default of most numerical packages.
///
/// # Errors
/// [`CoreError::OutOfRange`] unless 0 ≤ `q` ≤ 1, [`CoreError::NonFinite`] for a value that is not finite.
pub fn quantile(values: &[f64], q: f64) -> Result<Option<f64>> {
    if !(0.0..=1.0).contains(&q) {
        return Err(CoreError::OutOfRange { field: "q", index: 0, value: q, expected: "between 0 and 1" });
    }
    let mut sorted = defined(&values.iter().copied().map(Some).collect::<Vec<_>>())?;
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(quantile_of_sorted(&sorted, q))
}

/// [`quantile`] of finite values in ascending order, for 0 ≤ `q` ≤ 1.
pub fn quantile_of_sorted<T: Copy + Into<f64>>(sorted: &[T], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q;
    let below = (position.floor() as usize).min(last);
    let (low, high): (f64, f64) = (sorted[below].into(), sorted[(below + 1).min(last)].into());
    Some(low + (position - below as f64) * (high - low))
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
            value => finite.extend(value),
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
    fn raters_of_a_case_are_not_independent() {
        let twice: Vec<[Option<f64>; 2]> = [1.0, 2.0, 4.0].map(|x| [Some(x); 2]).to_vec();
        let clusters: Vec<&[Option<f64>]> = twice.iter().map(|pair| &pair[..]).collect();
        let (clustered, once) =
            (Summary::of_cases(&clusters).unwrap(), Summary::of(&[Some(1.0), Some(2.0), Some(4.0)]).unwrap());
        assert_eq!((clustered.mean, clustered.count), (once.mean, 6));
        // The same value twice says no more than once.
        assert!((clustered.standard_error.unwrap() - once.standard_error.unwrap()).abs() < 1e-15);
        let [low, high] = bootstrap_interval(&clusters, 0.95, 1).unwrap().unwrap();
        assert!((1.0..2.0).contains(&low) && (3.0..=4.0).contains(&high), "{low} {high}");
        assert_eq!(bootstrap_interval(&clusters[..1], 0.95, 1).unwrap(), None);
        assert!(bootstrap_interval(&clusters, 1.0, 1).is_err());
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        for (q, value) in [(0.0, 1.0), (1.0, 4.0), (0.5, 2.5), (0.25, 1.75), (0.95, 3.85)] {
            assert!((quantile(&values, q).unwrap().unwrap() - value).abs() < 1e-12, "{q}");
        }
        assert_eq!(quantile(&[], 0.5).unwrap(), None);
        assert_eq!(quantile(&[7.0], 0.3).unwrap(), Some(7.0));
        assert!(quantile(&values, 1.1).is_err() && quantile(&values, f64::NAN).is_err());
        assert!(quantile(&[f64::NAN], 0.5).is_err());
    }
}
