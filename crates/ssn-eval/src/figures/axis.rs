//! Round numbers along axes, and how they are written.

/// The most marks of an axis.
const MARKS: f64 = 6.0;

/// The smallest and the largest of numbers, a little apart where they are one.
pub(super) fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] =
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    match (low.is_finite(), low < high) {
        (false, _) => [0.0, 1.0],
        (true, false) => [low - 0.5, low + 0.5],
        (true, true) => [low, high],
    }
}

/// Round numbers between two.
pub(super) fn marks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / MARKS;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|k| k as f64 * step).collect()
}

/// A number with as few digits as it needs.
pub(super) fn shown(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1e-3 => format!("{value:.3}"),
        _ => format!("{value:.0e}"),
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_inside() {
        assert_eq!(marks(0.0, 2000.0), [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        assert_eq!(marks(-0.13, 0.2).len(), 4);
        for (low, high) in [(3.0, 3.5), (1e-6, 2e-6), (-7.0, 1e5)] {
            assert!(marks(low, high).iter().all(|x| *x >= low && *x <= high * (1.0 + 1e-9)), "{low} {high}");
        }
    }

    #[test]
    fn numbers_have_the_digits_they_need() {
        let values = [0.0, 20.0, 1500.0, 0.25, -1.5, 0.001, 0.0005];
        assert_eq!(values.map(shown), ["0", "20", "1500", "0.25", "−1.5", "0.001", "5e−4"]);
    }
}
