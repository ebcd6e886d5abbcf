//! Scores of the multi-rater challenges of one case, by the probabilities of its voxels and the volumes of its samples.
//!
//! `docs/reference/metrics.md` defines them. p is the mean of the samples' probabilities, or of their labels where these alone are
//! known.

use serde::{Deserialize, Serialize};
use ssn_core::metrics::{
    Calibrated, ClassGroup, RaterVotes, Summary, crps_of_raters, crps_of_samples, ece, mask_dice, staple,
};
use ssn_core::{LabelMap, Region};

use crate::error::Result;

/// A named set of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ScoreSet {
    /// GED², Dice and what the paper reports.
    Paper,
    /// CURVAS 2024: consensus Dice, confidence, ECE of 50 bins, CRPS of volumes.
    Curvas,
    /// CURVAS-PDACVI 2025: soft Dice over six thresholds, ECE around what raters marked, CRPS of volumes.
    Pdacvi,
    /// QUBIQ: soft Dice over nine thresholds.
    Qubiq,
    /// MMIS and D-Persona: Dice_max, Dice_match, soft Dice over five thresholds.
    Mmis,
    /// Dice with the majority vote and with STAPLE.
    Consensus,
    /// All of them.
    All,
}

/// Whether one of some sets has the scores of another.
pub(crate) fn asked(sets: &[ScoreSet], wanted: ScoreSet) -> bool {
    sets.contains(&wanted) || sets.contains(&ScoreSet::All)
}

/// The bins of the calibration error of CURVAS.
const BINS: usize = 50;
/// Voxels around what raters marked that count for the calibration error of PDACVI.
const MARGIN: usize = 20;
const QUBIQ: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const PDACVI: [f64; 6] = [0.1, 0.24, 0.38, 0.52, 0.66, 0.8];
const MMIS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Scores of one mask; none of those that were not asked for or have no value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChallengeScores {
    /// Dice of the prediction with what all raters marked, without the voxels on which they disagree.
    pub consensus_dice: Option<f64>,
    /// How sure p is where raters agree.
    pub confidence: Option<f64>,
    /// Soft Dice over the thresholds of QUBIQ.
    pub soft_dice_qubiq: Option<f64>,
    /// Soft Dice over the thresholds of CURVAS-PDACVI.
    pub soft_dice_pdacvi: Option<f64>,
    /// Soft Dice over the thresholds of MMIS.
    pub soft_dice_mmis: Option<f64>,
    /// CRPS of the raters' volumes as a normal distribution at Σ p.
    pub volume_crps: Option<f64>,
    /// CRPS of the samples' volumes at the raters'.
    pub sample_volume_crps: Option<f64>,
    /// Dice of the prediction with the majority vote.
    pub majority_dice: Option<f64>,
    /// Dice of the prediction with the consensus of STAPLE.
    pub staple_dice: Option<f64>,
}

/// What a mask is scored by.
pub(crate) struct ChallengeInput<'a> {
    pub(crate) group: &'a ClassGroup,
    pub(crate) prediction: &'a LabelMap,
    pub(crate) raters: &'a [LabelMap],
    /// `[l, v]`, where they are known.
    pub(crate) probabilities: Option<&'a [f32]>,
    pub(crate) sample_volumes: &'a [f64],
    pub(crate) rater_volumes: &'a [f64],
    /// The volume of a voxel.
    pub(crate) voxel: f64,
}

impl ChallengeScores {
    /// The scores of some sets.
    pub(crate) fn new(input: &ChallengeInput<'_>, sets: &[ScoreSet]) -> Result<Self> {
        let asked = |set| asked(sets, set);
        let votes = RaterVotes::new(input.raters, input.group)?;
        let prediction = input.group.mask(input.prediction)?;
        let mut scores = Self::default();
        if asked(ScoreSet::Curvas) {
            scores.consensus_dice = votes.consensus_dice(&prediction)?;
        }
        if asked(ScoreSet::Consensus) {
            scores.majority_dice = mask_dice(&prediction, &votes.majority());
            let consensus: Vec<bool> = staple(input.raters, input.group)?.iter().map(|p| *p >= 0.5).collect();
            scores.staple_dice = mask_dice(&prediction, &consensus);
        }
        if asked(ScoreSet::Curvas) || asked(ScoreSet::Pdacvi) {
            scores.sample_volume_crps = Some(crps_of_samples(input.sample_volumes, input.rater_volumes)?);
        }
        let Some(probabilities) = input.probabilities else { return Ok(scores) };
        let voxels = prediction.len();
        let mut p = vec![0f32; voxels];
        for &class in input.group.classes() {
            let of_class = &probabilities[usize::from(class) * voxels..][..voxels];
            p.iter_mut().zip(of_class).for_each(|(sum, p)| *sum += p);
        }
        if asked(ScoreSet::Curvas) {
            scores.confidence = votes.confidence(&p)?;
        }
        if asked(ScoreSet::Curvas) || asked(ScoreSet::Pdacvi) {
            let volume = p.iter().map(|&p| f64::from(p)).sum::<f64>() * input.voxel;
            scores.volume_crps = Some(crps_of_raters(input.rater_volumes, volume)?);
        }
        for (set, thresholds, score) in [
            (ScoreSet::Qubiq, &QUBIQ[..], &mut scores.soft_dice_qubiq),
            (ScoreSet::Pdacvi, &PDACVI, &mut scores.soft_dice_pdacvi),
            (ScoreSet::Mmis, &MMIS, &mut scores.soft_dice_mmis),
        ] {
            if asked(set) {
                *score = Some(votes.soft_dice(&p, thresholds)?);
            }
        }
        Ok(scores)
    }
}

/// The calibration errors of the challenges, each the mean over raters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ChallengeEce {
    /// Of the whole image.
    pub whole: Option<f64>,
    /// Of the box around what raters marked, with 20 voxels on each side; none where nobody marked anything.
    pub around_marks: Option<f64>,
}

impl ChallengeEce {
    /// The errors that some sets ask for, by the probabilities `[l, v]`.
    pub(crate) fn new(
        size: [usize; 3],
        raters: &[LabelMap],
        probabilities: &[f32],
        sets: &[ScoreSet],
    ) -> Result<Self> {
        let of = |probabilities: &[f32], raters: &[LabelMap]| -> Result<Option<f64>> {
            let one = |rater| ece(probabilities, std::slice::from_ref(rater), Calibrated::TopLabel, BINS);
            let each = raters.iter().map(|rater| Ok(Some(one(rater)?))).collect::<Result<Vec<_>>>()?;
            Ok(Summary::of(&each)?.mean)
        };
        let mut errors = Self::default();
        if asked(sets, ScoreSet::Curvas) {
            errors.whole = of(probabilities, raters)?;
        }
        if let Some(region) = marks(raters, size).filter(|_| asked(sets, ScoreSet::Pdacvi)) {
            let planes = probabilities.chunks_exact(raters[0].voxels());
            let inside: Vec<f32> = planes.flat_map(|plane| region.cut(plane, size)).collect();
            let cut = |rater: &LabelMap| LabelMap::new(region.cut(rater.labels(), size), rater.classes());
            let raters = raters.iter().map(cut).collect::<ssn_core::Result<Vec<_>>>()?;
            errors.around_marks = of(&inside, &raters)?;
        }
        Ok(errors)
    }
}

/// The box around what any rater marked, with a margin, within an image of a size; nothing where nobody marked anything.
fn marks(raters: &[LabelMap], size: [usize; 3]) -> Option<Region> {
    let whole = Region::whole(size);
    let marked = raters.iter().flat_map(|rater| {
        rater.labels().iter().enumerate().filter(|(_, label)| **label > 0).map(|(at, _)| whole.voxel(at))
    });
    Some(Region::around(marked)?.grown(MARGIN, size))
}
