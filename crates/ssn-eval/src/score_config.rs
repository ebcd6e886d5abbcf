//! Settings of scores, and the label maps that are scored.

use serde::{Deserialize, Serialize};
use ssn_args::{
    DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_SURFACE_SAMPLES, DEFAULT_TOLERANCE, GedDistance, Group,
    PredictionRule, ScoreSet,
};
use ssn_core::metrics::{ClassGroup, MAX_BINS};
use ssn_core::{LabelMap, Steering};
use ssn_io::{Error, Result};

/// The sample counts at which the field reports GED².
pub const GED_COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 50, 100];
/// The name of the mask of all foreground classes together.
pub const ALL_CLASSES: &str = "all classes";

/// What is scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreConfig {
    /// Samples that are drawn of each case.
    pub samples: usize,
    /// Sample counts at which GED² is reported; those above `samples` are left out, and `samples` itself is always reported.
    pub ged_counts: Vec<usize>,
    /// The seed of the samples; each case has noise of its own ([`crate::case_seed`]).
    pub seed: u64,
    /// The distance that GED², diversity and HM-IoU are made of.
    #[serde(default)]
    pub distance: GedDistance,
    /// Which sets of scores are reported; those of the paper are always.
    #[serde(default)]
    pub sets: Vec<ScoreSet>,
    /// The masks that Dice and surface scores are reported for; none means each class, and all of them together.
    pub groups: Vec<Group>,
    /// Which one segmentation DSC and surface scores are of.
    pub prediction: PredictionRule,
    /// Draw independent categoricals of a deterministic network, whose only sample is its prediction otherwise.
    pub categorical: bool,
    /// The temperature of samples of a distribution; 1 leaves it as it is.
    pub temperature: f32,
    /// Whether samples of a distribution have the independent noise of voxels.
    pub diagonal_noise: bool,
    /// Report NCC, calibration and likelihood, which look at the probabilities of every voxel.
    pub voxelwise: bool,
    /// Report the distances between surfaces.
    pub surfaces: bool,
    /// Samples whose surfaces are compared with the raters'; the first of them.
    #[serde(default)]
    pub surface_samples: usize,
    /// HD95 and ASSD of a pair with one empty mask are the diagonal of the image; without this they have no value.
    #[serde(default)]
    pub empty_penalty: bool,
    /// The tolerance of the normalized surface Dice, in millimeters.
    pub tolerance: f64,
    /// The bins of the calibration error.
    pub bins: usize,
}

impl Default for ScoreConfig {
    fn default() -> Self {
        Self {
            samples: DEFAULT_SAMPLES,
            ged_counts: GED_COUNTS.to_vec(),
            seed: 0,
            distance: GedDistance::Iou,
            sets: vec![],
            groups: vec![],
            prediction: PredictionRule::Mean,
            categorical: false,
            temperature: 1.0,
            diagonal_noise: true,
            voxelwise: true,
            surfaces: true,
            surface_samples: DEFAULT_SURFACE_SAMPLES,
            empty_penalty: false,
            tolerance: DEFAULT_TOLERANCE,
            bins: DEFAULT_BINS,
        }
    }
}

impl ScoreConfig {
    /// GED² and Dice alone, which take a fraction of the time: what training watches.
    pub fn fast(samples: usize) -> Self {
        Self { samples, ged_counts: vec![], voxelwise: false, surfaces: false, ..Self::default() }
    }

    pub(crate) fn steering(&self) -> Steering {
        let Self { temperature, diagonal_noise, .. } = *self;
        Steering { temperature, diagonal_noise, ..Steering::default() }
    }

    /// Whether samples are drawn otherwise than the network says.
    pub fn steers(&self) -> bool {
        self.steering() != Steering::default()
    }

    /// Refuses settings with which nothing can be scored.
    pub fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(Error::mismatch(message));
        if self.samples == 0 {
            return wrong("samples is 0, but at least one is needed".to_owned());
        }
        if !(1..=MAX_BINS).contains(&self.bins) {
            return wrong(format!("bins is {}, but it must be 1 to {MAX_BINS}", self.bins));
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return wrong(format!("tolerance is {}, but it must be at least 0", self.tolerance));
        }
        if !self.temperature.is_finite() {
            return wrong(format!("temperature is {}, but it must be a number", self.temperature));
        }
        Ok(())
    }

    /// The counts at which GED² is reported for `samples` samples, ascending.
    pub(crate) fn counts(&self, samples: usize) -> Vec<usize> {
        let asked = self.ged_counts.iter().copied().filter(|&count| count > 0 && count < samples);
        let mut counts: Vec<usize> = asked.chain([samples]).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The groups of a case with these classes.
    pub(crate) fn groups_of(&self, classes: &[String]) -> Result<Vec<(String, ClassGroup)>> {
        if !self.groups.is_empty() {
            let named = |group: &Group| Ok((group.name.clone(), ClassGroup::new(&group.classes)?));
            return self.groups.iter().map(named).collect();
        }
        let mut groups: Vec<_> =
            classes.iter().skip(1).cloned().zip(ClassGroup::each(classes.len())).collect();
        if groups.len() > 1 {
            groups.push((ALL_CLASSES.to_owned(), ClassGroup::whole(classes.len())?));
        }
        Ok(groups)
    }
}

/// Label maps `[d, h, w]` of one image, whatever made them.
#[derive(Debug, Clone, Copy)]
pub struct CaseMaps<'a> {
    /// The id of the case, for messages.
    pub case: &'a str,
    /// The names of the labels, the background first.
    pub classes: &'a [String],
    /// The size of the image, `[d, h, w]`.
    pub size: [usize; 3],
    /// The distance of neighboring voxels along d, h and w, in millimeters, where it is known.
    pub spacing: Option<[f64; 3]>,
    /// The one segmentation that stands for all; without it, the most probable labels.
    pub prediction: Option<&'a LabelMap>,
    /// The samples, at least one.
    pub samples: &'a [LabelMap],
    /// The probabilities of the labels, `[l, v]`; without them, the shares of the samples.
    pub probabilities: Option<&'a [f32]>,
}

impl CaseMaps<'_> {
    /// The volume of a voxel: in milliliters, or 1 where its size is not known.
    pub(crate) fn voxel_volume(&self) -> f64 {
        // A thousand cubic millimeters are a milliliter; the factors are in the order of the file's axes.
        self.spacing.map_or(1.0, |[d, h, w]| [w, h, d].iter().product::<f64>() / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_end_with_all_samples() {
        let config = ScoreConfig::default();
        assert_eq!(config.counts(20), [1, 2, 4, 8, 16, 20]);
        assert_eq!(config.counts(1), [1]);
        assert_eq!(ScoreConfig::fast(5).counts(5), [5]);
    }
}
