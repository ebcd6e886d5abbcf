//! The bins of reliability diagrams.

use serde::{Deserialize, Serialize};
use ssn_core::LabelMap;
use ssn_core::metrics::{Calibrated, CalibrationBin, ece_of_bins, reliability};
use ssn_io::Result;

use crate::means::mean;

/// The bins of reliability diagrams. An observation is a pair of a voxel and a rater.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reliability {
    /// Of the most probable label.
    pub top_label: Vec<CalibrationBin>,
    /// Of each foreground class.
    pub classes: Vec<Vec<CalibrationBin>>,
}

impl Reliability {
    /// Sorts the probabilities `[l, v]` of one case into bins.
    pub(crate) fn new(probabilities: &[f32], raters: &[LabelMap], bins: usize) -> Result<Self> {
        let classes = raters.first().map_or(0, LabelMap::classes);
        let of = |calibrated| reliability(probabilities, raters, calibrated, bins);
        Ok(Self {
            top_label: of(Calibrated::TopLabel)?,
            classes: (1..classes)
                .map(|class| of(Calibrated::Class(class as u8)))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the calibration error of the most probable label.
    pub fn ece(&self) -> Option<f64> {
        ece_of_bins(&self.top_label)
    }

    /// Returns the mean calibration error of the foreground classes.
    pub fn foreground_ece(&self) -> Option<f64> {
        mean(self.classes.iter().filter_map(|bins| ece_of_bins(bins)))
    }

    /// Returns the bins of all foreground classes together: an observation is one of a voxel, a rater and a class.
    pub fn foreground(&self) -> Vec<CalibrationBin> {
        let mut all = vec![];
        self.classes.iter().for_each(|bins| add_bins(&mut all, bins));
        all
    }

    /// Adds up the bins of several cases.
    pub(crate) fn pooled<'a>(cases: impl Iterator<Item = &'a Self>) -> Option<Self> {
        cases.cloned().reduce(|mut all, case| {
            add_bins(&mut all.top_label, &case.top_label);
            all.classes.resize(all.classes.len().max(case.classes.len()), vec![]);
            all.classes.iter_mut().zip(&case.classes).for_each(|(all, bins)| add_bins(all, bins));
            all
        })
    }
}

/// Adds bins to others with the same edges.
fn add_bins(sum: &mut Vec<CalibrationBin>, bins: &[CalibrationBin]) {
    sum.resize(sum.len().max(bins.len()), CalibrationBin::default());
    for (sum, bin) in sum.iter_mut().zip(bins) {
        sum.count += bin.count;
        sum.events += bin.events;
        sum.confidence += bin.confidence;
    }
}
