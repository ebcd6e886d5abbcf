//! Means of values that may be missing.

/// Returns the mean of values; none without one.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the mean distance of two different ones of `count` maps, by the mean over all pairs with self-pairs.
pub fn of_different(mean_of_pairs: f64, count: usize) -> Option<f64> {
    let n = count as f64;
    (count > 1).then(|| mean_of_pairs * n / (n - 1.0))
}
