//! Every score, a row each: its key, how tables show it, and how it is read from the scores of a case.
//!
//! Keys in `summary.json`, `cases.csv` and Python, rows of tables and reports, the glossary, directions, and the list of keys in
//! `docs/reference/metrics.md` come from [`SCORES`]. To add a score, add a row, and a test of its value.

use std::fmt;

use serde::{Deserialize, Serialize};
use ssn_data::text::counted;

use crate::challenges::{ScoreSet, asked};
use crate::scores::{CaseScores, GroupScores, SampleScores, SurfaceScores, mean};

/// The key of GED².
pub const GED2: &str = "ged2";
/// The key of excess GED².
pub const EXCESS_GED2: &str = "excess_ged2";
/// The key of the diversity of samples.
pub const SAMPLE_DIVERSITY: &str = "sample_diversity";
/// The key of the diversity of raters.
pub const RATER_DIVERSITY: &str = "rater_diversity";
/// The key of HM-IoU.
pub const HM_IOU: &str = "hm_iou";
/// The key of the calibration error of the most probable label.
pub const ECE: &str = "ece";
/// The key of the calibration error of the foreground.
pub const FOREGROUND_ECE: &str = "foreground_ece";
/// The key of the Dice of the prediction.
pub const DSC: &str = "dsc";
/// The key of the Dice of the prediction where the rater marked something.
pub const DSC_NOD: &str = "dsc_nod";

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A score, with three digits.
    Score,
    /// A share, shown in per cent.
    Percent,
    /// Millimeters.
    Millimeters,
    /// Milliliters.
    Milliliters,
    /// Lengths in voxels, of images that do not say how large these are.
    Voxels,
    /// Volumes in voxels.
    VoxelCount,
    /// Natural logarithms, or counts.
    Number,
}

impl Unit {
    /// A value as tables show it.
    pub fn shown(self, x: f64) -> String {
        match self {
            Self::Score => format!("{x:.3}"),
            Self::Percent => format!("{:.1}", 100.0 * x),
            Self::Millimeters | Self::Milliliters | Self::Voxels => format!("{x:.2}"),
            Self::VoxelCount => format!("{x:.0}"),
            Self::Number => format!("{x:.1}"),
        }
    }
}

/// A kind of measurement; it decides how a score is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A number around 1.
    Score,
    /// A share, shown in per cent.
    Percent,
    /// A logarithm or a count.
    Number,
    /// A length, in millimeters or voxels.
    Length,
    /// A volume, in milliliters or voxels.
    Volume,
    /// A difference of volumes, in milliliters or voxels.
    VolumeError,
}

impl Quantity {
    /// Returns the factor and the decimals in tables of several networks.
    pub fn in_tables(self) -> (f64, usize) {
        match self {
            Self::Percent => (100.0, 1),
            Self::Score => (1.0, 3),
            Self::Number | Self::Length | Self::Volume | Self::VolumeError => (1.0, 1),
        }
    }

    /// Returns the unit of a case whose voxels have a known size, or not.
    fn unit(self, in_voxels: bool) -> Unit {
        match (self, in_voxels) {
            (Self::Score, _) => Unit::Score,
            (Self::Percent, _) => Unit::Percent,
            (Self::Number, _) => Unit::Number,
            (Self::Length, false) => Unit::Millimeters,
            (Self::Volume | Self::VolumeError, false) => Unit::Milliliters,
            (Self::Length | Self::VolumeError, true) => Unit::Voxels,
            (Self::Volume, true) => Unit::VoxelCount,
        }
    }
}

/// The better values of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Low ones.
    Lower,
    /// High ones.
    Higher,
    /// Those near the value of the raters.
    LikeRaters,
    /// None: the score describes.
    Neither,
}

impl Better {
    /// Returns an arrow, and its meaning.
    pub fn arrow(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Lower => Some(("↓", "lower is better")),
            Self::Higher => Some(("↑", "higher is better")),
            Self::LikeRaters => Some(("→", "better the nearer it is to that of raters")),
            Self::Neither => None,
        }
    }
}

/// The values of a score for one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// One value, or one per rater; none where there is no value.
    pub each: Vec<Option<f64>>,
    /// Pairs behind them of which one mask is empty, so that their distance is undefined or penalized.
    pub one_empty: usize,
}

fn one(value: Option<f64>) -> Option<Values> {
    each(vec![value])
}

fn each(each: Vec<Option<f64>>) -> Option<Values> {
    Some(Values { each, one_empty: 0 })
}

fn samples(group: &GroupScores, value: fn(&SampleScores) -> Option<f64>) -> Option<Values> {
    each(group.samples.iter().map(value).collect())
}

fn surface(scores: &Option<Vec<SurfaceScores>>, value: fn(&SurfaceScores) -> Option<f64>) -> Option<Values> {
    each(scores.as_ref()?.iter().map(value).collect())
}

/// Reads a distance between surfaces, with the number of pairs that have none.
fn distance(scores: &Option<Vec<SurfaceScores>>, value: fn(&SurfaceScores) -> Option<f64>) -> Option<Values> {
    let one_empty = scores.as_ref()?.iter().map(|scores| scores.one_empty).sum();
    surface(scores, value).map(|values| Values { one_empty, ..values })
}

/// How a score is read; no values if it was not computed for the case.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// At several numbers of samples, ascending.
    Counts(fn(&CaseScores) -> Vec<(usize, f64)>),
    /// Of the whole case.
    Case(fn(&CaseScores) -> Option<Values>),
    /// Of each mask.
    Mask(fn(&GroupScores) -> Option<Values>),
}

/// A score.
#[derive(Debug, Clone, Copy)]
pub struct ScoreDef {
    /// Its name in files, without the number of samples and the mask.
    pub key: &'static str,
    /// The row in tables. `{n}` is the number of samples, `{distance}` another distance than the paper's, and `{length}` and
    /// `{volume}` are the units. One that begins with "…" refines the row above.
    title: &'static str,
    /// The title where the row above is missing.
    alone: Option<&'static str>,
    /// What it measures.
    pub quantity: Quantity,
    /// Which values are better.
    pub better: Better,
    /// The name in the sentence about directions; empty if the sentence leaves it out.
    family: &'static str,
    /// The word of [`GLOSSARY`] that explains it.
    pub term: &'static str,
    /// The column in tables of several networks.
    pub heading: &'static str,
    /// Whether each rater has a value of its own.
    pub per_rater: bool,
    /// The sets that have it; empty if it is always reported.
    sets: &'static [ScoreSet],
    /// Whether the table of cases shows it.
    pub in_cases: bool,
    /// Whether the table of masks shows it.
    pub in_masks: bool,
    /// Raise it when the meaning changes, so that cases are scored again.
    pub version: u16,
    read: Read,
}

const fn score(key: &'static str, title: &'static str, quantity: Quantity, read: Read) -> ScoreDef {
    ScoreDef {
        key,
        title,
        alone: None,
        quantity,
        better: Better::Neither,
        family: "",
        term: "",
        heading: "",
        per_rater: matches!(read, Read::Mask(_)),
        sets: &[],
        in_cases: true,
        in_masks: false,
        version: 1,
        read,
    }
}

const fn case(
    key: &'static str,
    title: &'static str,
    quantity: Quantity,
    read: fn(&CaseScores) -> Option<Values>,
) -> ScoreDef {
    score(key, title, quantity, Read::Case(read))
}

const fn mask(
    key: &'static str,
    title: &'static str,
    quantity: Quantity,
    read: fn(&GroupScores) -> Option<Values>,
) -> ScoreDef {
    score(key, title, quantity, Read::Mask(read))
}

impl ScoreDef {
    const fn lower(mut self, family: &'static str) -> Self {
        (self.better, self.family) = (Better::Lower, family);
        self
    }

    const fn higher(mut self, family: &'static str) -> Self {
        (self.better, self.family) = (Better::Higher, family);
        self
    }

    const fn like_raters(mut self) -> Self {
        self.better = Better::LikeRaters;
        self
    }

    const fn term(mut self, term: &'static str) -> Self {
        self.term = term;
        self
    }

    const fn heading(mut self, heading: &'static str) -> Self {
        self.heading = heading;
        self
    }

    const fn alone(mut self, title: &'static str) -> Self {
        self.alone = Some(title);
        self
    }

    const fn for_each_rater(mut self) -> Self {
        self.per_rater = true;
        self
    }

    const fn once(mut self) -> Self {
        self.per_rater = false;
        self
    }

    const fn of(mut self, sets: &'static [ScoreSet]) -> Self {
        self.sets = sets;
        self
    }

    const fn not_in_cases(mut self) -> Self {
        self.in_cases = false;
        self
    }

    const fn in_masks(mut self) -> Self {
        self.in_masks = true;
        self
    }

    /// Returns `true` if it refines the row above.
    pub fn refines(&self) -> bool {
        self.alone.is_some()
    }

    /// Returns the unit of a figure, which knows whether its images have a spacing.
    fn in_voxels(unit: Unit) -> bool {
        matches!(unit, Unit::Voxels | Unit::VoxelCount)
    }

    /// Returns the title where the row above is missing.
    pub fn alone_title(&self, unit: Unit) -> Option<String> {
        self.alone.map(|title| with_units(title, Self::in_voxels(unit)))
    }
}

fn with_units(title: &str, in_voxels: bool) -> String {
    let [length, volume] = if in_voxels { ["px", "px"] } else { ["mm", "ml"] };
    title.replace("{length}", length).replace("{volume}", volume)
}

use Quantity::{Length, Number, Percent, Score, Volume, VolumeError};
use ScoreSet::{Consensus, Curvas, Mmis, Pdacvi, Qubiq};

/// All scores, in the order of tables.
pub static SCORES: &[ScoreDef] = &[
    score(
        GED2,
        "GED²{distance}, {n}",
        Score,
        Read::Counts(|s| s.ged.iter().map(|ged| (ged.samples, ged.squared)).collect()),
    )
    .lower("GED²")
    .term("GED²")
    .heading("GED²"),
    case(EXCESS_GED2, "excess GED²", Score, |s| one(s.excess_ged_squared())).lower("GED²").term("GED²"),
    case(SAMPLE_DIVERSITY, "diversity of samples", Score, |s| one(Some(s.sample_diversity)))
        .like_raters()
        .heading("diversity"),
    case(RATER_DIVERSITY, "diversity of raters", Score, |s| one(Some(s.rater_diversity))),
    case("cross_distance", "distance of samples to raters", Score, |s| one(Some(s.cross_distance)))
        .lower("the distance of samples to raters")
        .not_in_cases(),
    case(HM_IOU, "HM-IoU, {n}", Score, |s| one(s.hm_iou)).higher("IoU").term("HM-IoU").heading("HM-IoU"),
    case("max_dice", "max-Dice", Score, |s| one(s.max_dice)).higher("DSC"),
    case("empty_samples", "nearly empty samples %", Percent, |s| one(s.empty_samples)),
    case("max_dice_of_samples", "max-Dice of samples", Score, |s| one(s.max_dice_of_samples))
        .higher("DSC")
        .of(&[Mmis]),
    case("matched_dice", "Dice_match", Score, |s| one(s.matched_dice)).higher("DSC").of(&[Mmis]),
    case("curvas_ece", "ECE of raters, 50 bins", Score, |s| one(s.challenge_ece.whole))
        .lower("ECE")
        .term("ECE")
        .of(&[Curvas]),
    case("pdacvi_ece", "ECE around marks, 50 bins", Score, |s| one(s.challenge_ece.around_marks))
        .lower("ECE")
        .term("ECE")
        .of(&[Pdacvi]),
    case("variance_ncc", "NCC of variances", Score, |s| one(s.voxelwise.as_ref()?.variance_ncc))
        .higher("NCC")
        .term("NCC of variances")
        .not_in_cases(),
    case("s_ncc", "S-NCC", Score, |s| one(s.voxelwise.as_ref()?.s_ncc))
        .higher("NCC")
        .term("S-NCC")
        .not_in_cases(),
    case(ECE, "ECE", Score, |s| one(Some(s.voxelwise.as_ref()?.ece))).lower("ECE").term("ECE"),
    case(FOREGROUND_ECE, "ECE of the foreground", Score, |s| one(Some(s.voxelwise.as_ref()?.foreground_ece)))
        .lower("ECE")
        .term("ECE")
        .not_in_cases(),
    case("brier", "Brier score", Score, |s| one(Some(s.voxelwise.as_ref()?.brier))).lower("Brier score"),
    case("log_likelihood", "log-likelihood of raters", Number, |s| {
        each(s.voxelwise.as_ref()?.log_likelihoods.iter().copied().map(Some).collect())
    })
    .for_each_rater()
    .higher("log-likelihood"),
    case("effective_samples", "effective sample size (ESS)", Number, |s| {
        each(s.voxelwise.as_ref()?.effective_samples.iter().copied().map(Some).collect())
    })
    .for_each_rater()
    .term("ESS")
    .not_in_cases(),
    mask(DSC, "DSC %", Percent, |g| each(g.dsc.clone())).higher("DSC").in_masks().heading("DSC %"),
    mask(DSC_NOD, "DSC_nod %", Percent, |g| each(g.dsc_nod.clone()))
        .higher("DSC")
        .term("DSC_nod")
        .not_in_cases()
        .heading("DSC_nod %"),
    mask("sample_dsc", "DSC of samples %", Percent, |g| samples(g, |s| s.mean)).higher("DSC").in_masks(),
    mask("sample_dsc_05", "… 5 % quantile", Percent, |g| samples(g, |s| s.quantiles[0]))
        .alone("DSC of samples, 5 % quantile")
        .higher("DSC")
        .not_in_cases(),
    mask("sample_dsc_50", "… median", Percent, |g| samples(g, |s| s.quantiles[1]))
        .alone("DSC of samples, median")
        .higher("DSC")
        .not_in_cases(),
    mask("sample_dsc_95", "… 95 % quantile", Percent, |g| samples(g, |s| s.quantiles[2]))
        .alone("DSC of samples, 95 % quantile")
        .higher("DSC")
        .in_masks(),
    mask("better_than_prediction", "samples above the prediction %", Percent, |g| {
        samples(g, |s| s.better_than_prediction)
    })
    .in_masks(),
    mask("hd95", "HD95, {length}", Length, |g| distance(&g.surface, |s| s.hd95)).lower("HD95").in_masks(),
    mask("assd", "ASSD, {length}", Length, |g| distance(&g.surface, |s| s.assd)).lower("ASSD").not_in_cases(),
    mask("nsd", "surface Dice %", Percent, |g| surface(&g.surface, |s| s.nsd))
        .higher("surface Dice")
        .in_masks(),
    mask("sample_hd95", "HD95 of samples, {length}", Length, |g| distance(&g.sample_surface, |s| s.hd95))
        .lower("HD95"),
    mask("sample_assd", "ASSD of samples, {length}", Length, |g| distance(&g.sample_surface, |s| s.assd))
        .lower("ASSD"),
    mask("sample_nsd", "surface Dice of samples %", Percent, |g| surface(&g.sample_surface, |s| s.nsd))
        .higher("surface Dice"),
    mask("consensus_dice", "consensus Dice %", Percent, |g| one(g.challenges.as_ref()?.consensus_dice))
        .once()
        .higher("DSC")
        .term("consensus Dice")
        .of(&[Curvas]),
    mask("confidence", "confidence %", Percent, |g| one(g.challenges.as_ref()?.confidence))
        .once()
        .higher("")
        .of(&[Curvas]),
    mask("soft_dice_qubiq", "soft Dice, QUBIQ %", Percent, |g| one(g.challenges.as_ref()?.soft_dice_qubiq))
        .once()
        .higher("DSC")
        .term("soft Dice")
        .of(&[Qubiq]),
    mask("soft_dice_pdacvi", "soft Dice, PDACVI %", Percent, |g| {
        one(g.challenges.as_ref()?.soft_dice_pdacvi)
    })
    .once()
    .higher("DSC")
    .term("soft Dice")
    .of(&[Pdacvi]),
    mask("soft_dice_mmis", "soft Dice, MMIS %", Percent, |g| one(g.challenges.as_ref()?.soft_dice_mmis))
        .once()
        .higher("DSC")
        .term("soft Dice")
        .of(&[Mmis]),
    mask("volume_crps", "volume CRPS, {volume}", VolumeError, |g| one(g.challenges.as_ref()?.volume_crps))
        .once()
        .lower("")
        .term("CRPS")
        .of(&[Curvas, Pdacvi]),
    mask("sample_volume_crps", "volume CRPS of samples, {volume}", VolumeError, |g| {
        one(g.challenges.as_ref()?.sample_volume_crps)
    })
    .once()
    .lower("")
    .term("CRPS")
    .of(&[Curvas, Pdacvi]),
    mask("majority_dice", "Dice with the majority %", Percent, |g| one(g.challenges.as_ref()?.majority_dice))
        .once()
        .higher("DSC")
        .of(&[Consensus]),
    mask("staple_dice", "Dice with STAPLE %", Percent, |g| one(g.challenges.as_ref()?.staple_dice))
        .once()
        .higher("DSC")
        .of(&[Consensus]),
    mask("volume", "volume of the prediction, {volume}", Volume, |g| one(Some(g.volumes.prediction))).once(),
    mask("sample_volume_05", "… of samples, 5 % quantile", Volume, |g| one(g.volumes.samples[0]))
        .alone("volume of samples, 5 % quantile, {volume}")
        .once()
        .not_in_cases(),
    mask("sample_volume_50", "… of samples, median", Volume, |g| one(g.volumes.samples[1]))
        .alone("volume of samples, median, {volume}")
        .once(),
    mask("sample_volume_95", "… of samples, 95 % quantile", Volume, |g| one(g.volumes.samples[2]))
        .alone("volume of samples, 95 % quantile, {volume}")
        .once()
        .not_in_cases(),
    mask("rater_volume", "… of raters", Volume, |g| {
        each(g.volumes.raters.iter().copied().map(Some).collect())
    })
    .alone("volume of raters, {volume}"),
];

/// What the word "one empty" in tables means.
pub const ONE_EMPTY: &str = "one empty";

/// Words in tables that not everybody knows.
pub const GLOSSARY: [(&str, &str); 11] = [
    ("GED²", "squared generalized energy distance of samples and raters, with 1 − IoU; lower is better"),
    ("HM-IoU", "mean IoU of samples and raters matched in the best way"),
    ("DSC_nod", "DSC where the rater marked something"),
    ("S-NCC", "correlation of the spread of samples with their distance to raters"),
    ("ECE", "expected calibration error, the mean gap of probability and frequency"),
    ("ESS", "samples that count in the log-likelihood; near 1, one sample explains the rater alone"),
    (
        ONE_EMPTY,
        "pairs of which one mask is empty: their distance is undefined, or with --empty-penalty the diagonal of the image",
    ),
    ("consensus Dice", "Dice with what all raters marked, without the voxels on which they disagree"),
    ("soft Dice", "mean Dice of probabilities and shares of raters above thresholds"),
    ("CRPS", "continuous ranked probability score of volumes; lower is better"),
    ("NCC of variances", "correlation of the variance of samples with that of raters"),
];

/// Returns the score of a key.
///
/// # Panics
/// For a key that no row has; use the constants of this module.
pub fn definition(key: &str) -> &'static ScoreDef {
    SCORES.iter().find(|score| score.key == key).expect("a key of the registry")
}

/// Returns `true` if a name in files is that of the score with a key, at any number of samples and of any mask.
pub fn is_of(name: &str, key: &str) -> bool {
    ScoreKey::parse(name).is_some_and(|name| name.score.key == key)
}

/// Returns a sentence about the values that are better.
pub fn directions() -> String {
    let families = |better| {
        let mut names: Vec<&str> = vec![];
        for score in SCORES.iter().filter(|score| score.better == better && !score.family.is_empty()) {
            if !names.contains(&score.family) {
                names.push(score.family);
            }
        }
        let last = names.pop().unwrap_or_default();
        format!("{} and {last}", names.join(", "))
    };
    format!(
        "{} are better when they are small; {} when they are large. The diversity of samples should be that of raters.",
        families(Better::Lower),
        families(Better::Higher)
    )
}

/// Returns the versions of all definitions, which the record of a case depends on.
pub fn versions() -> Vec<(&'static str, u16)> {
    SCORES.iter().map(|score| (score.key, score.version)).collect()
}

/// Returns the table of all scores in `docs/reference/metrics.md`.
pub fn reference() -> String {
    let mut text = "| key | score | better |\n|---|---|---|\n".to_owned();
    for score in SCORES {
        let key = match score.read {
            Read::Counts(_) => format!("{}_N", score.key),
            Read::Case(_) => score.key.to_owned(),
            Read::Mask(_) => format!("{} MASK", score.key),
        };
        let title = with_units(score.alone.unwrap_or(score.title), false);
        let title = title.replace("{n}", "N samples").replace("{distance}", "");
        let better = score.better.arrow().map_or("", |(arrow, _)| arrow);
        text += &format!("| `{key}` | {title} | {better} |\n");
    }
    text
}

/// The name of a score in files: its key, at some number of samples, of some mask.
#[derive(Debug, Clone, Copy)]
pub struct ScoreKey<'a> {
    /// The score.
    pub score: &'static ScoreDef,
    /// The number of samples, of a score that is given at several.
    pub samples: Option<usize>,
    /// The mask, of a score that is given for each.
    pub mask: Option<&'a str>,
}

impl<'a> ScoreKey<'a> {
    /// Reads a name; nothing if no score has it.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, mask) = text.split_once(' ').map_or((text, None), |(name, mask)| (name, Some(mask)));
        let of_count = |score: &ScoreDef| -> Option<usize> {
            name.strip_prefix(score.key)?.strip_prefix('_')?.parse().ok()
        };
        SCORES.iter().find_map(|score| {
            let (samples, is_it) = match score.read {
                Read::Counts(_) => (of_count(score), mask.is_none() && of_count(score).is_some()),
                Read::Case(_) => (None, mask.is_none() && name == score.key),
                Read::Mask(_) => (None, mask.is_some() && name == score.key),
            };
            is_it.then_some(Self { score, samples, mask })
        })
    }
}

impl fmt::Display for ScoreKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.score.key)?;
        if let Some(samples) = self.samples {
            write!(f, "_{samples}")?;
        }
        self.mask.map_or(Ok(()), |mask| write!(f, " {mask}"))
    }
}

/// The values of one case for one score.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
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

impl Observations {
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
pub fn observations(scores: &CaseScores) -> Vec<Observations> {
    let is_asked =
        |def: &&ScoreDef| def.sets.is_empty() || def.sets.iter().any(|set| asked(&scores.sets, *set));
    let row = |def: &'static ScoreDef, samples: Option<usize>, mask: Option<&str>, values: Values| {
        let title = with_units(def.title, scores.in_voxels)
            .replace("{n}", &counted(samples.unwrap_or(scores.samples), "sample"))
            .replace("{distance}", scores.distance.suffix());
        Observations {
            key: ScoreKey { score: def, samples, mask }.to_string(),
            title,
            group: mask.map(str::to_owned),
            unit: def.quantity.unit(scores.in_voxels),
            per_rater: def.per_rater,
            values: values.each,
            one_empty: values.one_empty,
        }
    };
    let mut all = vec![];
    for def in SCORES.iter().filter(is_asked) {
        match def.read {
            Read::Counts(read) => all.extend(read(scores).into_iter().map(|(samples, value)| {
                row(def, Some(samples), None, Values { each: vec![Some(value)], one_empty: 0 })
            })),
            Read::Case(read) => all.extend(read(scores).map(|values| row(def, None, None, values))),
            Read::Mask(_) => {}
        }
    }
    for group in &scores.groups {
        for def in SCORES.iter().filter(is_asked) {
            if let Read::Mask(read) = def.read {
                all.extend(read(group).map(|values| row(def, None, Some(&group.name), values)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read() {
        for text in ["ged2_8", "ged2_100", "hm_iou", "hd95 tumor core", "sample_dsc_05 a 2", "ece"] {
            assert_eq!(ScoreKey::parse(text).unwrap().to_string(), text);
        }
        for text in ["ged2", "ged2_", "ged2_x", "dsc", "hm_iou a", "unknown", "ged2_8 a", ""] {
            assert!(ScoreKey::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn every_row_has_a_key_of_its_own_and_known_words() {
        for (place, score) in SCORES.iter().enumerate() {
            assert!(SCORES[..place].iter().all(|earlier| earlier.key != score.key), "{}", score.key);
            let known = score.term.is_empty() || GLOSSARY.iter().any(|(word, _)| *word == score.term);
            assert!(known, "{}: {}", score.key, score.term);
            assert_eq!(score.title.starts_with('…'), score.refines(), "{}", score.key);
        }
    }

    #[test]
    fn the_reference_lists_them() {
        ssn_testing::assert_table_is_up_to_date("metrics.md", "keys", &reference());
    }

    #[test]
    fn directions_name_the_families() {
        assert_eq!(
            directions(),
            "GED², the distance of samples to raters, ECE, Brier score, HD95 and ASSD are better when they are small; IoU, DSC, \
             NCC, log-likelihood and surface Dice when they are large. The diversity of samples should be that of raters."
        );
    }
}
