//! Validation: whole images of the validation set, scored as in the evaluation with fewer samples.

use std::ops::ControlFlow;

use ssn_core::LabelMap;
use ssn_core::metrics::Summary;
use ssn_data::{Case, Cases, Dataset, Split};
use ssn_eval::registry::{RATER_DIVERSITY, SAMPLE_DIVERSITY};
use ssn_eval::scores::{self, CaseScores, ScoreConfig};
use ssn_eval::{ModelId, case_seed};
use ssn_io::{ErrorKind, Place};
use ssn_nn::communicator::{Communicator, all_gather_values};
use ssn_nn::error::{NnError, Result};
use ssn_nn::model::Model;

use super::events::{Callback, Event, ValidationScores};
use super::folder::ResolvedRun;
use super::trained::describe;
use crate::inference::tiles::TileConfig;
use crate::inference::{InputImage, LatentSamples, WholeImageConfig, WholeImagePrediction, predict};

/// The seed of the samples: validations of all steps see the same noise, so that they differ by the model alone.
const SEED: u64 = 0;

/// How much tiles share: less than for predictions, because a validation comes often, and seams hardly change its scores.
const OVERLAP: f64 = 0.25;

/// The cases to validate on.
pub struct Validator {
    cases: Dataset,
    /// Places of the chosen cases in the validation set.
    chosen: Vec<usize>,
    samples: usize,
    tiles: TileConfig,
}

impl Validator {
    /// Chooses the cases; nothing if there are none, or if validation is not asked for.
    pub fn new(resolved: &ResolvedRun) -> Option<Self> {
        let training = &resolved.config.training;
        let cases = resolved.dataset.subset(&resolved.parts, Split::Validation);
        let most = training.validation_cases.unwrap_or(usize::MAX).min(cases.len());
        let chosen: Vec<usize> = (0..most).map(|i| i * cases.len() / most).collect();
        let wanted = training.validate_every > 0 && !chosen.is_empty();
        // Training shows that the network accepts the size of its patches.
        let tiles = TileConfig { overlap: OVERLAP, unit: resolved.config.patch(), ..TileConfig::default() };
        wanted.then_some(Self { cases, chosen, samples: training.validation_samples as usize, tiles })
    }

    /// Scores the cases, divided among the ranks, and returns the means.
    ///
    /// A network that has hardly begun to learn may give numbers that no file can hold. Its validation has no scores, not
    /// even of the other cases: their mean would be compared with means over all.
    pub fn validate(
        &self,
        model: &Model,
        comm: Option<&dyn Communicator>,
        callback: &mut dyn Callback,
    ) -> Result<Validation> {
        let (rank, size) = comm.map_or((0, 1), |comm| (comm.rank(), comm.world_size()));
        let (mut scores, total) = (Some(vec![]), self.chosen.len());
        for (done, &index) in self.chosen.iter().skip(rank).step_by(size).enumerate() {
            callback.on_event(&Event::Validating { done: done * size, total });
            match self.validate_case(index, model, callback) {
                Ok(case) => scores.iter_mut().for_each(|scores| scores.push(Ok(case))),
                Err(error) => match error.kind() {
                    ErrorKind::NonFinite => {
                        scores.iter_mut().for_each(|scores| scores.push(Err(error.to_string())));
                    }
                    ErrorKind::Stopped => {
                        scores = None;
                        break;
                    }
                    _ => return Err(error),
                },
            }
        }
        let Some(scores) = gather_scores(scores, comm)? else { return Ok(Validation::Stopped) };
        let scores: Vec<Scores> = match scores.into_iter().collect() {
            Ok(scores) => scores,
            Err(reason) => return Ok(Validation::Unscored { reason }),
        };
        let mean = |part: usize| {
            let values: Vec<Option<f64>> = scores.iter().map(|case| case[part]).collect();
            Ok::<_, ssn_core::CoreError>(Summary::of(&values)?.mean)
        };
        Ok(Validation::Scored(ValidationScores {
            ged: mean(0)?,
            diversity: mean(1)?,
            rater_diversity: mean(2)?,
            dice: mean(3)?,
        }))
    }

    /// GED², diversity of samples and of raters, and Dice of a case.
    fn validate_case(&self, index: usize, model: &Model, callback: &dyn Callback) -> Result<Scores> {
        let case = self.cases.load(index)?;
        let latent_samples = LatentSamples { count: self.samples, seed: case_seed(SEED, &case.id) };
        let config = WholeImageConfig { tiles: self.tiles, latent_samples, ..WholeImageConfig::default() };
        let image = InputImage::new(&case.image, case.channels, case.shape, case.mask.as_deref());
        let prediction = image.and_then(|image| {
            predict(model, &image, &config, |_, _| match callback.should_stop() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        let prediction = prediction.map_err(|error| match error {
            // Errors without a place are those of the image.
            NnError::Other(error) if error.place == Place::None && error.kind != ErrorKind::Stopped => {
                error.within(format!("case {} of the validation", case.id)).into()
            }
            other => other,
        })?;
        let scores = score(case, prediction, &self.cases.classes, self.samples)?;
        let diversities = [SAMPLE_DIVERSITY, RATER_DIVERSITY].map(|key| scores.value(key));
        Ok([scores.ged_squared(), diversities[0], diversities[1], scores.mean_dice()])
    }
}

/// How a validation ended.
pub enum Validation {
    /// The means over all cases.
    Scored(ValidationScores),
    /// The network gave a number that cannot be scored.
    Unscored { reason: String },
    /// A rank was asked to stop.
    Stopped,
}

/// The scores of a case that a validation is about.
type Scores = [Option<f64>; 4];

/// A case's scores, or why it has none.
type CaseOutcome = std::result::Result<Scores, String>;

/// Gathers the cases of all ranks, in the order of the cases; nothing if a rank was asked to stop.
fn gather_scores(
    scores: Option<Vec<CaseOutcome>>,
    comm: Option<&dyn Communicator>,
) -> Result<Option<Vec<CaseOutcome>>> {
    let Some(comm) = comm else { return Ok(scores) };
    let parts: Option<Vec<Vec<CaseOutcome>>> = all_gather_values(comm, &scores)?.into_iter().collect();
    let Some(parts) = parts else { return Ok(None) };
    let count = parts.iter().map(Vec::len).sum();
    Ok(Some((0..count).map(|case| parts[case % parts.len()][case / parts.len()].clone()).collect()))
}

/// The scores of one case.
fn score(
    case: Case,
    prediction: WholeImagePrediction,
    classes: &[String],
    samples: usize,
) -> Result<CaseScores> {
    let raters: Vec<LabelMap> = case
        .raters
        .iter()
        .map(|rater| LabelMap::new(rater.clone(), classes.len()))
        .collect::<ssn_core::Result<_>>()?;
    let model = ModelId { sha256: String::new(), name: String::new() };
    let file = describe(case, prediction, classes, model)?;
    Ok(scores::score(&file, &raters, &ScoreConfig { seed: SEED, ..ScoreConfig::fast(samples) })?)
}
