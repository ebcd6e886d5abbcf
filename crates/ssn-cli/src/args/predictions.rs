//! The arguments of the verbs that work on predictions.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ssn_data::Split;
use ssn_predictions::scores::{DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_TOLERANCE};

/// Draws label maps from distribution files, each a function of the seed and its number, and steers them if asked to.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "η = μ + T·w_c·(Σ_q g_q·ε_q·P_q + √D·ε): T is --temperature, w_c a --class-scale, g_q a \
                  --mode-weight. The noise ε of a sample stays what it is, so that only what is steered changes.\n\
                  OUT/samples.csv has the volume of every class in every sample. Of a deterministic network, every \
                  voxel draws its label by itself, which shows the grain that the correlations take away."
)]
pub struct SampleArgs {
    /// Distribution files (.ssn.safetensors), or folders of them.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub inputs: Vec<PathBuf>,

    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// How many samples to draw of each case.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub samples: u64,

    /// The seed; sample I of a seed is always the same.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// The number of the first sample.
    #[arg(long, default_value_t = 0, value_name = "I", value_parser = clap::value_parser!(u64).range(0..=1 << 53))]
    pub first: u64,

    /// The scale of all noise: 0 gives the prediction, more than 1 exaggerates.
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = weight)]
    pub temperature: Option<f32>,

    /// The scale of the noise of one class; -3 to 3 in the paper. May be repeated.
    #[arg(long, value_name = "NAME=X", value_parser = named_weight)]
    pub class_scale: Vec<(String, f32)>,

    /// The weight of one column of the factor, counted from 0. May be repeated.
    #[arg(long, value_name = "K=X", value_parser = numbered_weight)]
    pub mode_weight: Vec<(usize, f32)>,

    /// Leave out the independent noise of voxels.
    #[arg(long)]
    pub no_diagonal_noise: bool,

    /// Write the mean of the samples' probabilities, a channel per class.
    #[arg(long)]
    pub probabilities: bool,

    /// Write the entropy of these probabilities, 0 to 1.
    #[arg(long)]
    pub entropy: bool,

    /// The format of the files: nii.gz, nrrd, mha, or png for label maps of pictures.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = MapFormat::NiiGz)]
    pub format: MapFormat,

    /// Replace files that are there already.
    #[arg(long)]
    pub overwrite: bool,
}

impl SampleArgs {
    /// Whether anything is asked for that a network without noise does not have.
    pub fn steers(&self) -> bool {
        self.temperature.is_some()
            || !self.class_scale.is_empty()
            || !self.mode_weight.is_empty()
            || self.no_diagonal_noise
    }
}

/// Scores predictions against the raters of their dataset: GED², diversity, Dice, HM-IoU, calibration, likelihood and
/// distances between surfaces.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Writes OUT/cases.csv, a row per case, and OUT/summary.json, and prints means with standard errors; \
                  docs/reference/metrics.md defines every score. A run that was stopped goes on where it was: \
                  cases whose prediction and settings are the same are not scored again."
)]
pub struct EvaluateArgs {
    /// The folder of predictions.
    pub predictions: PathBuf,

    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,

    /// The cases to score: train, validation, test or all; without it, those that were predicted for.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub split: Option<Part>,

    /// How many samples to draw of each case.
    #[arg(long, default_value_t = DEFAULT_SAMPLES, value_name = "N", value_parser = sample_count)]
    pub samples: usize,

    /// The seed of the samples.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// The folder to write to [default: PREDICTIONS/evaluation].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Only GED² and Dice, and no scores of voxels and surfaces.
    #[arg(long)]
    pub fast: bool,

    /// Draw every voxel of a deterministic network by itself; its only sample is its prediction otherwise.
    #[arg(long)]
    pub categorical: bool,

    /// Score classes as one mask, as in "whole tumour=core+oedema". May be repeated; without it, each class
    /// and all of them together.
    #[arg(long, value_name = "NAME=CLASS+CLASS", value_parser = group)]
    pub group: Vec<(String, Vec<String>)>,

    /// The tolerance of the surface Dice, in millimetres.
    #[arg(long, default_value_t = DEFAULT_TOLERANCE, value_name = "MM", value_parser = tolerance)]
    pub tolerance: f64,

    /// The bins of the calibration error.
    #[arg(long, default_value_t = DEFAULT_BINS, value_name = "N", value_parser = bin_count)]
    pub bins: usize,

    /// Go on where predictions are missing.
    #[arg(long)]
    pub allow_missing: bool,

    /// Score every case again, and replace an evaluation with other settings.
    #[arg(long)]
    pub overwrite: bool,
}

/// Cases of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Those to learn from.
    Train,
    /// Those to choose by.
    Validation,
    /// Those to judge by.
    Test,
    /// All of them.
    All,
}

impl Part {
    /// The part that a folder of predictions says it is of.
    pub fn from_name(name: &str) -> Option<Self> {
        match Split::from_name(name) {
            Some(Split::Train) => Some(Self::Train),
            Some(Split::Validation) => Some(Self::Validation),
            Some(Split::Test) => Some(Self::Test),
            None => (name == "all").then_some(Self::All),
        }
    }

    /// The part of a dataset, or nothing for all of it.
    pub fn split(self) -> Option<Split> {
        match self {
            Self::Train => Some(Split::Train),
            Self::Validation => Some(Split::Validation),
            Self::Test => Some(Split::Test),
            Self::All => None,
        }
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        self.split().map_or("all", Split::name)
    }
}

/// Formats of label maps and maps of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MapFormat {
    /// NIfTI, compressed.
    #[value(name = "nii.gz")]
    NiiGz,
    /// NRRD, compressed.
    Nrrd,
    /// MetaImage, compressed.
    Mha,
    /// PNG, for label maps of pictures.
    Png,
}

impl MapFormat {
    /// The ending of names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::NiiGz => ".nii.gz",
            Self::Nrrd => ".nrrd",
            Self::Mha => ".mha",
            Self::Png => ".png",
        }
    }
}

fn weight(text: &str) -> Result<f32, String> {
    match text.trim().parse::<f32>() {
        Ok(x) if x.abs() <= ssn_core::steering::MAX_WEIGHT => Ok(x),
        _ => Err("expected a number between -1e6 and 1e6, such as 1.5".to_owned()),
    }
}

fn named_weight(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.rsplit_once('=').ok_or("expected NAME=X, such as oedema=2")?;
    Ok((name.trim().to_owned(), weight(value)?))
}

fn numbered_weight(text: &str) -> Result<(usize, f32), String> {
    let (number, value) = text.split_once('=').ok_or("expected K=X, such as 0=2")?;
    let number = number.trim().parse().map_err(|_| "expected K=X with a whole number K, such as 0=2")?;
    Ok((number, weight(value)?))
}

fn sample_count(text: &str) -> Result<usize, String> {
    whole_number(text, 1..=100_000, "expected a whole number from 1 to 100000, such as 100")
}

fn bin_count(text: &str) -> Result<usize, String> {
    whole_number(text, 1..=65_536, "expected a whole number from 1 to 65536, such as 15")
}

fn whole_number(text: &str, range: RangeInclusive<usize>, expected: &str) -> Result<usize, String> {
    text.trim().parse().ok().filter(|n| range.contains(n)).ok_or_else(|| expected.to_owned())
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
        _ => Err("expected millimetres, 0 or more, such as 2".to_owned()),
    }
}

fn group(text: &str) -> Result<(String, Vec<String>), String> {
    let expected = "expected NAME=CLASS+CLASS, such as \"whole tumour=core+oedema\"";
    let (name, classes) = text.split_once('=').ok_or(expected)?;
    let classes: Vec<String> = classes.split('+').map(|class| class.trim().to_owned()).collect();
    let empty = name.trim().is_empty() || classes.iter().any(String::is_empty);
    if empty { Err(expected.to_owned()) } else { Ok((name.trim().to_owned(), classes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_a_name_and_a_range() {
        assert_eq!(named_weight("a=b=-2"), Ok(("a=b".to_owned(), -2.0)));
        assert_eq!(numbered_weight("3 = 0.5"), Ok((3, 0.5)));
        for wrong in ["x", "1e7", "nan", "inf", ""] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
        assert!(named_weight("a").is_err() && numbered_weight("a=1").is_err());
    }

    #[test]
    fn groups_have_a_name_and_classes() {
        assert_eq!(group("core = a + b"), Ok(("core".to_owned(), vec!["a".to_owned(), "b".to_owned()])));
        for wrong in ["core", "=a", "core=", "core=a+"] {
            assert!(group(wrong).is_err(), "{wrong}");
        }
        assert!(sample_count("0").is_err() && bin_count("x").is_err() && tolerance("-1").is_err());
    }
}
