//! Scales of axes, with round numbers on them.

use super::svg::short_number;

/// Values beyond this have no place in a figure; their differences might not be finite.
const LARGEST: f64 = 1e100;
/// Round numbers on a linear axis, roughly.
const TICKS: f64 = 6.0;
/// More decades than this have no numbers between the powers of ten.
const FEW_DECADES: f64 = 2.0;
/// Powers of ten on an axis at most, roughly.
const POWERS: i32 = 6;

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Default for Scale {
    fn default() -> Self {
        Self::between(0.0, 1.0)
    }
}

impl Scale {
    /// A scale on which values have room; those that have no place, as 0 on a logarithmic one, do not count.
    pub(crate) fn of(values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        let places = values.filter_map(|value| place(value, logarithmic));
        let [low, high] =
            places.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
        if low > high {
            return Self { low: 0.0, high: 1.0, logarithmic };
        }
        // A single value gets a scale that is wide enough for two different numbers.
        let least = 1e-6 * low.abs().max(high.abs());
        let room = if high - low > least { 0.0 } else { least.max(0.5) };
        Self { low: low - room, high: high + room, logarithmic }
    }

    /// Adds a share of the length at both ends, so that nothing lies on the edge.
    pub(crate) fn padded(self, share: f64) -> Self {
        let room = share * (self.high - self.low);
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    /// A linear scale from one number to another; a falling one puts its first number at the other end.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        Self { low, high, logarithmic: false }
    }

    /// Returns where a value lies, 0 … 1 from the first to the last end; nothing for one that has no place.
    pub(crate) fn at(self, value: f64) -> Option<f64> {
        place(value, self.logarithmic).map(|x| (x - self.low) / (self.high - self.low))
    }

    /// Returns the value at a place, 0 … 1 on the scale.
    pub(crate) fn value_at(self, t: f64) -> f64 {
        let x = self.low + t * (self.high - self.low);
        if self.logarithmic { 10f64.powf(x) } else { x }
    }

    /// Returns `true` if steps of 1 can be told apart.
    pub(super) fn is_long(self) -> bool {
        !self.logarithmic && self.high - self.low >= 2.0
    }

    /// Returns round numbers on the scale.
    pub(crate) fn ticks(self) -> Vec<f64> {
        match self.logarithmic {
            false => round_ticks(self.low.min(self.high), self.high.max(self.low)),
            true => decades(self.low, self.high),
        }
    }
}

fn place(value: f64, logarithmic: bool) -> Option<f64> {
    let x = if logarithmic { value.log10() } else { value };
    Some(x).filter(|x| x.is_finite() && x.abs() <= LARGEST)
}

/// Returns round numbers between two.
fn round_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|k| k as f64 * step).collect()
}

/// Returns 1, 2 and 5 times powers of ten between two of their logarithms, or some of the powers alone where there are many.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = low.floor() as i32..=high.ceil() as i32;
    let inside = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
    if high - low <= FEW_DECADES {
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|k| k * 10f64.powi(power)));
        return all.filter(inside).collect();
    }
    let step = ((high - low) as i32 / POWERS).max(1);
    powers.filter(|power| power % step == 0).map(|power| 10f64.powi(power)).filter(inside).collect()
}

/// Writes a number at an axis: thousands as 20k, and powers of ten where digits would be many.
pub(crate) fn tick_label(value: f64) -> String {
    let size = value.abs();
    let power = size.log10().round();
    match size {
        0.0 => "0".to_owned(),
        _ if (1e7..).contains(&size) || size < 1e-3 => {
            let factor = size / 10f64.powf(power);
            let sign = if value < 0.0 { "−" } else { "" };
            match (factor - 1.0).abs() < 1e-6 {
                true => format!("{sign}10{}", superscript(power as i32)),
                false => short_number(value),
            }
        }
        _ if size >= 1e4 => format!("{}k", short_number(value / 1e3)),
        _ => short_number(value),
    }
}

pub(crate) fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(round_ticks(0.0, 2000.0), [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        assert_eq!(round_ticks(-0.13, 0.2).len(), 4);
        for (low, high) in [(3.0, 3.5), (1e-6, 2e-6), (-7.0, 1e5)] {
            let ticks = round_ticks(low, high);
            assert!(ticks.iter().all(|x| *x >= low && *x <= high * (1.0 + 1e-9)), "{low} {high}");
        }
    }

    #[test]
    fn decades_are_inside_and_few() {
        assert_eq!(decades(1.9, 3.1), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(decades(-1.2, 3.4), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert!(decades(-300.0, 300.0).len() <= 2 * POWERS as usize);
    }

    #[test]
    fn labels_are_short() {
        let values = [0.0, 0.05, 1.0, 2000.0, 20_000.0, 2.5e5, 1e8, 1e-5, -1e9, 2e-4];
        let labels = ["0", "0.05", "1", "2000", "20k", "250k", "10⁸", "10⁻⁵", "−10⁹", "2e−4"];
        assert_eq!(values.map(tick_label), labels);
    }

    #[test]
    fn every_value_has_a_place_or_none() {
        let extremes = [0.0, -1.0, 1e-300, 1e99, 1e300, f64::MAX, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
        for logarithmic in [false, true] {
            for a in extremes {
                for b in extremes {
                    let scale = Scale::of([a, b].into_iter(), logarithmic).padded(0.05);
                    let at = [a, b].into_iter().filter_map(|value| scale.at(value));
                    assert!(at.clone().all(|t| (0.0..=1.0).contains(&t)), "{a} {b} {scale:?}");
                    assert!(scale.ticks().len() < 20, "{a} {b} {scale:?}");
                }
            }
        }
        assert_eq!(Scale::of([2.0, 4.0].into_iter(), false).at(3.0), Some(0.5));
        assert_eq!(Scale::of([1.0, 100.0].into_iter(), true).at(10.0), Some(0.5));
        assert_eq!(Scale::of([1.0, 100.0].into_iter(), true).at(0.0), None);
        assert_eq!(Scale::of([1.0, 100.0].into_iter(), true).value_at(1.5), 1000.0);
        assert_eq!(Scale::between(3.0, 0.0).at(1.0), Some(2.0 / 3.0));
    }
}
