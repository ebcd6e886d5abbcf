//! Arguments of `ssn evaluate`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::parsers::{bin_count, tolerance, weight};
use crate::part::SplitChoice;
use crate::rule::PredictionRule;
use crate::scores::{
    DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_SURFACE_SAMPLES, DEFAULT_TOLERANCE, GedDistance, Group, ScoreSet,
    sets_help,
};

/// What is scored, against what, and how.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct EvaluateConfig {
    /// The folder of predictions; of files of another tool, the one that they are converted to.
    #[arg(default_value = "scores", hide_default_value = true)]
    pub predictions: PathBuf,
    /// Files of another tool.
    #[command(flatten)]
    pub other: OtherTool,
    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,
    /// The cases to score: train, validation, test or all; without it, those that were predicted for.
    #[arg(long, hide_possible_values = true)]
    pub split: Option<SplitChoice>,
    /// How many samples to draw of each case.
    #[arg(skip = DEFAULT_SAMPLES)]
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
    /// Which one segmentation DSC and surface scores are of: the labels of the mean logits, or of the marginal probabilities
    /// of 100 samples.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "mean|marginal")]
    pub prediction: PredictionRule,
    /// Draw every voxel of a deterministic network by itself; its only sample is its prediction otherwise.
    #[arg(long)]
    pub categorical: bool,
    /// The scale of all noise of samples of a distribution: less than 1 makes them more alike.
    #[arg(long, value_name = "T", default_value_t = 1.0, hide_default_value = true)]
    #[arg(allow_hyphen_values = true, value_parser = weight)]
    pub temperature: f32,
    /// Whether samples have the independent noise of voxels.
    #[arg(long = "no-diagonal-noise", action = ArgAction::SetFalse)]
    #[arg(help = "Leave the independent noise of voxels out of samples of a distribution")]
    pub diagonal_noise: bool,
    /// Score classes as one mask, as in "whole tumour=core+oedema". May be repeated; without it, each class
    /// and all of them together.
    #[arg(long = "group", value_name = "NAME=CLASS+CLASS", value_parser = Group::parse)]
    pub groups: Vec<(String, Vec<String>)>,
    /// The tolerance of the surface Dice, in millimeters; in pixels where images have no spacing.
    #[arg(long, default_value_t = DEFAULT_TOLERANCE, value_name = "MM", value_parser = tolerance)]
    pub tolerance: f64,
    /// Sets of further scores.
    #[arg(long = "scores", value_enum, hide_possible_values = true, value_name = "SET", help = sets_help())]
    pub sets: Vec<ScoreSet>,
    /// The distance that GED² is made of: iou as in the paper, iou-present (of the classes that either map has) or dice.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "DISTANCE")]
    pub ged_distance: GedDistance,
    /// Samples of each case whose surfaces are compared with the raters'.
    #[arg(long, default_value_t = DEFAULT_SURFACE_SAMPLES, value_name = "N")]
    pub surface_samples: usize,
    /// HD95 and ASSD of a pair with one empty mask are the diagonal of the image; without this they are undefined.
    #[arg(long)]
    pub empty_penalty: bool,
    /// Add 95 % bootstrap intervals over cases to the table.
    #[arg(long)]
    pub bootstrap: bool,
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

impl EvaluateConfig {
    /// The usual scores of a folder of predictions.
    pub fn new(predictions: impl Into<PathBuf>) -> Self {
        Self {
            predictions: predictions.into(),
            other: OtherTool::default(),
            data: None,
            split: None,
            samples: DEFAULT_SAMPLES,
            seed: 0,
            out: None,
            fast: false,
            prediction: PredictionRule::Mean,
            categorical: false,
            temperature: 1.0,
            diagonal_noise: true,
            groups: vec![],
            tolerance: DEFAULT_TOLERANCE,
            sets: vec![],
            ged_distance: GedDistance::Iou,
            surface_samples: DEFAULT_SURFACE_SAMPLES,
            empty_penalty: false,
            bootstrap: false,
            bins: DEFAULT_BINS,
            allow_missing: false,
            overwrite: false,
        }
    }
}

/// Files of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct OtherTool {
    /// Label maps of samples: a folder, or a pattern with {case}, {sample} and *.
    #[arg(skip)]
    pub samples: Option<PathBuf>,
    /// Probabilities of another tool: a folder of .npz (nnU-Net), .npy or NIfTI files with a channel per class, or a pattern with
    /// {case}.
    #[arg(long, value_name = "DIR|PATTERN")]
    pub probabilities: Option<PathBuf>,
    /// Predictions of another tool, one label map per case: a folder, or a pattern with {case}.
    #[arg(long = "predictions", value_name = "DIR|PATTERN")]
    pub labels: Option<PathBuf>,
    /// What raters marked, for files of another tool: a dataset, or label maps alone, as a folder per rater or CASE_0, CASE_1, ….
    #[arg(long, value_name = "DIR|PATTERN")]
    pub raters: Option<PathBuf>,
}

impl OtherTool {
    /// Whether there is anything to convert.
    pub fn is_given(&self) -> bool {
        self.given().next().is_some()
    }

    /// The folders and patterns that are to be converted.
    pub fn given(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.samples, &self.probabilities, &self.labels].into_iter().flatten()
    }
}
