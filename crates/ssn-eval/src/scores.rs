//! The scores of one case: its samples and its prediction against its raters.
//!
//! Everything is compared on the whole image: outside the region of a distribution, and outside its mask, samples are
//! background, and what raters marked there is missed. Only the likelihood is that of the region, where there are
//! logits. `docs/reference/metrics.md` defines every score; one without a value is `None`.

use serde::{Deserialize, Serialize};
use ssn_core::labels::largest;
use ssn_core::metrics::{
    Calibrated, CalibrationBin, ClassGroup, Distance, LabelFrequencies, MAX_BINS, MAX_MATCHED, Overlap,
    PairwiseDice, PairwiseDistances, SurfaceDistances, better_than, brier, ece_of_bins, matched_pairs,
    most_frequent, quantile, reliability, variance_ncc,
};
use ssn_core::space::{Grid, voxel_count};
use ssn_core::{BitPlanes, LabelMap, Steering};

use crate::challenges::{ChallengeEce, ChallengeInput, ChallengeScores, ScoreSet, asked};
use crate::error::{EvalError, Result};
use crate::predictions::{
    DistributionFile, Draw, Header, Kind, PredictionRule, blocks, predict_labels, summarize,
};

/// Samples of the paper's figures on LIDC.
pub const DEFAULT_SAMPLES: usize = 100;
/// The sample counts at which the field reports GED².
pub const GED_COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 50, 100];
/// The name of the mask of all foreground classes together.
pub const ALL_CLASSES: &str = "all classes";
/// The tolerance of the normalized surface Dice, in millimeters.
pub const DEFAULT_TOLERANCE: f64 = 2.0;
/// The bins of the calibration error, as most papers have them.
pub const DEFAULT_BINS: usize = 15;
/// Samples whose surfaces are compared with the raters'.
pub const DEFAULT_SURFACE_SAMPLES: usize = 10;

/// The distance that GED² is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum GedDistance {
    /// 1 − mean IoU of the foreground classes, a class absent in both maps counting 1, as in the paper.
    #[default]
    Iou,
    /// 1 − mean IoU of the classes that either map has, as in the probabilistic U-Net's code.
    IouPresent,
    /// 1 − mean Dice, as in ValUES.
    Dice,
}

impl GedDistance {
    fn rule(self) -> Distance {
        match self {
            Self::Iou => Distance::Iou,
            Self::IouPresent => Distance::IouOfPresent,
            Self::Dice => Distance::Dice,
        }
    }

    /// What tables add to the names of scores by another distance than the paper's.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Iou => "",
            Self::IouPresent => " (IoU of present classes)",
            Self::Dice => " (1 − Dice)",
        }
    }
}

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

    fn steering(&self) -> Steering {
        let Self { temperature, diagonal_noise, .. } = *self;
        Steering { temperature, diagonal_noise, ..Steering::default() }
    }

    /// Whether samples are drawn otherwise than the network says.
    pub fn steers(&self) -> bool {
        self.steering() != Steering::default()
    }

    /// Refuses settings with which nothing can be scored.
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

    /// The counts at which GED² is reported for `samples` samples, ascending.
    fn counts(&self, samples: usize) -> Vec<usize> {
        let asked = self.ged_counts.iter().copied().filter(|&count| count > 0 && count < samples);
        let mut counts: Vec<usize> = asked.chain([samples]).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The groups of a case with these classes.
    fn groups_of(&self, classes: &[String]) -> Result<Vec<(String, ClassGroup)>> {
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

/// A sample with less than this part of a rater's foreground is nearly empty: a twentieth.
const NEARLY_EMPTY: usize = 20;

/// All scores of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseScores {
    /// The samples behind them; 1 for a deterministic network, its prediction.
    pub samples: usize,
    /// The raters.
    pub raters: usize,
    /// The sets of scores that were asked for.
    #[serde(default)]
    pub sets: Vec<ScoreSet>,
    /// The distance that GED², diversity and HM-IoU are made of.
    #[serde(default)]
    pub distance: GedDistance,
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
    /// The mean over samples of the best Dice with a rater, if it was asked for.
    #[serde(default)]
    pub max_dice_of_samples: Option<f64>,
    /// The mean Dice of a one-to-one matching of samples and raters, if it was asked for.
    #[serde(default)]
    pub matched_dice: Option<f64>,
    /// Calibration errors of the challenges, if they were asked for.
    #[serde(default)]
    pub challenge_ece: ChallengeEce,
    /// Where every rater marked something, the share of samples with less foreground than a twentieth of the smallest
    /// rater's; none elsewhere.
    #[serde(default)]
    pub empty_samples: Option<f64>,
    /// Whether lengths are in voxels and volumes are numbers of voxels, because the image does not say how large these are.
    #[serde(default)]
    pub in_voxels: bool,
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

    /// GED² less what a perfect distribution would have: D · (1/m + 1/n) with m samples and n raters, where D is the mean
    /// distance of two different raters. A deterministic network, with one sample, is a perfect one of m = ∞. None for a
    /// single rater.
    pub fn excess_ged_squared(&self) -> Option<f64> {
        let inverse_m = if self.samples > 1 { 1.0 / self.samples as f64 } else { 0.0 };
        let distance = self.rater_distance()?;
        self.ged_squared().map(|ged| ged - distance * (inverse_m + 1.0 / self.raters as f64))
    }

    /// The mean distance of two different raters; none for a single one.
    pub fn rater_distance(&self) -> Option<f64> {
        of_different(self.rater_diversity, self.raters)
    }

    /// The mean distance of two different samples; none for a single one.
    pub fn sample_distance(&self) -> Option<f64> {
        of_different(self.sample_diversity, self.samples)
    }

    /// The DSC of the prediction: the mean over masks of the mean over raters, where they have a value.
    pub fn mean_dice(&self) -> Option<f64> {
        mean(self.groups.iter().filter_map(|group| mean(group.dsc.iter().copied().flatten())))
    }
}

/// Returns the mean distance of two different ones of `count` maps, by the mean over all pairs with self-pairs.
pub fn of_different(mean_of_pairs: f64, count: usize) -> Option<f64> {
    let n = count as f64;
    (count > 1).then(|| mean_of_pairs * n / (n - 1.0))
}

/// The scores of one mask; lists have an entry per rater.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupScores {
    /// The name of the mask.
    pub name: String,
    /// DSC of the prediction; none where both are empty.
    pub dsc: Vec<Option<f64>>,
    /// DSC where the rater marked something.
    pub dsc_nod: Vec<Option<f64>>,
    /// The Dice of the samples.
    pub samples: Vec<SampleScores>,
    /// Distances of the prediction's surface to the rater's, if they were asked for.
    pub surface: Option<Vec<SurfaceScores>>,
    /// The means of those of the first samples, if they were asked for.
    #[serde(default)]
    pub sample_surface: Option<Vec<SurfaceScores>>,
    /// Scores of the challenges, if they were asked for.
    #[serde(default)]
    pub challenges: Option<ChallengeScores>,
    /// How large the mask is.
    pub volumes: Volumes,
}

/// The Dice of the samples against one rater.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SampleScores {
    /// The mean.
    pub mean: Option<f64>,
    /// The 5 %, 50 % and 95 % quantiles.
    pub quantiles: [Option<f64>; 3],
    /// The share of samples that are better than the prediction.
    pub better_than_prediction: Option<f64>,
}

/// Surface scores against one rater, in millimeters or voxels; none where both masks are empty, and distances where one is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SurfaceScores {
    /// HD95, the larger of both directions.
    pub hd95: Option<f64>,
    /// The average symmetric surface distance.
    pub assd: Option<f64>,
    /// The normalized surface Dice at the tolerance.
    pub nsd: Option<f64>,
    /// Pairs of which one mask is empty and the other is not, whose distances are undefined or penalized.
    #[serde(default)]
    pub one_empty: usize,
}

/// Volumes in milliliters or voxels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Volumes {
    /// Of the prediction.
    pub prediction: f64,
    /// 5 %, 50 % and 95 % quantiles over the samples.
    pub samples: [Option<f64>; 3],
    /// Of each rater.
    pub raters: Vec<f64>,
}

/// Scores of the probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoxelScores {
    /// The correlation of the samples' variance with that of the raters; none where either is constant.
    pub variance_ncc: Option<f64>,
    /// S_NCC, the mean over the raters for which it has a value.
    pub s_ncc: Option<f64>,
    /// The calibration error of the most probable label.
    pub ece: f64,
    /// The calibration error of the foreground classes, their mean.
    pub foreground_ece: f64,
    /// The Brier score.
    pub brier: f64,
    /// The log-likelihood of each rater's labels on the region, in nats; empty where the network drew samples itself, of
    /// which the labels alone are known.
    pub log_likelihoods: Vec<f64>,
    /// How many samples carry each of these; empty where they are.
    pub effective_samples: Vec<f64>,
    /// The bins behind both calibration errors, for diagrams; none in files of earlier versions, and where there are more than
    /// a diagram can show.
    #[serde(default)]
    pub reliability: Option<Reliability>,
}

/// Bins that diagrams have at most.
const MAX_DRAWN_BINS: usize = 100;

/// The bins of reliability diagrams. An observation is a pair of a voxel and a rater.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reliability {
    /// Of the most probable label.
    pub top_label: Vec<CalibrationBin>,
    /// Of each foreground class.
    pub classes: Vec<Vec<CalibrationBin>>,
}

impl Reliability {
    fn new(probabilities: &[f32], raters: &[LabelMap], bins: usize) -> Result<Self> {
        let classes = raters.first().map_or(0, LabelMap::classes);
        let of = |calibrated| reliability(probabilities, raters, calibrated, bins);
        Ok(Self {
            top_label: of(Calibrated::TopLabel)?,
            classes: (1..classes)
                .map(|class| of(Calibrated::Class(class as u8)))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The calibration error of the most probable label.
    pub fn ece(&self) -> Option<f64> {
        ece_of_bins(&self.top_label)
    }

    /// The class-wise calibration error: the mean over the foreground classes of that of each.
    pub fn foreground_ece(&self) -> Option<f64> {
        mean(self.classes.iter().filter_map(|bins| ece_of_bins(bins)))
    }

    /// The bins of all foreground classes together: an observation is one of a voxel, a rater and a class.
    pub fn foreground(&self) -> Vec<CalibrationBin> {
        let mut all = vec![];
        self.classes.iter().for_each(|bins| add_bins(&mut all, bins));
        all
    }

    /// The bins of several cases together.
    pub(crate) fn pooled<'a>(cases: impl Iterator<Item = &'a Self>) -> Option<Self> {
        cases.cloned().reduce(|mut all, case| {
            add_bins(&mut all.top_label, &case.top_label);
            all.classes.resize(all.classes.len().max(case.classes.len()), vec![]);
            all.classes.iter_mut().zip(&case.classes).for_each(|(all, bins)| add_bins(all, bins));
            all
        })
    }
}

/// Adds bins to others of the same edges; none are empty ones.
fn add_bins(sum: &mut Vec<CalibrationBin>, bins: &[CalibrationBin]) {
    sum.resize(sum.len().max(bins.len()), CalibrationBin::default());
    for (sum, bin) in sum.iter_mut().zip(bins) {
        sum.count += bin.count;
        sum.events += bin.events;
        sum.confidence += bin.confidence;
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
    fn voxel_volume(&self) -> f64 {
        // A thousand cubic millimeters are a milliliter; the factors are in the order of the file's axes.
        self.spacing.map_or(1.0, |[d, h, w]| [w, h, d].iter().product::<f64>() / 1000.0)
    }
}

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
        return Err(EvalError::Parts(format!(
            "case {case}: there are {found} probabilities, but the image has {voxels} voxels and {labels} classes"
        )));
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
    let groups = config.groups_of(maps.classes)?;
    let rater_planes: Vec<BitPlanes> = raters.iter().map(BitPlanes::new).collect();
    let distances = PairwiseDistances::with(&samples, &rater_planes, config.distance.rule())?;
    let dice = PairwiseDice::new(&samples, &rater_planes, &ClassGroup::each(labels))?;
    let mmis = asked(&config.sets, ScoreSet::Mmis);
    let (m, n) = (samples.len(), raters.len());
    let ged_at = |&count: &usize| -> Result<GedAt> {
        let ged = distances.ged_at(count)?;
        Ok(GedAt { samples: ged.samples, squared: ged.squared })
    };
    let all = distances.ged()?;
    let hm_iou = (matched_pairs(m, n) <= MAX_MATCHED).then(|| distances.hm_iou()).transpose()?;
    let needs_probabilities = config.voxelwise || !config.sets.is_empty();
    let likelihood = needs_probabilities.then(likelihood).transpose()?.flatten();
    let probabilities = likelihood.as_ref().map(|likelihood| likelihood.probabilities.as_slice());
    let masks = GroupInput {
        maps,
        prediction,
        prediction_planes: BitPlanes::new(prediction),
        samples: &samples,
        raters,
        rater_planes: &rater_planes,
        probabilities,
        config,
    };
    let challenge_ece = match probabilities {
        Some(probabilities) if !config.sets.is_empty() => {
            ChallengeEce::new(maps.size, raters, probabilities, &config.sets)?
        }
        _ => ChallengeEce::default(),
    };
    let scores = CaseScores {
        samples: m,
        raters: n,
        sets: config.sets.clone(),
        distance: config.distance,
        ged: config.counts(m).iter().map(ged_at).collect::<Result<_>>()?,
        sample_diversity: all.sample_diversity,
        rater_diversity: all.rater_diversity,
        cross_distance: all.sample_rater_distance,
        hm_iou,
        max_dice: Some(dice.max_of_raters()),
        max_dice_of_samples: mmis.then(|| dice.max_of_samples()),
        matched_dice: dice.matched().filter(|_| mmis),
        challenge_ece,
        empty_samples: empty_samples(&samples, &rater_planes),
        in_voxels: maps.spacing.is_none(),
        groups: groups.iter().map(|(name, group)| masks.score(name, group)).collect::<Result<_>>()?,
        voxelwise: None,
    };
    // Label maps of all samples take much memory.
    drop(samples);
    let likelihood = likelihood.filter(|_| config.voxelwise);
    let voxelwise = likelihood.map(|likelihood| score_voxels(likelihood, raters, config)).transpose()?;
    Ok(CaseScores { voxelwise, ..scores })
}

/// The share of nearly empty samples, where every rater marked something.
fn empty_samples(samples: &[BitPlanes], raters: &[BitPlanes]) -> Option<f64> {
    let foreground = |map: &BitPlanes| map.voxels() - map.volume(0);
    let least = raters.iter().map(foreground).min().filter(|least| *least > 0)?;
    let empty = samples.iter().filter(|sample| NEARLY_EMPTY * foreground(sample) < least).count();
    Some(empty as f64 / samples.len().max(1) as f64)
}

fn check_raters(case: &str, voxels: usize, labels: usize, raters: &[LabelMap]) -> Result<()> {
    if raters.is_empty() {
        return Err(EvalError::Parts(format!("case {case}: there is no rater to compare with")));
    }
    match raters.iter().find(|rater| (rater.voxels(), rater.classes()) != (voxels, labels)) {
        None => Ok(()),
        Some(rater) => Err(EvalError::Parts(format!(
            "case {case}: a rater has {} voxels and {} classes, but the prediction has {voxels} and {labels}",
            rater.voxels(),
            rater.classes()
        ))),
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
        if file.description().kind == Kind::Deterministic && !config.categorical {
            samples.add(prediction, config)?;
            return Ok(samples);
        }
        let source = Draw::new(file, config.seed, &config.steering())?;
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

const QUANTILES: [f64; 3] = [0.05, 0.5, 0.95];

/// What the scores of every mask are made of.
struct GroupInput<'a> {
    maps: &'a CaseMaps<'a>,
    prediction: &'a LabelMap,
    prediction_planes: BitPlanes,
    samples: &'a [BitPlanes],
    raters: &'a [LabelMap],
    rater_planes: &'a [BitPlanes],
    /// `[l, v]`, where they are asked for and known.
    probabilities: Option<&'a [f32]>,
    config: &'a ScoreConfig,
}

impl GroupInput<'_> {
    fn score(&self, name: &str, group: &ClassGroup) -> Result<GroupScores> {
        let overlap = |rater| Overlap::new(&self.prediction_planes, rater, group);
        let overlaps = self.rater_planes.iter().map(overlap).collect::<ssn_core::Result<Vec<_>>>()?;
        let samples = self.rater_planes.iter().map(|rater| self.sample_scores(rater, group));
        let surfaces = self.config.surfaces;
        let surface = surfaces.then(|| self.surfaces(group, &group.mask(self.prediction)?)).transpose()?;
        let sample_surface =
            (surfaces && self.config.surface_samples > 0).then(|| self.sample_surfaces(group)).transpose()?;
        let (volumes, sample_volumes) = self.volumes(group)?;
        let input = ChallengeInput {
            group,
            prediction: self.prediction,
            raters: self.raters,
            probabilities: self.probabilities,
            sample_volumes: &sample_volumes,
            rater_volumes: &volumes.raters,
            voxel: self.maps.voxel_volume(),
        };
        let sets = &self.config.sets;
        let challenges = (!sets.is_empty()).then(|| ChallengeScores::new(&input, sets)).transpose()?;
        Ok(GroupScores {
            name: name.to_owned(),
            dsc: overlaps.iter().map(Overlap::dice).collect(),
            dsc_nod: overlaps.iter().map(Overlap::dice_where_marked).collect(),
            samples: samples.collect::<Result<_>>()?,
            surface,
            sample_surface,
            challenges,
            volumes,
        })
    }

    fn sample_scores(&self, rater: &BitPlanes, group: &ClassGroup) -> Result<SampleScores> {
        let dice = |map| Overlap::new(map, rater, group).map(|overlap| overlap.dice());
        let samples = self.samples.iter().map(dice).collect::<ssn_core::Result<Vec<_>>>()?;
        let defined: Vec<f64> = samples.iter().copied().flatten().collect();
        let [low, middle, high] = QUANTILES.map(|q| quantile(&defined, q));
        Ok(SampleScores {
            mean: mean(defined.iter().copied()),
            quantiles: [low?, middle?, high?],
            better_than_prediction: better_than(dice(&self.prediction_planes)?, &samples),
        })
    }

    /// The surface scores of a mask `[v]` against each rater.
    fn surfaces(&self, group: &ClassGroup, mask: &[bool]) -> Result<Vec<SurfaceScores>> {
        let grid = Grid::new(self.maps.size, self.maps.spacing.unwrap_or([1.0; 3]))?;
        let diagonal =
            (0..3).map(|axis| (grid.shape()[axis] as f64 * grid.spacing()[axis]).powi(2)).sum::<f64>().sqrt();
        let against = |rater: &LabelMap| {
            let distances = SurfaceDistances::new(mask, &group.mask(rater)?, &grid)?;
            let penalty = (self.config.empty_penalty && distances.one_is_empty()).then_some(diagonal);
            let nsd = distances.nsd(self.config.tolerance)?;
            Ok(SurfaceScores {
                hd95: distances.hd95().or(penalty),
                assd: distances.assd().or(penalty),
                nsd,
                one_empty: usize::from(distances.one_is_empty()),
            })
        };
        self.raters.iter().map(against).collect()
    }

    /// The means of the surface scores of the first samples against each rater.
    fn sample_surfaces(&self, group: &ClassGroup) -> Result<Vec<SurfaceScores>> {
        let first = self.samples.iter().take(self.config.surface_samples);
        let each = first.map(|sample| self.surfaces(group, &sample.mask(group.classes())));
        let each = each.collect::<Result<Vec<_>>>()?;
        let over = |rater: usize, value: fn(&SurfaceScores) -> Option<f64>| {
            mean(each.iter().filter_map(|scores| value(&scores[rater])))
        };
        let of_rater = |rater| SurfaceScores {
            hd95: over(rater, |s| s.hd95),
            assd: over(rater, |s| s.assd),
            nsd: over(rater, |s| s.nsd),
            one_empty: each.iter().map(|scores| scores[rater].one_empty).sum(),
        };
        Ok((0..self.raters.len()).map(of_rater).collect())
    }

    /// How large a mask is, and the volume of each sample.
    fn volumes(&self, group: &ClassGroup) -> Result<(Volumes, Vec<f64>)> {
        let voxel = self.maps.voxel_volume();
        let volume = |map: &BitPlanes| group.volume(map) as f64 * voxel;
        let of_samples: Vec<f64> = self.samples.iter().map(volume).collect();
        let [low, middle, high] = QUANTILES.map(|q| quantile(&of_samples, q));
        let volumes = Volumes {
            prediction: volume(&self.prediction_planes),
            samples: [low?, middle?, high?],
            raters: self.rater_planes.iter().map(volume).collect(),
        };
        Ok((volumes, of_samples))
    }
}

/// What a distribution says about the labels of voxels and of raters.
struct Likelihood {
    /// `[l, v]` on the whole image.
    probabilities: Vec<f32>,
    /// How often each class occurs among the samples.
    frequencies: Option<LabelFrequencies>,
    log_likelihoods: Vec<f64>,
    effective_samples: Vec<f64>,
}

impl Likelihood {
    fn new(
        file: &DistributionFile,
        raters: &[LabelMap],
        frequencies: Option<LabelFrequencies>,
        config: &ScoreConfig,
    ) -> Result<Self> {
        // Label maps of samples do not say how likely other labels are.
        let likely = if file.description().kind == Kind::Sampled { &[] } else { raters };
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

/// Scores of the probabilities of single voxels, and the likelihood of raters.
fn score_voxels(
    Likelihood { probabilities, frequencies, log_likelihoods, effective_samples }: Likelihood,
    raters: &[LabelMap],
    config: &ScoreConfig,
) -> Result<VoxelScores> {
    let (variance_ncc, s_ncc) = match frequencies {
        Some(frequencies) => {
            (variance_ncc(&frequencies, &LabelFrequencies::of(raters)?)?, frequencies.s_ncc(raters)?.mean)
        }
        None => (None, None),
    };
    let reliability = Reliability::new(&probabilities, raters, config.bins)?;
    Ok(VoxelScores {
        variance_ncc,
        s_ncc,
        ece: reliability.ece().unwrap_or_default(),
        foreground_ece: reliability.foreground_ece().unwrap_or_default(),
        brier: brier(&probabilities, raters)?,
        log_likelihoods,
        effective_samples,
        reliability: Some(reliability).filter(|_| config.bins <= MAX_DRAWN_BINS),
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
    let has_maps = config.voxelwise || !config.sets.is_empty();
    let maps = if has_maps { image.saturating_mul(labels * 28) } else { 0 };
    // Label maps of raters and of a block of samples, and the distance transforms of a mask.
    let rest = image.saturating_mul(2 * raters + 40).saturating_add(2 * (64 << 20));
    [stored, planes, maps, rest].into_iter().fold(distribution, usize::saturating_add)
}

/// The mean of values; none without one.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
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
    fn groups_have_a_name_and_classes() {
        let classes = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(Group::parse("core = a + b"), Ok(("core".to_owned(), classes)));
        for wrong in ["core", "=a", "core=", "core=a+"] {
            assert!(Group::parse(wrong).is_err(), "{wrong}");
        }
    }
}
