//! The arguments of `ssn evaluate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ssn_data::Shard;
use ssn_eval::Part;
use ssn_eval::scores::{DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_TOLERANCE, Group};

use super::sample::weight;

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
    #[arg(long, value_parser = part(), hide_possible_values = true)]
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

    /// The scale of all noise of samples of a distribution: less than 1 makes them more alike.
    #[arg(long, value_name = "T", value_parser = weight)]
    pub temperature: Option<f32>,

    /// Leave the independent noise of voxels out of samples of a distribution.
    #[arg(long)]
    pub no_diagonal_noise: bool,

    /// Score classes as one mask, as in "whole tumour=core+oedema". May be repeated; without it, each class
    /// and all of them together.
    #[arg(long, value_name = "NAME=CLASS+CLASS", value_parser = Group::parse)]
    pub group: Vec<(String, Vec<String>)>,

    /// The tolerance of the surface Dice, in millimeters.
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

    /// Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes the table.
    /// Without it, the share that mpirun or srun gives this process, or all cases.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

pub(super) fn part() -> impl TypedValueParser<Value = Part> {
    PossibleValuesParser::new(["train", "validation", "test", "all"])
        .map(|name| Part::from_name(&name).unwrap_or(Part::All))
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
        _ => Err("expected millimeters, 0 or more, such as 2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_a_name_and_classes() {
        assert_eq!(
            Group::parse("core = a + b"),
            Ok(("core".to_owned(), vec!["a".to_owned(), "b".to_owned()]))
        );
        for wrong in ["core", "=a", "core=", "core=a+"] {
            assert!(Group::parse(wrong).is_err(), "{wrong}");
        }
        assert!(sample_count("0").is_err() && bin_count("x").is_err() && tolerance("-1").is_err());
    }
}
