//! What is measured of every case, to draw the Dice of its samples and to choose the cases that get pictures.

use crate::error::{EvalError, Result};
use crate::figures::sample_dice::Row;
use crate::scores::ScoreConfig;
use crate::scores::memory;
use ssn_core::metrics::{BothEmpty, ClassGroup, Overlap, PairStatistic, PairwiseDistances, quantile};
use ssn_core::{BitPlanes, CoreError};
use ssn_core::{OnProgress, Phase};
use ssn_data::parallel;

use super::material::{Material, Subject};

/// Raters that are reckoned with before their number is known.
const RATERS: usize = 8;

/// What is measured of one case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Survey {
    /// The case.
    pub(super) id: String,
    /// The Dice of the mean prediction, the mean over raters; all foreground classes are one mask.
    pub(super) prediction: Option<f64>,
    /// The same of each sample that has one.
    pub(super) samples: Vec<f64>,
    /// GED² of the samples.
    pub(super) ged: Option<f64>,
    /// The mean distance of two samples.
    pub(super) sample_diversity: f64,
    /// The mean distance of two raters; nothing where there is only one, who cannot disagree.
    pub(super) rater_diversity: Option<f64>,
}

impl Survey {
    fn of(subject: &Subject) -> Result<Self, CoreError> {
        let raters: Vec<BitPlanes> = subject.raters.iter().map(BitPlanes::new).collect();
        let samples: Vec<BitPlanes> = subject.samples.iter().map(BitPlanes::new).collect();
        let group = ClassGroup::whole(subject.file.labels())?;
        let dice = |map: &BitPlanes| -> Result<Option<f64>, CoreError> {
            let mut values = vec![];
            for rater in &raters {
                values.extend(Overlap::new(map, rater, &group)?.dice(BothEmpty::Undefined));
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            Ok((!values.is_empty()).then_some(mean))
        };
        let prediction = dice(&BitPlanes::new(&subject.prediction))?;
        let sample_dice: Vec<Option<f64>> = samples.iter().map(dice).collect::<Result<_, _>>()?;
        // Without raters, the samples stand in for them, so that their diversity is known.
        let others = if raters.is_empty() { &samples } else { &raters };
        let ged = PairwiseDistances::new(&samples, others)?.ged(PairStatistic::V)?;
        Ok(Self {
            id: subject.file.description().case.clone(),
            prediction,
            samples: sample_dice.into_iter().flatten().collect(),
            ged: (!raters.is_empty()).then_some(ged.squared),
            sample_diversity: ged.sample_diversity,
            rater_diversity: (raters.len() > 1).then_some(ged.rater_diversity),
        })
    }

    /// The row of the figure; nothing without a rater.
    pub(super) fn row(&self) -> Option<Row> {
        if self.samples.is_empty() && self.prediction.is_none() {
            return None;
        }
        let above = self.prediction.filter(|_| !self.samples.is_empty()).map(|prediction| {
            let better = self.samples.iter().filter(|dice| **dice > prediction).count();
            better as f64 / self.samples.len() as f64
        });
        Some(Row {
            name: self.id.clone(),
            prediction: self.prediction,
            samples: self.samples.clone(),
            high: quantile(&self.samples, 0.95).ok().flatten(),
            above,
        })
    }
}

/// Measures all cases, several at once where memory allows it.
pub(super) fn survey(material: &Material, progress: OnProgress<'_>) -> Result<Vec<Survey>> {
    let phase = Phase::new(progress, material.found.len(), "cases");
    let one = |index: usize, meter: &parallel::MemoryMeter| {
        let found = &material.found[index];
        let samples = material.count(found);
        let maps = found.header.description.voxels().saturating_mul(samples + RATERS);
        meter.saw_all(memory(&found.header, RATERS, &ScoreConfig::fast(samples)).saturating_add(maps));
        Ok(Survey::of(&material.subject(index)?)?)
    };
    let results = parallel::map(material.found.len(), &|done| phase.reached(done), one);
    let unpack = |(index, result): (usize, Result<Result<Survey>, String>)| match result {
        Ok(result) => result,
        Err(panic) => {
            let id = material.found[index].id();
            let message = format!("case {id}: the program failed: {panic}; please report this");
            Err(EvalError::internal(message))
        }
    };
    results.into_iter().enumerate().map(unpack).collect()
}
