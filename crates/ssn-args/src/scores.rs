//! Choices of scores: sets, the distance of GED², groups of classes, defaults.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use ssn_core::metrics::Distance;

/// A named set of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
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

impl ScoreSet {
    /// Returns the sets that add scores of their own to those of the paper.
    pub fn further() -> impl Iterator<Item = Self> {
        let has_own = |set: &Self| !matches!(set, Self::Paper | Self::All);
        Self::value_variants().iter().copied().filter(has_own)
    }
}

/// Writes the help of `--scores`.
pub(crate) fn sets_help() -> String {
    let names: Vec<String> =
        ScoreSet::further().filter_map(|set| Some(set.to_possible_value()?.get_name().to_owned())).collect();
    format!("Further scores: {} or all. May be repeated", names.join(", "))
}

/// Samples of the paper's figures on LIDC.
pub const DEFAULT_SAMPLES: usize = 100;
/// The tolerance of the normalized surface Dice, in millimeters.
pub const DEFAULT_TOLERANCE: f64 = 2.0;
/// The bins of the calibration error, as most papers have them.
pub const DEFAULT_BINS: usize = 15;
/// Samples whose surfaces are compared with the raters'.
pub const DEFAULT_SURFACE_SAMPLES: usize = 10;

/// The distance that GED² is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
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
    /// Returns the distance between two label maps.
    pub fn rule(self) -> Distance {
        match self {
            Self::Iou => Distance::Iou,
            Self::IouPresent => Distance::IouOfPresent,
            Self::Dice => Distance::Dice,
        }
    }

    /// What tables add to the names of scores by another distance than the paper's.
    pub fn suffix(self) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_a_name_and_classes() {
        let classes = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(Group::parse("core = a + b"), Ok(("core".to_owned(), classes)));
        for wrong in ["core", "=a", "core=", "core=a+"] {
            assert!(Group::parse(wrong).is_err(), "{wrong}");
        }
    }
}
