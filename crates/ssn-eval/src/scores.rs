//! The scores of one case: its samples and its prediction against its raters.
//!
//! Everything is compared on the whole image: outside the region of a distribution, and outside its mask, samples are
//! background, and what raters marked there is missed. Only the likelihood is that of the region, where there are
//! logits. `docs/reference/metrics.md` defines every score; one without a value is `None`.

pub use ssn_args::{
    DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_SURFACE_SAMPLES, DEFAULT_TOLERANCE, GedDistance, Group,
};
use ssn_core::labels::largest;
use ssn_core::metrics::{LabelFrequencies, most_frequent};
use ssn_core::space::voxel_count;
use ssn_core::{BitPlanes, LabelMap};
use ssn_io::{Error, Result};

use crate::case_scores::Computation;
pub use crate::case_scores::{CaseScores, CaseValues, ScoreValues, observations};
use crate::inputs::{CaseInput, Likelihood, VoxelInput};
pub use crate::means::{mean, of_different};
use crate::predictions::{
    DistributionFile, Header, PredictionKind, SampleSource, blocks, predict_labels, summarize,
};
pub use crate::score_config::{ALL_CLASSES, CaseMaps, GED_COUNTS, ScoreConfig};

/// Bins that diagrams have at most.
const MAX_DRAWN_BINS: usize = 100;

/// Scores segmentations that are in memory.
///
/// The number of samples is that of `maps`; there is no likelihood, as label maps have none.
///
/// # Errors
/// Maps that differ in voxels or classes, and settings or groups that do not fit the classes.
pub fn score_maps(maps: &CaseMaps<'_>, raters: &[LabelMap], config: &ScoreConfig) -> Result<CaseScores> {
    let samples: Vec<BitPlanes> = maps.samples.iter().map(BitPlanes::new).collect();
    let (voxels, labels) = (voxel_count(maps.size).unwrap_or(usize::MAX), maps.classes.len());
    if let Some(found) = maps.probabilities.map(<[f32]>::len).filter(|found| found / labels.max(1) != voxels)
    {
        let case = maps.case;
        return Err(Error::case(
            case,
            format!(
                "there are {found} probabilities, but the image has {voxels} voxels and {labels} classes"
            ),
        ));
    }
    let found;
    let predicted = match (maps.prediction, maps.probabilities) {
        (Some(prediction), _) => prediction,
        (None, probabilities) => {
            found = match probabilities {
                Some(probabilities) => LabelMap::new(largest(probabilities, voxels), labels)?,
                None => most_frequent(maps.samples)?,
            };
            &found
        }
    };
    score_planes(maps, predicted, samples, raters, config, || {
        let frequencies = LabelFrequencies::of(maps.samples)?;
        let probabilities = maps.probabilities.map_or_else(|| frequencies.probabilities(), <[f32]>::to_vec);
        let (log_likelihoods, effective_samples) = (vec![], vec![]);
        let frequencies = Some(frequencies);
        Ok(Some(Likelihood { probabilities, frequencies, log_likelihoods, effective_samples }))
    })
}

/// Scores a case.
///
/// # Shapes
/// Each of `raters` is a label map `[d, h, w]` of the whole image, with as many classes as the file has labels.
///
/// # Errors
/// Raters that do not fit the image, settings or groups that do not fit the classes, and more samples than a network that
/// draws them itself left in the file.
pub fn score(file: &DistributionFile, raters: &[LabelMap], config: &ScoreConfig) -> Result<CaseScores> {
    config.check()?;
    let about = file.description();
    check_raters(&about.case, about.voxels(), file.labels(), raters)?;
    let prediction = file.map_on_image(&predict_labels(file, config.prediction)?)?;
    let Samples { planes, frequencies } = Samples::draw(file, &prediction, config)?;
    let maps = CaseMaps {
        case: &about.case,
        classes: &about.classes,
        size: about.size,
        spacing: about.has_spacing().then(|| about.spacing()),
        prediction: Some(&prediction),
        samples: &[],
        probabilities: None,
    };
    score_planes(&maps, &prediction, planes, raters, config, || {
        (!about.labels_only).then(|| Likelihood::new(file, raters, frequencies, config)).transpose()
    })
}

/// All scores; `likelihood` is called if those of probabilities are asked for, and gives nothing where these are not known.
fn score_planes(
    maps: &CaseMaps<'_>,
    prediction: &LabelMap,
    samples: Vec<BitPlanes>,
    raters: &[LabelMap],
    config: &ScoreConfig,
    likelihood: impl FnOnce() -> Result<Option<Likelihood>>,
) -> Result<CaseScores> {
    config.check()?;
    let labels = maps.classes.len();
    let voxels = voxel_count(maps.size).unwrap_or(usize::MAX);
    check_raters(maps.case, voxels, labels, raters)?;
    let masks = config.groups_of(maps.classes)?;
    let needs_probabilities = config.voxelwise || !config.sets.is_empty();
    let likelihood = needs_probabilities.then(likelihood).transpose()?.flatten();
    let probabilities = likelihood.as_ref().map(|likelihood| likelihood.probabilities.as_slice());
    let mut computation = Computation::default();
    computation
        .add_case(&CaseInput::new(maps, config, prediction, &samples, raters, probabilities), &masks)?;
    let count = samples.len();
    // Label maps of all samples take much memory.
    drop(samples);
    let mut reliability = None;
    if let Some(likelihood) = likelihood.filter(|_| config.voxelwise) {
        let voxels = VoxelInput::new(config, raters, likelihood);
        computation.add_voxels(&voxels)?;
        if config.bins <= MAX_DRAWN_BINS {
            reliability = Some(voxels.reliability()?.clone());
        }
    }
    Ok(CaseScores {
        samples: count,
        raters: raters.len(),
        distance: config.distance,
        in_voxels: maps.spacing.is_none(),
        masks: masks.into_iter().map(|(name, _)| name).collect(),
        values: computation.finish(),
        reliability,
    })
}

fn check_raters(case: &str, voxels: usize, labels: usize, raters: &[LabelMap]) -> Result<()> {
    if raters.is_empty() {
        return Err(Error::case(case, "there is no rater to compare with"));
    }
    match raters.iter().find(|rater| (rater.voxels(), rater.classes()) != (voxels, labels)) {
        None => Ok(()),
        Some(rater) => Err(Error::case(
            case,
            format!(
                "a rater has {} voxels and {} classes, but the prediction has {voxels} and {labels}",
                rater.voxels(),
                rater.classes()
            ),
        )),
    }
}

/// The samples of a case on the whole image, packed as they are drawn: label maps of a hundred samples would not fit.
struct Samples {
    planes: Vec<BitPlanes>,
    /// How often each class occurs, where that is asked for.
    frequencies: Option<LabelFrequencies>,
}

impl Samples {
    /// Draws them, or takes those that the network drew itself. A deterministic network has one, its prediction, unless
    /// its categoricals are asked for.
    fn draw(file: &DistributionFile, prediction: &LabelMap, config: &ScoreConfig) -> Result<Self> {
        let mut samples = Self { planes: vec![], frequencies: None };
        if file.description().kind == PredictionKind::Deterministic && !config.categorical {
            samples.add(prediction, config)?;
            return Ok(samples);
        }
        let source = SampleSource::new(file, config.seed, &config.steering())?;
        for block in blocks(0..config.samples as u64, file.description().voxels()) {
            for map in source.labels(block)? {
                samples.add(&file.map_on_image(&map)?, config)?;
            }
        }
        Ok(samples)
    }

    fn add(&mut self, map: &LabelMap, config: &ScoreConfig) -> Result<()> {
        self.planes.push(BitPlanes::new(map));
        match &mut self.frequencies {
            Some(frequencies) => frequencies.push(map)?,
            None if config.voxelwise => self.frequencies = Some(LabelFrequencies::new(map)),
            None => {}
        }
        Ok(())
    }
}

impl Likelihood {
    fn new(
        file: &DistributionFile,
        raters: &[LabelMap],
        frequencies: Option<LabelFrequencies>,
        config: &ScoreConfig,
    ) -> Result<Self> {
        // Label maps of samples do not say how likely other labels are.
        let likely = if file.description().kind == PredictionKind::Sampled { &[] } else { raters };
        let on_region: Vec<LabelMap> = likely
            .iter()
            .map(|rater| Ok(LabelMap::new(file.crop_to_region(rater.labels())?, file.labels())?))
            .collect::<Result<_>>()?;
        let samples = 0..config.samples as u64;
        let summary = summarize(file, config.seed, &config.steering(), samples, &on_region)?;
        let (log_likelihoods, effective_samples) = (summary.log_likelihoods()?, summary.effective_samples()?);
        let rows = summary.mean_probabilities()?;
        drop(summary);
        let probabilities = file.probabilities_on_image(&rows)?;
        Ok(Self { probabilities, frequencies, log_likelihoods, effective_samples })
    }
}

/// Bytes that scoring a case takes at most, roughly: for deciding how many cases are scored at once.
pub fn memory(header: &Header, raters: usize, config: &ScoreConfig) -> usize {
    let about = &header.description;
    let (labels, image) = (about.classes.len(), about.voxels());
    let distribution = about.region.voxels().saturating_mul(4 * header.classes * (header.rank + 2));
    let stored = about.region.voxels().saturating_mul(header.samples);
    let planes = image.saturating_mul((labels - 1) * (config.samples + raters)) / 8;
    // Per voxel and class: sums (8), counts of the summary and of two frequency maps (12), probabilities twice (8).
    let has_maps = config.voxelwise || !config.sets.is_empty();
    let maps = if has_maps { image.saturating_mul(labels * 28) } else { 0 };
    // Label maps of raters and of a block of samples, and the distance transforms of a mask.
    let rest = image.saturating_mul(2 * raters + 40).saturating_add(2 * (64 << 20));
    [stored, planes, maps, rest].into_iter().fold(distribution, usize::saturating_add)
}
