//! Whether probabilities mean what they say: expected calibration error and Brier score.
//!
//! Each pair of a voxel and a rater is one observation, so that several raters of an image are pooled: where
//! two of four raters mark a voxel, a probability of one half is calibrated.

use serde::{Deserialize, Serialize};

use super::check;
use crate::labels::LabelMap;
use crate::{CoreError, Result};

/// The most bins of the calibration error.
pub const MAX_BINS: usize = 65_536;

/// How far below the edge of a bin a probability is at the edge.
const EDGE: f64 = 1e-6;

/// Which probability is compared with which event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calibrated {
    /// The largest probability of a voxel, with the event that the rater chose that class; the lowest class
    /// wins ties.
    TopLabel,
    /// The probability of one class, with the event that the rater chose it.
    Class(u8),
}

/// What a bin of confidences holds. Bins of several cases or classes are added up before their gaps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// Observations: pairs of a voxel and a rater.
    pub count: u64,
    /// Those in which the rater chose the class.
    pub events: u64,
    /// The sum of the confidences.
    pub confidence: f64,
}

impl CalibrationBin {
    /// The mean confidence; none for an empty bin.
    pub fn mean_confidence(&self) -> Option<f64> {
        (self.count > 0).then(|| self.confidence / self.count as f64)
    }

    /// How often the rater chose the class; none for an empty bin.
    pub fn frequency(&self) -> Option<f64> {
        (self.count > 0).then(|| self.events as f64 / self.count as f64)
    }
}

/// Probabilities `[c, v]` against one or several raters in `bins` bins of equal width, what a reliability diagram shows: bin b
/// of B holds b/B ≤ p < (b + 1)/B, the last one 1 as well. A probability within 10⁻⁶ of an edge is at the edge, so that shares
/// of samples in single precision do not fall beside it by chance.
///
/// # Errors
/// As every score, and unless 1 ≤ `bins` ≤ [`MAX_BINS`] and the class exists.
pub fn reliability(
    probabilities: &[f32],
    raters: &[LabelMap],
    calibrated: Calibrated,
    bins: usize,
) -> Result<Vec<CalibrationBin>> {
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
    let mut tallies = vec![CalibrationBin::default(); bins];
    for voxel in 0..space.voxels {
        let probability = |class: usize| probabilities[class * space.voxels + voxel];
        let class = match calibrated {
            Calibrated::Class(label) => usize::from(label),
            Calibrated::TopLabel => {
                (1..space.classes).fold(0, |top, k| if probability(k) > probability(top) { k } else { top })
            }
        };
        let confidence = f64::from(probability(class)).clamp(0.0, 1.0);
        let bin = &mut tallies[(((confidence + EDGE) * bins as f64) as usize).min(bins - 1)];
        bin.count += raters.len() as u64;
        bin.events +=
            raters.iter().filter(|rater| usize::from(rater.labels()[voxel]) == class).count() as u64;
        bin.confidence += confidence * raters.len() as f64;
    }
    Ok(tallies)
}

/// The ECE of bins, Σ_b (n_b / n) |frequency_b − confidence_b|; none without an observation.
pub fn ece_of_bins(bins: &[CalibrationBin]) -> Option<f64> {
    let count: u64 = bins.iter().map(|bin| bin.count).sum();
    let gaps = bins.iter().map(|bin| (bin.events as f64 - bin.confidence).abs());
    (count > 0).then(|| gaps.sum::<f64>() / count as f64)
}

/// The expected calibration error of probabilities `[c, v]` against one or several raters: [`ece_of_bins`] of their
/// [`reliability`].
///
/// # Errors
/// As [`reliability`].
pub fn ece(probabilities: &[f32], raters: &[LabelMap], calibrated: Calibrated, bins: usize) -> Result<f64> {
    Ok(ece_of_bins(&reliability(probabilities, raters, calibrated, bins)?).unwrap_or_default())
}

/// The Brier score of probabilities `[c, v]`: the mean over voxels and raters of Σ_k (p_k − [y = k])², 0 to 2.
///
/// The sum runs over all classes, the background included; for two classes that is twice the score that
/// counts only the probability of the foreground.
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
        let probabilities = [0.5, 1.0, 0.5, 0.0];
        assert_eq!(ece(&probabilities, &raters, Calibrated::Class(1), 10).unwrap(), 0.0);
    }

    #[test]
    fn ece_and_brier_by_hand() {
        // Top labels: 0 at 0.75 (right), 1 at 0.75 (wrong), 1 at 1 (right).
        let probabilities = [0.75, 0.25, 0.0, 0.25, 0.75, 1.0];
        let rater = [map(&[0, 0, 1])];
        for (bins, expected) in [(4, (2.5f64 - 2.0) / 3.0), (8, (1.5f64 - 1.0) / 3.0)] {
            let found = ece(&probabilities, &rater, Calibrated::TopLabel, bins).unwrap();
            assert!((found - expected).abs() < 1e-15, "{found}");
        }
        let score = brier(&probabilities, &rater).unwrap();
        assert!((score - (2.0 * 0.0625 + 2.0 * 0.5625) / 3.0).abs() < 1e-15, "{score}");
    }

    #[test]
    fn bins_hold_every_observation() {
        // Class 1 at 0.25, 0.75 and 1; the two raters agree on the last voxel only.
        let probabilities = [0.75, 0.25, 0.0, 0.25, 0.75, 1.0];
        let raters = [map(&[0, 0, 1]), map(&[1, 1, 1])];
        let bins = reliability(&probabilities, &raters, Calibrated::Class(1), 4).unwrap();
        let bin = |count, events, confidence| CalibrationBin { count, events, confidence };
        assert_eq!(bins, [bin(0, 0, 0.0), bin(2, 1, 0.5), bin(0, 0, 0.0), bin(4, 3, 3.5)]);
        assert_eq!((bins[3].mean_confidence(), bins[3].frequency()), (Some(0.875), Some(0.75)));
        assert_eq!((bins[0].mean_confidence(), ece_of_bins(&bins[..1])), (None, None));
        let found = ece(&probabilities, &raters, Calibrated::Class(1), 4).unwrap();
        assert_eq!((Some(found), found), (ece_of_bins(&bins), (0.5 + 0.5) / 6.0));
    }

    #[test]
    fn shares_at_the_edge_of_a_bin_are_in_the_upper_one() {
        // 0.7 in single precision is below 7/10: with 10 bins both voxels must fall into the same one.
        let probabilities = [0.3, 0.25, 0.7, 0.75];
        let rater = [map(&[1, 0])];
        let found = ece(&probabilities, &rater, Calibrated::Class(1), 10).unwrap();
        assert!((found - 0.45 / 2.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn bad_input_is_named() {
        let rater = [map(&[0, 1])];
        let good = [0.5; 4];
        let fail = |p: &[f32], what, bins| ece(p, &rater, what, bins).unwrap_err();
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
