//! Validation: whole images of the validation set, scored as in the evaluation with fewer samples.

use ssn_core::metrics::{BothEmpty, ClassGroup, Overlap, PairStatistic, Summary, ged};
use ssn_core::{BitPlanes, LabelMap, LowRankNormal, Sampler, Steering};
use ssn_data::{Case, Cases, Split, Subset};

use super::drive::{Event, Watch};
use super::metrics::Validation;
use super::resolve::Resolved;
use crate::error::Result;
use crate::model::Model;
use crate::whole_image::{Image, WholeImage, WholeImageConfig, predict};

/// The seed of the samples: validations of all steps see the same noise, so that they differ by the model alone.
const SEED: u64 = 0;

/// The cases to validate on.
pub struct Validator {
    cases: Subset,
    /// Places of the chosen cases in the validation set.
    chosen: Vec<usize>,
    samples: u64,
}

impl Validator {
    /// Chooses the cases; nothing if there are none, or if validation is not asked for.
    pub fn new(resolved: &Resolved) -> Option<Self> {
        let training = &resolved.config.training;
        let cases = resolved.dataset.subset(&resolved.parts, Split::Validation);
        let most = training.validation_cases.unwrap_or(usize::MAX).min(cases.len());
        let chosen: Vec<usize> = (0..most).map(|i| i * cases.len() / most).collect();
        let wanted = training.validate_every > 0 && !chosen.is_empty();
        wanted.then_some(Self { cases, chosen, samples: training.validation_samples })
    }

    /// The means over the cases; nothing if it was asked to stop on the way.
    pub fn validate(&self, model: &Model, watch: &mut dyn Watch) -> Result<Option<Validation>> {
        let mut scores = vec![];
        for (done, &index) in self.chosen.iter().enumerate() {
            if watch.should_stop() {
                return Ok(None);
            }
            let case = self.cases.load(index)?;
            let image = Image::new(&case.image, case.channels, case.shape, case.mask.as_deref())?;
            let prediction = predict(model, &image, &WholeImageConfig::default(), |_, _| {})?;
            scores.push(self.score(&case, &prediction)?);
            watch.saw(Event::Validating(done + 1));
        }
        let mean = |part: fn(&Validation) -> Option<f64>| {
            let values: Vec<Option<f64>> = scores.iter().map(part).collect();
            Ok::<_, ssn_core::CoreError>(Summary::of(&values)?.mean)
        };
        Ok(Some(Validation {
            ged: mean(|score| score.ged)?,
            diversity: mean(|score| score.diversity)?,
            rater_diversity: mean(|score| score.rater_diversity)?,
            dice: mean(|score| score.dice)?,
        }))
    }

    /// The scores of one case.
    fn score(&self, case: &Case, prediction: &WholeImage) -> Result<Validation> {
        let distribution = &prediction.distribution;
        let labels = distribution.classes().max(2);
        let mut raters = vec![];
        for rater in &case.raters {
            raters.push(BitPlanes::new(&LabelMap::new(prediction.region.cut(rater, case.shape), labels)?));
        }
        let mean = BitPlanes::new(&mean_labels(distribution)?);
        let samples = match prediction.stochastic {
            false => vec![mean.clone()],
            true => {
                let sampler = Sampler::new(distribution, SEED, &Steering::default())?;
                sampler.labels(0..self.samples)?.iter().map(BitPlanes::new).collect()
            }
        };
        let score = ged(&samples, &raters, PairStatistic::V)?;
        let group = ClassGroup::whole(labels)?;
        let mut dice = vec![];
        for rater in &raters {
            dice.push(Overlap::new(&mean, rater, &group)?.dice(BothEmpty::Undefined));
        }
        Ok(Validation {
            ged: Some(score.squared),
            diversity: Some(score.sample_diversity),
            rater_diversity: Some(score.rater_diversity),
            dice: Summary::of(&dice)?.mean,
        })
    }
}

/// The label map of the mean: the class with the largest logit, or where a single class is positive.
fn mean_labels(distribution: &LowRankNormal) -> Result<LabelMap> {
    let steering = Steering { temperature: 0.0, ..Steering::default() };
    let mut maps = Sampler::new(distribution, SEED, &steering)?.labels(0..1)?;
    Ok(maps.remove(0))
}
