//! The scores of one case: its distribution against its raters.
//!
//! Everything is compared on the whole image: outside the region of a distribution, and outside its mask, samples are
//! background, and what raters marked there is missed. Only the likelihood is that of the region, where there are
//! logits. `docs/reference/metrics.md` defines every score; one without a value is `None`.

mod config;
mod groups;
mod samples;
mod voxelwise;

use serde::{Deserialize, Serialize};
use ssn_core::metrics::matching::{MAX_MATCHED, matched_pairs};
use ssn_core::metrics::{BothEmpty, ClassGroup, PairStatistic, PairwiseDistances, max_dice};
use ssn_core::{BitPlanes, LabelMap};

pub use config::{DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_TOLERANCE, GED_COUNTS, Group, ScoreConfig};
pub use groups::{GroupScores, SampleScores, SurfaceScores, Volumes};
pub use voxelwise::VoxelScores;

use crate::error::{EvalError, Result};
use crate::predictions::distribution_file::DistributionFile;
use crate::predictions::header::Header;
use samples::Samples;

/// All scores of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseScores {
    /// The samples behind them; 1 for a deterministic network, its prediction.
    pub samples: usize,
    /// The raters.
    pub raters: usize,
    /// GED² of the first samples, at each of several counts; the last is that of all.
    pub ged: Vec<GedAt>,
    /// E d(s, s′).
    pub sample_diversity: f64,
    /// E d(y, y′).
    pub rater_diversity: f64,
    /// E d(s, y).
    pub cross_distance: f64,
    /// HM-IoU; none where the lists to be matched would be too long.
    pub hm_iou: Option<f64>,
    /// The mean over raters of the best Dice of a sample, each the mean over classes; both empty counts 1.
    pub max_dice: Option<f64>,
    /// Scores of each mask.
    pub groups: Vec<GroupScores>,
    /// Scores of the probabilities, if they were asked for.
    pub voxelwise: Option<VoxelScores>,
}

/// GED² with the number of samples behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GedAt {
    /// The samples.
    pub samples: usize,
    /// GED², with self-pairs as in the paper.
    pub squared: f64,
}

impl CaseScores {
    /// GED² of all samples.
    pub fn ged_squared(&self) -> Option<f64> {
        self.ged.last().map(|ged| ged.squared)
    }

    /// The DSC of the prediction: the mean over masks of the mean over raters, where they have a value.
    pub fn mean_dice(&self) -> Option<f64> {
        let of_groups: Vec<f64> = self.groups.iter().filter_map(|group| mean(&group.dsc)).collect();
        (!of_groups.is_empty()).then(|| of_groups.iter().sum::<f64>() / of_groups.len() as f64)
    }
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
    check_raters(file, raters)?;
    let groups = config.groups_of(&file.description().classes)?;
    let prediction = LabelMap::new(file.labels_on_image(&file.prediction()?)?, file.labels())?;
    let rater_planes: Vec<BitPlanes> = raters.iter().map(BitPlanes::new).collect();
    let samples = Samples::draw(file, &prediction, config)?;

    let distances = PairwiseDistances::new(&samples.planes, &rater_planes)?;
    let counts = config.counts(samples.planes.len());
    let geds = distances.ged_at_each(&counts, PairStatistic::V)?;
    let all = distances.ged(PairStatistic::V)?;
    let (m, n) = (samples.planes.len(), raters.len());
    let hm_iou = (matched_pairs(m, n) <= MAX_MATCHED).then(|| distances.hm_iou_at(m)).transpose()?;
    let each_class = ClassGroup::each(file.labels());
    Ok(CaseScores {
        samples: m,
        raters: n,
        ged: geds.iter().map(|ged| GedAt { samples: ged.samples, squared: ged.squared }).collect(),
        sample_diversity: all.sample_diversity,
        rater_diversity: all.rater_diversity,
        cross_distance: all.sample_rater_distance,
        hm_iou,
        max_dice: max_dice(&samples.planes, &rater_planes, &each_class, BothEmpty::One)?,
        groups: groups::score(file, &prediction, &samples.planes, raters, &rater_planes, &groups, config)?,
        voxelwise: match config.voxelwise {
            true => Some(voxelwise::score(file, samples, raters, config)?),
            false => None,
        },
    })
}

/// Bytes that scoring a case takes at most, roughly: for deciding how many cases are scored at once.
pub fn memory(header: &Header, raters: usize, config: &ScoreConfig) -> usize {
    let about = &header.description;
    let (labels, image) = (about.classes.len(), about.voxels());
    let distribution = about.region.voxels().saturating_mul(4 * header.classes * (header.rank + 2));
    let stored = about.region.voxels().saturating_mul(header.samples);
    let planes = image.saturating_mul((labels - 1) * (config.samples + raters)) / 8;
    // Per voxel and class: sums (8), counts of the summary and of two frequency maps (12), probabilities twice (8).
    let maps = if config.voxelwise { image.saturating_mul(labels * 28) } else { 0 };
    // Label maps of raters and of a block of samples, and the distance transforms of a mask.
    let rest = image.saturating_mul(2 * raters + 40).saturating_add(2 * (64 << 20));
    [stored, planes, maps, rest].into_iter().fold(distribution, usize::saturating_add)
}

fn check_raters(file: &DistributionFile, raters: &[LabelMap]) -> Result<()> {
    let case = &file.description().case;
    if raters.is_empty() {
        return Err(EvalError::Parts(format!("case {case}: there is no rater to compare with")));
    }
    let (voxels, labels) = (file.description().voxels(), file.labels());
    match raters.iter().find(|rater| (rater.voxels(), rater.classes()) != (voxels, labels)) {
        None => Ok(()),
        Some(rater) => Err(EvalError::Parts(format!(
            "case {case}: a rater has {} voxels and {} classes, but the prediction has {voxels} and {labels}",
            rater.voxels(),
            rater.classes()
        ))),
    }
}

/// The mean of the values that are defined.
pub(crate) fn mean(values: &[Option<f64>]) -> Option<f64> {
    let defined: Vec<f64> = values.iter().copied().flatten().collect();
    (!defined.is_empty()).then(|| defined.iter().sum::<f64>() / defined.len() as f64)
}
