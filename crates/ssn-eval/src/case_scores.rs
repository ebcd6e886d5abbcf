//! The scores of one case: their values, and the rows of tables that show them.

use serde::{Deserialize, Serialize};
use ssn_args::{GedDistance, ScoreSet};
use ssn_core::metrics::ClassGroup;
use ssn_data::text::counted;
use ssn_io::Result;

use crate::inputs::{CaseInput, MaskInput, VoxelInput};
use crate::means::{mean, of_different};
use crate::registry::{
    Compute, DSC, EXCESS_GED2, GED2, RATER_DIVERSITY, SAMPLE_DIVERSITY, SCORES, ScoreDef, ScoreKey, Unit,
    Values, is_of, with_units,
};
use crate::reliability::Reliability;

/// All scores of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseScores {
    /// The samples behind them; 1 for a deterministic network, its prediction.
    pub samples: usize,
    /// The raters.
    pub raters: usize,
    /// The distance that GED², diversity and HM-IoU are made of.
    pub distance: GedDistance,
    /// Whether lengths are in voxels and volumes are numbers of voxels, because the image does not say how large these are.
    pub in_voxels: bool,
    /// The names of the masks.
    pub masks: Vec<String>,
    /// The values of every score that was asked for, in the order of tables.
    pub values: Vec<ScoreValues>,
    /// The bins behind the calibration errors, for diagrams; none if they were not asked for, and where there are more than a diagram
    /// can show.
    pub reliability: Option<Reliability>,
}

/// The values of one score of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreValues {
    /// Its name in files: see [`crate::registry::ScoreKey`].
    pub key: String,
    /// One value, or one per rater; none where there is no value.
    pub each: Vec<Option<f64>>,
    /// Pairs behind them of which one mask is empty, so that their distance is undefined or penalized.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub one_empty: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CaseScores {
    /// Returns the values of the score with a name in files, such as `dsc lesion`; none if it was not asked for.
    pub fn of(&self, name: &str) -> Option<&[Option<f64>]> {
        self.values.iter().find(|values| values.key == name).map(|values| values.each.as_slice())
    }

    /// Returns the values of a score of a mask, one per rater; none if it was not asked for.
    pub fn of_mask(&self, key: &str, mask: &str) -> &[Option<f64>] {
        self.of(&format!("{key} {mask}")).unwrap_or_default()
    }

    /// Returns the value of a score of the whole case.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.of(name)?.first().copied().flatten()
    }

    /// Returns GED² of all samples.
    pub fn ged_squared(&self) -> Option<f64> {
        let all = self.values.iter().rfind(|values| is_of(&values.key, GED2))?;
        all.each.first().copied().flatten()
    }

    /// Returns GED² less what a perfect distribution would have; none for a single rater.
    pub fn excess_ged_squared(&self) -> Option<f64> {
        self.value(EXCESS_GED2)
    }

    /// Returns the mean distance of two different raters; none for a single one.
    pub fn rater_distance(&self) -> Option<f64> {
        of_different(self.value(RATER_DIVERSITY)?, self.raters)
    }

    /// Returns the mean distance of two different samples; none for a single one.
    pub fn sample_distance(&self) -> Option<f64> {
        of_different(self.value(SAMPLE_DIVERSITY)?, self.samples)
    }

    /// Returns the DSC of the prediction: the mean over masks of the mean over raters, where they have a value.
    pub fn mean_dice(&self) -> Option<f64> {
        mean(self.masks.iter().filter_map(|mask| mean(self.of_mask(DSC, mask).iter().copied().flatten())))
    }
}

/// The values of one case for one score.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseValues {
    /// The column in `cases.csv` and the name in `summary.json`.
    pub key: String,
    /// The row in tables.
    pub title: String,
    /// The mask.
    pub group: Option<String>,
    /// How it is shown.
    pub unit: Unit,
    /// Whether each rater has a value of its own.
    pub per_rater: bool,
    /// One value, or one per rater; none where there is no value.
    pub values: Vec<Option<f64>>,
    /// Pairs behind them of which one mask is empty, so that their distance is undefined or penalized.
    pub one_empty: usize,
}

impl CaseValues {
    /// Returns the mean over the raters that have a value.
    pub fn mean(&self) -> Option<f64> {
        mean(self.values.iter().copied().flatten())
    }

    /// Returns the score that they are of.
    pub fn score(&self) -> Option<&'static ScoreDef> {
        ScoreKey::parse(&self.key).map(|key| key.score)
    }

    /// Returns `true` if they are of the score with this key, at any number of samples and of any mask.
    pub fn is(&self, key: &str) -> bool {
        is_of(&self.key, key)
    }
}

/// Returns all scores of a case, in the order of tables.
pub fn observations(scores: &CaseScores) -> Vec<CaseValues> {
    let row = |values: &ScoreValues| {
        let ScoreKey { score, samples, mask } = ScoreKey::parse(&values.key)?;
        let title = with_units(score.title, scores.in_voxels)
            .replace("{n}", &counted(samples.unwrap_or(scores.samples), "sample"))
            .replace("{distance}", scores.distance.suffix());
        Some(CaseValues {
            key: values.key.clone(),
            title,
            group: mask.map(str::to_owned),
            unit: score.quantity.unit(scores.in_voxels),
            per_rater: score.per_rater,
            values: values.each.clone(),
            one_empty: values.one_empty,
        })
    };
    scores.values.iter().filter_map(row).collect()
}

/// The scores of a case while they are computed.
#[derive(Default)]
pub(crate) struct Computation {
    /// With the place in tables: those of the case first, then mask by mask, each in the order of [`SCORES`].
    values: Vec<((usize, usize), ScoreValues)>,
}

impl Computation {
    /// Computes the scores of the case and of its masks.
    pub(crate) fn add_case(&mut self, case: &CaseInput<'_>, masks: &[(String, ClassGroup)]) -> Result<()> {
        let asked =
            |set: &ScoreSet| case.config.sets.contains(set) || case.config.sets.contains(&ScoreSet::All);
        let is_asked = |row: &ScoreDef| row.sets.is_empty() || row.sets.iter().any(asked);
        let rows = || SCORES.iter().enumerate().filter(|(_, row)| is_asked(row));
        for (place, row) in rows() {
            match row.compute {
                Compute::Counts(compute) => {
                    for count in case.config.counts(case.samples.len()) {
                        let value = Values { each: vec![Some(compute(case, count)?)], one_empty: 0 };
                        self.add(place, 0, ScoreKey { score: row, samples: Some(count), mask: None }, value);
                    }
                }
                Compute::Case(compute) => self.add_some(place, row, compute(case)?),
                Compute::Voxels(_) | Compute::Mask(_) => {}
            }
        }
        for (number, (name, group)) in masks.iter().enumerate() {
            let mask = MaskInput::new(case, group);
            for (place, row) in rows() {
                if let Compute::Mask(compute) = row.compute
                    && let Some(values) = compute(&mask)?
                {
                    let key = ScoreKey { score: row, samples: None, mask: Some(name) };
                    self.add(place, number + 1, key, values);
                }
            }
        }
        Ok(())
    }

    /// Computes the scores of the probabilities.
    pub(crate) fn add_voxels(&mut self, voxels: &VoxelInput<'_>) -> Result<()> {
        for (place, row) in SCORES.iter().enumerate() {
            if let Compute::Voxels(compute) = row.compute {
                self.add_some(place, row, compute(voxels)?);
            }
        }
        Ok(())
    }

    fn add_some(&mut self, place: usize, score: &'static ScoreDef, values: Option<Values>) {
        if let Some(values) = values {
            self.add(place, 0, ScoreKey { score, samples: None, mask: None }, values);
        }
    }

    fn add(&mut self, place: usize, mask: usize, key: ScoreKey<'_>, Values { each, one_empty }: Values) {
        self.values.push(((mask, place), ScoreValues { key: key.to_string(), each, one_empty }));
    }

    /// Returns all values in the order of tables.
    pub(crate) fn finish(mut self) -> Vec<ScoreValues> {
        self.values.sort_by_key(|(place, _)| *place);
        self.values.into_iter().map(|(_, values)| values).collect()
    }
}
