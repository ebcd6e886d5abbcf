//! Means and quantiles over scores that may be undefined.

use crate::{CoreError, Result};

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
        let finite = defined(values)?;
        let (mean, count) = (mean(&finite), finite.len());
        let standard_error = mean.filter(|_| count > 1).map(|mean| {
            let squares: f64 = finite.iter().map(|x| (x - mean).powi(2)).sum();
            (squares / (count - 1) as f64 / count as f64).sqrt()
        });
        Ok(Self { mean, standard_error, count, skipped: values.len() - count })
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
    if !(0.0..=1.0).contains(&q) {
        return Err(CoreError::OutOfRange { field: "q", index: 0, value: q, expected: "between 0 and 1" });
    }
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
