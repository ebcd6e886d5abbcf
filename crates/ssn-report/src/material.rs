//! A folder of predictions with the images and the raters of its dataset, as far as they are there, and what is measured
//! of its cases.

use std::path::Path;

use ssn_core::metrics::{ClassGroup, Overlap, PairwiseDistances};
use ssn_core::{BitPlanes, Control, CoreError, LabelMap, Steering};
use ssn_data::{Case, Dataset, LabelPolicy};
use ssn_io::{Error, Limits, Result};

use ssn_args::SplitChoice;
use ssn_eval::evaluation::{ScoringJob, ScoringPlan, each_case, load_with_image};
use ssn_eval::predictions::{DistributionFile, Found, PredictionKind, Predictions, SampleSource};
use ssn_eval::scores::{ScoreConfig, mean, memory, of_different};

/// The folder, and the dataset if it can be opened.
pub(crate) struct PredictionSet {
    /// A name that no other folder of the report has.
    pub(crate) name: String,
    pub(crate) predictions: Predictions,
    /// Its cases, in natural order; at least one.
    pub(crate) found: Vec<Found>,
    /// The dataset, and the place in it of each case.
    dataset: Option<(Dataset, Vec<usize>)>,
    pub(crate) note: Option<String>,
    /// The most samples of a case that are drawn.
    samples: usize,
    pub(crate) seed: u64,
}

/// One case with its samples; all maps are of the whole image, `[d, h, w]`.
pub(crate) struct LoadedCase {
    pub(crate) file: DistributionFile,
    /// One channel of the image, or the mean of three, as of colors.
    pub(crate) image: Option<Vec<f32>>,
    /// What raters marked; none where that is not known.
    pub(crate) raters: Vec<LabelMap>,
    /// What each of them is called.
    pub(crate) rater_names: Vec<String>,
    pub(crate) prediction: LabelMap,
    /// The first samples, at least one.
    pub(crate) samples: Vec<LabelMap>,
}

impl PredictionSet {
    /// Opens a folder and looks for its dataset.
    pub(crate) fn open(
        name: String,
        predictions: Predictions,
        data: Option<&Path>,
        samples: usize,
        seed: u64,
    ) -> Result<Self> {
        let found = predictions.cases()?;
        if found.is_empty() {
            return Err(Error::mismatch(format!(
                "{} holds no distribution files; run `ssn predict` to its end",
                predictions.root().display()
            )));
        }
        let with_trained = found.iter().all(Found::is_trained_on);
        let (found, dataset, note) =
            match ScoringPlan::new(&predictions, data, SplitChoice::All, with_trained) {
                Ok(ScoringPlan { dataset, jobs, .. }) => {
                    let (found, places) =
                        jobs.into_iter().map(|ScoringJob { found, index }| (found, index)).unzip();
                    (found, Some((dataset.with_labels(LabelPolicy::Optional), places)), None)
                }
                Err(failure) if data.is_some() => return Err(failure),
                Err(failure) => (found, None, Some(failure.to_string())),
            };
        Ok(Self { name, predictions, found, dataset, note, samples, seed })
    }

    /// Reads a case, with its image where pictures are made of it, and draws its samples.
    pub(crate) fn read(&self, index: usize, with_image: bool) -> Result<LoadedCase> {
        let found = &self.found[index];
        let file = DistributionFile::read(&found.path, &Limits::default())?;
        let (image, raters, rater_names) = match &self.dataset {
            None => (None, vec![], vec![]),
            Some((dataset, places)) => {
                let about = file.description();
                let (case, raters) = load_with_image(dataset, places[index], about)?;
                let image = with_image.then(|| shown_channel(&case, dataset.is_color())).flatten();
                let names = dataset.rater_names_of(&case, raters.len());
                (image, raters, names)
            }
        };
        let prediction = file.map_on_image(&file.prediction()?)?;
        let samples = self.draw(&file, &Steering::default(), 0..self.count(found) as u64)?;
        Ok(LoadedCase { file, image, raters, rater_names, prediction, samples })
    }

    /// Draws samples of a case under a steering, as maps of the whole image.
    pub(crate) fn draw(
        &self,
        file: &DistributionFile,
        steering: &Steering,
        numbers: std::ops::Range<u64>,
    ) -> Result<Vec<LabelMap>> {
        let draw = SampleSource::new(file, self.seed, steering)?;
        draw.labels(numbers)?.iter().map(|map| file.map_on_image(map)).collect()
    }

    /// How many samples of a case are drawn: a network that draws samples itself left only so many.
    pub(crate) fn count(&self, found: &Found) -> usize {
        match found.header.description.kind {
            PredictionKind::Sampled => self.samples.min(found.header.samples),
            PredictionKind::Stochastic | PredictionKind::Deterministic => self.samples,
        }
    }

    /// The most samples that are drawn of any case.
    pub(crate) fn sample_count(&self) -> usize {
        self.found.iter().map(|found| self.count(found)).max().unwrap_or(0)
    }

    pub(crate) fn kind(&self) -> PredictionKind {
        self.found[0].header.description.kind
    }

    /// What the network is, in words.
    pub(crate) fn network(&self) -> String {
        match (self.kind(), self.found[0].header.rank) {
            (PredictionKind::Stochastic, 0) => "stochastic, independent voxels".to_owned(),
            (PredictionKind::Stochastic, rank) => format!("stochastic, rank {rank}"),
            (PredictionKind::Deterministic, _) => "deterministic".to_owned(),
            (PredictionKind::Sampled, _) => "draws samples itself".to_owned(),
        }
    }

    /// The names of the labels, the background first.
    pub(crate) fn classes(&self) -> &[String] {
        &self.found[0].header.description.classes
    }
}

/// The mean of the colors of a picture; the first channel of other images.
fn shown_channel(case: &Case, color: bool) -> Option<Vec<f32>> {
    let voxels = case.voxels();
    if case.image.len() < voxels || voxels == 0 {
        return None;
    }
    if color && case.channels == 3 && case.shape[0] == 1 {
        return Some(
            (0..voxels).map(|i| (0..3).map(|c| case.image[c * voxels + i]).sum::<f32>() / 3.0).collect(),
        );
    }
    Some(case.image[..voxels].to_vec())
}

/// A case as planes of bits, and the distances between its maps.
pub(crate) struct CaseDistances {
    pub(crate) raters: Vec<BitPlanes>,
    pub(crate) samples: Vec<BitPlanes>,
    pub(crate) prediction: BitPlanes,
    /// Between samples and raters; without raters, the first sample stands in for them.
    pub(crate) distances: PairwiseDistances,
}

impl CaseDistances {
    pub(crate) fn of(subject: &LoadedCase) -> Result<Self, CoreError> {
        let raters: Vec<BitPlanes> = subject.raters.iter().map(BitPlanes::new).collect();
        let samples: Vec<BitPlanes> = subject.samples.iter().map(BitPlanes::new).collect();
        let others = if raters.is_empty() { &samples[..1] } else { &raters };
        let distances = PairwiseDistances::new(&samples, others)?;
        Ok(Self { raters, samples, prediction: BitPlanes::new(&subject.prediction), distances })
    }
}

/// Raters that are reckoned with before their number is known.
const RATERS: usize = 8;

/// What is measured of one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CaseSurvey {
    pub(crate) id: String,
    /// The Dice of the mean prediction, the mean over raters; all foreground classes are one mask.
    pub(crate) prediction: Option<f64>,
    /// The same of each sample that has one.
    pub(crate) samples: Vec<f64>,
    pub(crate) ged: Option<f64>,
    /// The mean distance of two samples.
    pub(crate) sample_diversity: f64,
    /// The mean distance of two raters; nothing where there is only one, who cannot disagree.
    pub(crate) rater_diversity: Option<f64>,
    /// The mean distance of two different samples; nothing where there is only one.
    pub(crate) sample_distance: Option<f64>,
    /// The mean distance of two different raters; nothing where there is only one.
    pub(crate) rater_distance: Option<f64>,
    /// Its place among all cases of the report, which tables and figures share: the best is the first.
    pub(crate) rank: usize,
}

impl CaseSurvey {
    fn of(subject: &LoadedCase) -> Result<Self, CoreError> {
        let CaseDistances { raters, samples, prediction, distances } = CaseDistances::of(subject)?;
        let group = ClassGroup::whole(subject.file.labels())?;
        let dice = |map: &BitPlanes| -> Result<Option<f64>, CoreError> {
            let mut values = vec![];
            for rater in &raters {
                values.extend(Overlap::new(map, rater, &group)?.dice());
            }
            Ok(mean(values))
        };
        let prediction = dice(&prediction)?;
        let sample_dice: Vec<Option<f64>> = samples.iter().map(dice).collect::<Result<_, _>>()?;
        let ged = distances.ged()?;
        Ok(Self {
            sample_distance: of_different(ged.sample_diversity, samples.len()),
            rater_distance: of_different(ged.rater_diversity, raters.len()),
            rank: 0,
            id: subject.file.description().case.clone(),
            prediction,
            samples: sample_dice.into_iter().flatten().collect(),
            ged: (!raters.is_empty()).then_some(ged.squared),
            sample_diversity: ged.sample_diversity,
            rater_diversity: (raters.len() > 1).then_some(ged.rater_diversity),
        })
    }

    /// The share of samples whose Dice is above that of the prediction; nothing where there is none of either.
    pub(crate) fn above(&self) -> Option<f64> {
        let prediction = self.prediction.filter(|_| !self.samples.is_empty())?;
        let better = self.samples.iter().filter(|dice| **dice > prediction).count();
        Some(better as f64 / self.samples.len() as f64)
    }
}

/// Measures all cases, several at once where memory allows it.
pub(crate) fn survey(material: &PredictionSet, control: Control<'_>) -> Result<Vec<CaseSurvey>> {
    let phase = control.phase("reading", material.found.len(), "cases");
    let cases: Vec<(usize, &Found)> = material.found.iter().enumerate().collect();
    each_case(
        &cases,
        |case| case.1.id(),
        &phase,
        |&(index, found), meter| {
            let samples = material.count(found);
            let maps = found.header.description.voxels().saturating_mul(samples + RATERS);
            meter.saw_all(memory(&found.header, RATERS, &ScoreConfig::fast(samples)).saturating_add(maps));
            Ok(CaseSurvey::of(&material.read(index, false)?)?)
        },
    )
}
