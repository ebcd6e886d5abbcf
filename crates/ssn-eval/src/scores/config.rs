//! What is scored, and with how many samples.

use serde::{Deserialize, Serialize};
use ssn_core::Steering;
use ssn_core::metrics::ClassGroup;
use ssn_core::metrics::calibration::MAX_BINS;

use crate::error::{EvalError, Result};
use crate::predictions::seed::case_seed;

/// Samples of the paper's figures on LIDC.
pub const DEFAULT_SAMPLES: usize = 100;
/// The sample counts at which the field reports GED².
pub const GED_COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 50, 100];
/// The tolerance of the normalized surface Dice, in millimeters.
pub const DEFAULT_TOLERANCE: f64 = 2.0;
/// The bins of the calibration error, as most papers have them.
pub const DEFAULT_BINS: usize = 15;

/// Classes that are scored as one mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in tables.
    pub name: String,
    /// Its classes, by number; not the background.
    pub classes: Vec<u8>,
}

impl Group {
    /// A name and the names of classes, from `NAME=CLASS+CLASS`.
    pub fn parse(text: &str) -> Result<(String, Vec<String>), String> {
        let expected = "expected NAME=CLASS+CLASS, such as \"whole tumour=core+oedema\"";
        let (name, classes) = text.split_once('=').ok_or(expected)?;
        let classes: Vec<String> = classes.split('+').map(|class| class.trim().to_owned()).collect();
        let empty = name.trim().is_empty() || classes.iter().any(String::is_empty);
        if empty { Err(expected.to_owned()) } else { Ok((name.trim().to_owned(), classes)) }
    }
}

/// What is scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreConfig {
    /// Samples that are drawn of each case.
    pub samples: usize,
    /// Sample counts at which GED² is told; those above `samples` are left out, and `samples` itself is always told.
    pub ged_counts: Vec<usize>,
    /// The seed of the samples; each case has one of its own, [`ScoreConfig::seed_of`].
    pub seed: u64,
    /// The masks that Dice and its like are told for; none means each class, and all of them together.
    pub groups: Vec<Group>,
    /// Draw independent categoricals of a deterministic network, whose only sample is its prediction otherwise.
    pub categorical: bool,
    /// The temperature of samples of a distribution; 1 leaves it as it is.
    pub temperature: f32,
    /// Whether samples of a distribution have the independent noise of voxels.
    pub diagonal_noise: bool,
    /// Tell NCC, calibration and likelihood, which look at the probabilities of every voxel.
    pub voxelwise: bool,
    /// Tell the distances between surfaces.
    pub surfaces: bool,
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
            groups: vec![],
            categorical: false,
            temperature: 1.0,
            diagonal_noise: true,
            voxelwise: true,
            surfaces: true,
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

    /// The seed of a case's samples, by [`case_seed`].
    pub fn seed_of(&self, case: &str) -> u64 {
        case_seed(self.seed, case)
    }

    /// How samples of a distribution are drawn.
    pub(super) fn steering(&self) -> Steering {
        let Self { temperature, diagonal_noise, .. } = *self;
        Steering { temperature, diagonal_noise, ..Steering::default() }
    }

    /// Whether samples are drawn otherwise than the network says.
    pub fn steers(&self) -> bool {
        self.steering() != Steering::default()
    }

    /// Refuses settings with which nothing can be scored.
    ///
    /// # Errors
    /// [`EvalError::Parts`] with the setting, what it is and what it must be.
    pub fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(EvalError::Parts(message));
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

    /// The counts at which GED² is told for `samples` samples, ascending.
    pub(super) fn counts(&self, samples: usize) -> Vec<usize> {
        let asked = self.ged_counts.iter().copied().filter(|&count| count > 0 && count < samples);
        let mut counts: Vec<usize> = asked.chain([samples]).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The groups of a case with these classes.
    pub(super) fn groups_of(&self, classes: &[String]) -> Result<Vec<(String, ClassGroup)>> {
        if !self.groups.is_empty() {
            let named = |group: &Group| Ok((group.name.clone(), ClassGroup::new(&group.classes)?));
            return self.groups.iter().map(named).collect();
        }
        let mut groups: Vec<_> =
            classes.iter().skip(1).cloned().zip(ClassGroup::each(classes.len())).collect();
        if groups.len() > 1 {
            groups.push(("all classes".to_owned(), ClassGroup::whole(classes.len())?));
        }
        Ok(groups)
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

    #[test]
    fn settings_are_checked() {
        let good = ScoreConfig::default();
        assert!(good.check().is_ok());
        for wrong in [
            ScoreConfig { samples: 0, ..good.clone() },
            ScoreConfig { bins: 0, ..good.clone() },
            ScoreConfig { tolerance: f64::NAN, ..good.clone() },
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(", but "));
        }
    }
}
