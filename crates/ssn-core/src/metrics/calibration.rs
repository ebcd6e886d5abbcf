//! Whether probabilities mean what they say: expected calibration error and Brier score.
//!
//! Each pair of a voxel and a rater is one observation, so that several raters of an image are pooled: where
//! two of four raters mark a voxel, a probability of one half is calibrated.

use super::check;
use crate::labels::LabelMap;
use crate::{CoreError, Result};

/// The most bins of a reliability diagram.
pub const MAX_BINS: usize = 65_536;

/// Which probability is compared with which event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calibrated {
    /// The largest probability of a voxel, with the event that the rater chose that class; the lowest class
    /// wins ties.
    TopLabel,
    /// The probability of one class, with the event that the rater chose it.
    Class(u8),
}

/// One bar of a reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReliabilityBin {
    /// The number of observations.
    pub count: usize,
    /// The mean probability; `None` without an observation.
    pub confidence: Option<f64>,
    /// The share of the observations in which the event happened; `None` without an observation.
    pub frequency: Option<f64>,
}

/// A reliability diagram and its expected calibration error.
#[derive(Debug, Clone, PartialEq)]
pub struct Reliability {
    /// The bins; bin b of B holds the probabilities in b/B ≤ p < (b + 1)/B, the last one 1 as well.
    pub bins: Vec<ReliabilityBin>,
    /// ECE = Σ_b (n_b / n) |frequency_b − confidence_b|.
    pub ece: f64,
}

/// The reliability of probabilities `[c, v]` against one or several raters, in `bins` bins of equal width.
///
/// # Errors
/// When there is no rater or they differ in voxels or classes, when the probabilities have the wrong length
/// or are none, when the class does not exist, or unless 1 ≤ `bins` ≤ [`MAX_BINS`].
pub fn reliability(
    probabilities: &[f32],
    raters: &[LabelMap],
    calibrated: Calibrated,
    bins: usize,
) -> Result<Reliability> {
    let space = check::common_space(&check::RATERS, raters)?;
    check::probabilities(probabilities, space.classes, space.voxels)?;
    if !(1..=MAX_BINS).contains(&bins) {
        let expected = "1 to 65,536";
        return Err(CoreError::OutOfRange { field: "bins", index: 0, value: bins as f64, expected });
    }
    if let Calibrated::Class(label) = calibrated
        && usize::from(label) >= space.classes
    {
        return Err(CoreError::Label { field: "class", index: 0, label, classes: space.classes });
    }
    let mut tallies = vec![Tally::default(); bins];
    for voxel in 0..space.voxels {
        let probability = |class: usize| probabilities[class * space.voxels + voxel];
        let class = match calibrated {
            Calibrated::Class(label) => usize::from(label),
            Calibrated::TopLabel => {
                (1..space.classes).fold(0, |top, k| if probability(k) > probability(top) { k } else { top })
            }
        };
        let confidence = f64::from(probability(class)).clamp(0.0, 1.0);
        let tally = &mut tallies[((confidence * bins as f64) as usize).min(bins - 1)];
        tally.count += raters.len();
        tally.confidence += confidence * raters.len() as f64;
        tally.events += raters.iter().filter(|rater| usize::from(rater.labels()[voxel]) == class).count();
    }
    let observations = (space.voxels * raters.len()) as f64;
    let ece =
        tallies.iter().map(|bin| (bin.events as f64 - bin.confidence).abs()).sum::<f64>() / observations;
    Ok(Reliability { bins: tallies.iter().map(Tally::bin).collect(), ece })
}

/// The class-wise ECE: the mean over the foreground classes of the ECE of [`Calibrated::Class`].
///
/// # Errors
/// As [`reliability`].
pub fn foreground_ece(probabilities: &[f32], raters: &[LabelMap], bins: usize) -> Result<f64> {
    let classes = check::common_space(&check::RATERS, raters)?.classes;
    let mut sum = 0.0;
    for class in 1..classes {
        sum += reliability(probabilities, raters, Calibrated::Class(class as u8), bins)?.ece;
    }
    Ok(sum / (classes - 1) as f64)
}

/// The sums of one bin.
#[derive(Clone, Default)]
struct Tally {
    count: usize,
    confidence: f64,
    events: usize,
}

impl Tally {
    fn bin(&self) -> ReliabilityBin {
        let mean = |sum: f64| (self.count > 0).then(|| sum / self.count as f64);
        ReliabilityBin {
            count: self.count,
            confidence: mean(self.confidence),
            frequency: mean(self.events as f64),
        }
    }
}

/// The Brier score of probabilities `[c, v]`: the mean over voxels and raters of Σ_k (p_k − [y = k])², 0 to
/// 2.
///
/// The sum runs over all classes, the background included; for two classes that is twice the score that
/// counts only the probability of the foreground.
///
/// # Errors
/// When there is no rater or they differ in voxels or classes, or when the probabilities have the wrong
/// length or are none.
pub fn brier(probabilities: &[f32], raters: &[LabelMap]) -> Result<f64> {
    let space = check::common_space(&check::RATERS, raters)?;
    check::probabilities(probabilities, space.classes, space.voxels)?;
    let mut sum = 0.0;
    for (class, plane) in probabilities.chunks_exact(space.voxels).enumerate() {
        for rater in raters {
            for (&p, &label) in plane.iter().zip(rater.labels()) {
                let event = if usize::from(label) == class { 1.0 } else { 0.0 };
                sum += (f64::from(p) - event).powi(2);
            }
        }
    }
    Ok(sum / (space.voxels * raters.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(labels: &[u8]) -> LabelMap {
        LabelMap::new(labels.to_vec(), 2).unwrap()
    }

    #[test]
    fn half_of_the_raters_is_one_half() {
        let raters = [map(&[1, 0]), map(&[0, 0])];
        let found = reliability(&[0.5, 1.0, 0.5, 0.0], &raters, Calibrated::Class(1), 10).unwrap();
        assert_eq!(found.ece, 0.0);
        let bin = ReliabilityBin { count: 2, confidence: Some(0.5), frequency: Some(0.5) };
        assert_eq!(found.bins[5], bin);
        assert_eq!(found.bins[9].confidence, None);
        assert_eq!(foreground_ece(&[0.5, 1.0, 0.5, 0.0], &raters, 10).unwrap(), 0.0);
    }

    #[test]
    fn ece_and_brier_by_hand() {
        // Top labels: 0 at 0.75 (right), 1 at 0.75 (wrong), 1 at 1 (right).
        let probabilities = [0.75, 0.25, 0.0, 0.25, 0.75, 1.0];
        let rater = [map(&[0, 0, 1])];
        let found = reliability(&probabilities, &rater, Calibrated::TopLabel, 4).unwrap();
        assert!((found.ece - (2.5f64 - 2.0) / 3.0).abs() < 1e-15, "{}", found.ece);
        assert_eq!(found.bins[3].count, 3);
        let finer = reliability(&probabilities, &rater, Calibrated::TopLabel, 8).unwrap();
        assert!((finer.ece - (1.5f64 - 1.0) / 3.0).abs() < 1e-15, "{}", finer.ece);
        let score = brier(&probabilities, &rater).unwrap();
        assert!((score - (2.0 * 0.0625 + 2.0 * 0.5625) / 3.0).abs() < 1e-15, "{score}");
    }

    #[test]
    fn bad_input_is_named() {
        let rater = [map(&[0, 1])];
        let good = [0.5; 4];
        let fail = |p: &[f32], what, bins| reliability(p, &rater, what, bins).unwrap_err();
        assert!(matches!(fail(&good[1..], Calibrated::TopLabel, 4), CoreError::Length { expected: 4, .. }));
        assert!(matches!(fail(&good, Calibrated::TopLabel, 0), CoreError::OutOfRange { field: "bins", .. }));
        assert!(matches!(fail(&good, Calibrated::Class(2), 4), CoreError::Label { field: "class", .. }));
        let nan = [0.5, f32::NAN, 0.5, 0.5];
        assert!(matches!(fail(&nan, Calibrated::TopLabel, 4), CoreError::NonFinite { index: 1, .. }));
        let wrong = [0.5, 0.9, 0.5, 0.5];
        let error = fail(&wrong, Calibrated::TopLabel, 4);
        assert!(matches!(error, CoreError::OutOfRange { field: "sum of probabilities", index: 1, .. }));
        assert!(matches!(
            fail(&[2.0, 0.5, -1.0, 0.5], Calibrated::TopLabel, 4),
            CoreError::OutOfRange { .. }
        ));
        assert_eq!(brier(&good, &[]).unwrap_err(), CoreError::Empty { field: "raters" });
    }
}
