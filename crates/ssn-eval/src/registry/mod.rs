//! Every score, a row each: its key, how tables show it, and how it is computed.
//!
//! Keys in `summary.json`, `cases.csv` and Python, rows of tables and reports, the glossary, directions, and the list of keys in
//! `docs/reference/metrics.md` come from [`SCORES`]. To add a score, add a row in `rows.rs`, and a test of its value.

mod rows;

use std::fmt;

use serde::{Deserialize, Serialize};
use ssn_args::ScoreSet;
use ssn_io::Result;

use crate::inputs::{CaseInput, MaskInput, VoxelInput};

pub use rows::SCORES;

/// The key of GED².
pub const GED2: &str = "ged2";
/// The key of excess GED².
pub const EXCESS_GED2: &str = "excess_ged2";
/// The key of the diversity of samples.
pub const SAMPLE_DIVERSITY: &str = "sample_diversity";
/// The key of the diversity of raters.
pub const RATER_DIVERSITY: &str = "rater_diversity";
/// The key of the share of nearly empty samples.
pub const EMPTY_SAMPLES: &str = "empty_samples";
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
    pub(crate) fn unit(self, in_voxels: bool) -> Unit {
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
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Values {
    /// One value, or one per rater; none where there is no value.
    pub(crate) each: Vec<Option<f64>>,
    /// Pairs behind them of which one mask is empty, so that their distance is undefined or penalized.
    pub(crate) one_empty: usize,
}

/// The values of a score, or nothing if it was not asked for.
pub(crate) type Computed = Result<Option<Values>>;

/// How a score is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Compute {
    /// Of the first samples, at several counts.
    Counts(fn(&CaseInput<'_>, usize) -> Result<f64>),
    /// Of the whole case.
    Case(fn(&CaseInput<'_>) -> Computed),
    /// Of the probabilities of its voxels, after the samples are gone.
    Voxels(fn(&VoxelInput<'_>) -> Computed),
    /// Of each mask.
    Mask(fn(&MaskInput<'_>) -> Computed),
}

/// A score.
#[derive(Debug, Clone, Copy)]
pub struct ScoreDef {
    /// Its name in files, without the number of samples and the mask.
    pub key: &'static str,
    /// The row in tables. `{n}` is the number of samples, `{distance}` another distance than the paper's, and `{length}` and
    /// `{volume}` are the units. One that begins with "…" refines the row above.
    pub(crate) title: &'static str,
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
    /// The column in tables of several networks, and in the viewer's list of cases.
    pub heading: &'static str,
    /// What it is, for the viewer's list of cases; empty if that does not show it.
    pub listed: &'static str,
    /// Whether each rater has a value of its own.
    pub per_rater: bool,
    /// The sets that have it; empty if it is always reported.
    pub(crate) sets: &'static [ScoreSet],
    /// Whether the table of cases shows it.
    pub in_cases: bool,
    /// Whether the table of masks shows it.
    pub in_masks: bool,
    /// Raise it when the meaning changes, so that cases are scored again.
    pub version: u16,
    pub(crate) compute: Compute,
}

const fn score(key: &'static str, title: &'static str, quantity: Quantity, compute: Compute) -> ScoreDef {
    ScoreDef {
        key,
        title,
        alone: None,
        quantity,
        better: Better::Neither,
        family: "",
        term: "",
        heading: "",
        listed: "",
        per_rater: matches!(compute, Compute::Mask(_)),
        sets: &[],
        in_cases: true,
        in_masks: false,
        version: 1,
        compute,
    }
}

const fn case(
    key: &'static str,
    title: &'static str,
    quantity: Quantity,
    compute: fn(&CaseInput<'_>) -> Computed,
) -> ScoreDef {
    score(key, title, quantity, Compute::Case(compute))
}

const fn mask(
    key: &'static str,
    title: &'static str,
    quantity: Quantity,
    compute: fn(&MaskInput<'_>) -> Computed,
) -> ScoreDef {
    score(key, title, quantity, Compute::Mask(compute))
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

    const fn listed(mut self, help: &'static str) -> Self {
        self.listed = help;
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

pub(crate) fn with_units(title: &str, in_voxels: bool) -> String {
    let [length, volume] = if in_voxels { ["px", "px"] } else { ["mm", "ml"] };
    title.replace("{length}", length).replace("{volume}", volume)
}

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
        let key = match score.compute {
            Compute::Counts(_) => format!("{}_N", score.key),
            Compute::Case(_) | Compute::Voxels(_) => score.key.to_owned(),
            Compute::Mask(_) => format!("{} MASK", score.key),
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
            let (samples, is_it) = match score.compute {
                Compute::Counts(_) => (of_count(score), mask.is_none() && of_count(score).is_some()),
                Compute::Case(_) | Compute::Voxels(_) => (None, mask.is_none() && name == score.key),
                Compute::Mask(_) => (None, mask.is_some() && name == score.key),
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
    fn every_further_set_has_a_row() {
        for set in ScoreSet::further() {
            assert!(SCORES.iter().any(|score| score.sets.contains(&set)), "{set:?}");
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
