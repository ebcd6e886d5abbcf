//! A folder of predictions with the images and the raters of its dataset, as far as they are there.

use std::path::Path;

use crate::error::{EvalError, Result};
use crate::predictions::{DistributionFile, Draw, Found, Kind, Predictions, case_seed};
use ssn_core::{LabelMap, Steering};
use ssn_data::{Case, Dataset};
use ssn_io::Limits;

use crate::evaluation::Part;
use crate::evaluation::matching::{Job, Plan};
use crate::evaluation::raters;

/// The folder, and the dataset if it can be opened.
pub(super) struct Material {
    /// A name that no other folder of the report has.
    pub(super) name: String,
    /// The folder.
    pub(super) predictions: Predictions,
    /// Its cases, in natural order; at least one.
    pub(super) found: Vec<Found>,
    /// The dataset, and the place in it of each case.
    dataset: Option<(Dataset, Vec<usize>)>,
    /// Why there is no dataset.
    pub(super) note: Option<String>,
    /// The most samples of a case that are drawn.
    samples: usize,
    seed: u64,
}

/// One case with its samples; all maps are of the whole image, `[d, h, w]`.
pub(super) struct Subject {
    /// The distribution.
    pub(super) file: DistributionFile,
    /// One channel of the image, or the mean of three, as of colors.
    pub(super) image: Option<Vec<f32>>,
    /// What raters marked; none where that is not known.
    pub(super) raters: Vec<LabelMap>,
    /// The mean prediction.
    pub(super) prediction: LabelMap,
    /// The first samples, at least one.
    pub(super) samples: Vec<LabelMap>,
}

impl Material {
    /// Opens a folder and looks for its dataset.
    ///
    /// # Errors
    /// A folder without predictions, and a dataset that was named but cannot be used.
    pub(super) fn open(
        name: String,
        predictions: Predictions,
        data: Option<&Path>,
        samples: usize,
        seed: u64,
    ) -> Result<Self> {
        let found = predictions.cases()?;
        if found.is_empty() {
            let message = format!(
                "{} holds no distribution files; run `ssn predict` to its end",
                predictions.root().display()
            );
            return Err(EvalError::mismatch(message));
        }
        let place = data.unwrap_or_else(|| Path::new(&predictions.about().dataset));
        let (found, dataset, note) = match Plan::new(&predictions, place, Part::All) {
            Ok(Plan { dataset, jobs, .. }) => {
                let (found, places) = jobs.into_iter().map(|Job { found, index }| (found, index)).unzip();
                (found, Some((dataset.with_optional_labels(), places)), None)
            }
            Err(failure) if data.is_some() => return Err(failure),
            Err(failure) => (found, None, Some(failure.to_string())),
        };
        Ok(Self { name, predictions, found, dataset, note, samples, seed })
    }

    /// Reads a case without its image, and draws its samples.
    pub(super) fn subject(&self, index: usize) -> Result<Subject> {
        self.read(index, false)
    }

    /// Reads a case with its image, and draws its samples.
    pub(super) fn pictured(&self, index: usize) -> Result<Subject> {
        self.read(index, true)
    }

    fn read(&self, index: usize, with_image: bool) -> Result<Subject> {
        let found = &self.found[index];
        let file = DistributionFile::read(&found.path, &Limits::default())?;
        let (image, raters) = match &self.dataset {
            None => (None, vec![]),
            Some((dataset, places)) => {
                let about = file.description();
                let (case, raters) = raters::load_with_image(dataset, places[index], about)?;
                (with_image.then(|| shown_channel(&case, dataset.is_color())).flatten(), raters)
            }
        };
        let prediction = on_image(&file, &file.prediction()?)?;
        let samples = self.draw(&file, &Steering::default(), 0..self.count(found) as u64)?;
        Ok(Subject { file, image, raters, prediction, samples })
    }

    /// Draws samples of a case under a steering, as maps of the whole image.
    pub(super) fn draw(
        &self,
        file: &DistributionFile,
        steering: &Steering,
        numbers: std::ops::Range<u64>,
    ) -> Result<Vec<LabelMap>> {
        let draw = Draw::new(file, self.seed_of(file), steering)?;
        draw.labels(numbers)?.iter().map(|map| on_image(file, map)).collect()
    }

    /// The seed of the samples of a case: that of `ssn evaluate`.
    pub(super) fn seed_of(&self, file: &DistributionFile) -> u64 {
        case_seed(self.seed, &file.description().case)
    }

    /// How many samples of a case are drawn: a network that draws samples itself left only so many.
    pub(super) fn count(&self, found: &Found) -> usize {
        match found.header.description.kind {
            Kind::Sampled => self.samples.min(found.header.samples),
            Kind::Stochastic | Kind::Deterministic => self.samples,
        }
    }

    /// The kind of the network.
    pub(super) fn kind(&self) -> Kind {
        self.found[0].header.description.kind
    }

    /// The names of the labels, the background first.
    pub(super) fn classes(&self) -> &[String] {
        &self.found[0].header.description.classes
    }
}

/// Labels on the region as a map of the whole image.
pub(super) fn on_image(file: &DistributionFile, map: &LabelMap) -> Result<LabelMap> {
    let labels = file.labels_on_image(map)?;
    Ok(LabelMap::new(labels, file.labels())?)
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
