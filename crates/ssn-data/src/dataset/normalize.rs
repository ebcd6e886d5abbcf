//! Intensity normalization of one channel.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::metrics::quantile_of_sorted;
use ssn_io::{Error, Result};
use toml::de::ValueDeserializer;

/// How the values of each channel are changed when a case is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Normalization {
    /// Not at all.
    #[default]
    None,
    /// (x − `subtract`) / `divide`: LIDC's x − 0.5 for values in 0…1, or 127.5 and 255 for bytes.
    Scale {
        /// What is subtracted.
        subtract: f32,
        /// What is divided by, after that.
        #[serde(default = "one")]
        divide: f32,
    },
    /// Mean 0 and deviation 1, of all voxels or of those in the mask; applied to all.
    ZScore {
        /// Mean and deviation are those of the voxels in the mask, where a case has one.
        #[serde(default)]
        in_mask: bool,
    },
    /// The rule of the paper's BraTS experiment: mean 0 and deviation 1 of the voxels in the mask that lie strictly between its 5th
    /// and 95th percentile and above the mean of the whole volume; applied to all.
    Brats,
    /// Two percentiles become 0 and 1, and values beyond them are clipped.
    Percentile {
        /// The percentile that becomes 0.
        low: f64,
        /// The percentile that becomes 1.
        high: f64,
    },
    /// A window of Hounsfield units becomes 0…1, and values beyond it are clipped.
    CtWindow {
        /// The middle of the window.
        center: f32,
        /// Its width.
        width: f32,
    },
}

fn one() -> f32 {
    1.0
}

/// The percentiles between which a voxel must lie to count in the BraTS rule (authors' preparation script).
const BRATS_PERCENTILES: [f64; 2] = [5.0, 95.0];

impl Normalization {
    /// Refuses parameters that would divide by nothing.
    pub fn check(self) -> Result<Self> {
        let error = match self {
            Self::Scale { divide, .. } if !(divide.is_finite() && divide != 0.0) => {
                Error::setting("data.normalization.divide", divide, "a number other than 0")
            }
            Self::Percentile { low, high } if !(0.0 <= low && low < high && high <= 100.0) => {
                let expected = "two percentiles from 0 to 100, the lower one first";
                Error::setting("data.normalization", format!("percentile {low} to {high}"), expected)
            }
            Self::CtWindow { width, .. } if !(width.is_finite() && width > 0.0) => {
                let expected = "a positive number of Hounsfield units";
                Error::setting("data.normalization.width", width, expected)
            }
            checked => return Ok(checked),
        };
        Err(error)
    }

    /// Whether the scale depends on the region of interest.
    pub fn needs_mask(self) -> bool {
        matches!(self, Self::Brats | Self::ZScore { in_mask: true })
    }

    /// Changes the values of one channel.
    ///
    /// # Shapes
    /// `channel` and `mask` `[v]`.
    pub fn apply(self, channel: &mut [f32], mask: Option<&[u8]>) {
        match self {
            Self::None => {}
            Self::Scale { subtract, divide } => {
                channel.iter_mut().for_each(|x| *x = (*x - subtract) / divide)
            }
            Self::ZScore { in_mask } => {
                let moments = Moments::of(inside(channel, mask.filter(|_| in_mask)));
                moments.standardize(channel);
            }
            Self::Brats => brats(channel, mask),
            Self::Percentile { low, high } => {
                let mut sorted = channel.to_vec();
                sorted.sort_unstable_by(f32::total_cmp);
                clip(channel, percentile(&sorted, low) as f32, percentile(&sorted, high) as f32);
            }
            Self::CtWindow { center, width } => clip(channel, center - 0.5 * width, center + 0.5 * width),
        }
    }
}

impl FromStr for Normalization {
    type Err = String;

    /// A kind without settings, such as `brats`, or the table of a config, such as `{ kind = "scale", subtract = 0.5 }`.
    fn from_str(written: &str) -> Result<Self, String> {
        let table = match written.trim() {
            table if table.starts_with('{') => table.to_owned(),
            _ => format!("{{ kind = {written:?} }}"),
        };
        let parsed = ValueDeserializer::parse(&table).and_then(Self::deserialize);
        parsed.map_err(|error| error.message().to_owned())
    }
}

/// The values in the mask; all without one.
fn inside<'a>(channel: &'a [f32], mask: Option<&'a [u8]>) -> impl Iterator<Item = f32> + Clone + 'a {
    (0..channel.len()).filter(move |&i| mask.is_none_or(|mask| mask[i] > 0)).map(|i| channel[i])
}

/// [`Normalization::Brats`].
fn brats(channel: &mut [f32], mask: Option<&[u8]>) {
    let mut sorted: Vec<f32> = inside(channel, mask).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let [low, high] = BRATS_PERCENTILES.map(|p| percentile(&sorted, p));
    let overall = Moments::of(channel.iter().copied()).mean;
    let counts = |x: f32| f64::from(x) > low && f64::from(x) < high && f64::from(x) > overall;
    Moments::of(sorted.into_iter().filter(|&x| counts(x))).standardize(channel);
}

/// Mean and deviation, within the mask, of values that were standardized before: by this rule or another, on this mask
/// or another, so that both are near 0 and 1 and not equal to them. Raw intensities are far from this.
const STANDARDIZED_MEAN: f64 = 2.0;
const STANDARDIZED_DEVIATION: [f64; 2] = [0.4, 2.5];

/// Whether the values of a channel look as if they were standardized already.
pub fn looks_standardized(channel: &[f32], mask: Option<&[u8]>) -> bool {
    let Moments { mean, deviation } = Moments::of(inside(channel, mask));
    let [low, high] = STANDARDIZED_DEVIATION;
    mean.abs() <= STANDARDIZED_MEAN && (low..=high).contains(&deviation)
}

/// The smallest and the largest of some values.
pub fn extremes(values: impl IntoIterator<Item = f32>) -> [f32; 2] {
    values.into_iter().fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
}

/// A percentile of sorted values, linear between neighbors as in NumPy; 0 of nothing.
fn percentile(sorted: &[f32], percent: f64) -> f64 {
    quantile_of_sorted(sorted, percent / 100.0).unwrap_or(0.0)
}

/// Mean and deviation, in double precision.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moments {
    mean: f64,
    deviation: f64,
}

impl Moments {
    /// Of values that come twice: deviations are taken from the mean, which loses no digits.
    fn of(values: impl Iterator<Item = f32> + Clone) -> Self {
        let (mut count, mut sum) = (0usize, 0.0);
        values.clone().for_each(|x| {
            count += 1;
            sum += f64::from(x);
        });
        let n = count.max(1) as f64;
        let mean = sum / n;
        let variance = values.map(|x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
        Self { mean, deviation: variance.sqrt() }
    }

    /// (x − mean) / deviation; without deviation the mean alone is taken away.
    fn standardize(self, channel: &mut [f32]) {
        let deviation = if self.deviation > 0.0 { self.deviation } else { 1.0 };
        channel.iter_mut().for_each(|x| *x = ((f64::from(*x) - self.mean) / deviation) as f32);
    }
}

/// Values from `low` to `high` become 0…1; beyond them they are clipped.
fn clip(channel: &mut [f32], low: f32, high: f32) {
    let width = if high > low { high - low } else { 1.0 };
    channel.iter_mut().for_each(|x| *x = ((*x - low) / width).clamp(0.0, 1.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rule: Normalization, values: &[f32], mask: Option<&[u8]>) -> Vec<f32> {
        let mut channel = values.to_vec();
        rule.check().unwrap().apply(&mut channel, mask);
        channel
    }

    #[test]
    fn rules_by_hand() {
        let values = [0.0, 1.0, 2.0, 5.0];
        assert_eq!(applied(Normalization::None, &values, None), values);
        let lidc = Normalization::Scale { subtract: 0.5, divide: 1.0 };
        assert_eq!(applied(lidc, &values, None), [-0.5, 0.5, 1.5, 4.5]);
        let mask = [0, 1, 0, 1];
        assert_eq!(
            applied(Normalization::ZScore { in_mask: true }, &values, Some(&mask)),
            [-1.5, -1.0, -0.5, 1.0]
        );
        let all = applied(Normalization::ZScore { in_mask: false }, &values, Some(&mask));
        assert!(all.iter().sum::<f32>().abs() < 1e-6);
        let window = Normalization::CtWindow { center: 2.0, width: 2.0 };
        assert_eq!(applied(window, &values, None), [0.0, 0.0, 0.5, 1.0]);
        let percentiles = Normalization::Percentile { low: 0.0, high: 50.0 };
        assert_eq!(applied(percentiles, &values, None), [0.0, 1.0 / 1.5, 1.0, 1.0]);
        assert_eq!(applied(Normalization::ZScore { in_mask: false }, &[3.0, 3.0], None), [0.0, 0.0]);
    }

    /// Values 1…100 in the mask and a hundred zeros outside: the mean of all is 25.25, the percentiles of the
    /// mask are 5.95 and 95.05, so that 26…95 count, with mean 60.5 and variance (70² − 1) / 12.
    #[test]
    fn the_brats_rule_by_hand() {
        let values: Vec<f32> = (0..200).map(|i| if i < 100 { i as f32 + 1.0 } else { 0.0 }).collect();
        let mask: Vec<u8> = (0..200).map(|i| u8::from(i < 100)).collect();
        let result = applied(Normalization::Brats, &values, Some(&mask));
        let deviation = ((70.0f64 * 70.0 - 1.0) / 12.0).sqrt();
        for (x, y) in values.iter().zip(result) {
            assert!((f64::from(y) - (f64::from(*x) - 60.5) / deviation).abs() < 1e-6, "{x} {y}");
        }
    }

    #[test]
    fn percentiles_are_those_of_numpy() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!([0.0, 50.0, 100.0, 10.0].map(|p| percentile(&sorted, p)), [1.0, 3.0, 8.0, 1.3]);
        assert_eq!(percentile(&[], 5.0), 0.0);
    }

    #[test]
    fn parameters_are_checked() {
        let message = |rule: Normalization| rule.check().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                message(Normalization::Scale { subtract: 1.0, divide: 0.0 }),
                message(Normalization::Percentile { low: 99.0, high: 1.0 }),
                message(Normalization::CtWindow { center: 40.0, width: -1.0 }),
            ]
            .join("\n")
        );
    }
}
