//! Arguments of `ssn sample`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, value_parser};

use crate::parsers::{named_weight, numbered_weight, weight};

/// What is drawn, and how it is written.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SampleConfig {
    /// Distribution files (.ssn.safetensors), or folders of them.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub inputs: Vec<PathBuf>,
    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How many samples to draw of each case.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub samples: u64,
    /// The seed; sample I of a seed and a case is always the same.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,
    /// The number of the first sample.
    #[arg(long, default_value_t = 0, value_name = "I", value_parser = value_parser!(u64).range(0..=1 << 53))]
    pub first: u64,
    /// The scale of all noise: 0 gives the prediction, more than 1 exaggerates.
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = weight)]
    pub temperature: Option<f32>,
    /// The scale of the noise of one class; -3 to 3 in the paper. May be repeated.
    #[arg(long = "class-scale", value_name = "NAME=X", value_parser = named_weight)]
    pub class_scales: Vec<(String, f32)>,
    /// The weight of one column of the factor, counted from 0: of `ssn predict`, the modes of variation, the strongest first. May
    /// be repeated.
    #[arg(long = "mode-weight", value_name = "K=X", value_parser = numbered_weight)]
    pub mode_weights: Vec<(usize, f32)>,
    /// Whether samples have the independent noise of voxels.
    #[arg(long = "no-diagonal-noise", action = ArgAction::SetFalse)]
    #[arg(help = "Leave out the independent noise of voxels")]
    pub diagonal_noise: bool,
    /// Write the mean of the samples' probabilities, a channel per class.
    #[arg(long)]
    pub probabilities: bool,
    /// Write the entropy of these probabilities, 0 to 1.
    #[arg(long)]
    pub entropy: bool,
    /// The format of the files: nii.gz, nrrd, mha, seg.nrrd for label maps with the names of the classes (3D Slicer), or png for label maps of pictures. Unless it is given, label maps of PNG, JPEG and TIFF
    /// files are png, and everything else is nii.gz.
    #[arg(long, hide_possible_values = true)]
    pub format: Option<MapFormat>,
    /// Replace files that are there already.
    #[arg(long)]
    pub overwrite: bool,
}

impl SampleConfig {
    /// Ten samples of each case as label maps.
    pub fn new(inputs: Vec<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            inputs,
            out: out.into(),
            samples: 10,
            seed: 0,
            first: 0,
            temperature: None,
            class_scales: vec![],
            mode_weights: vec![],
            diagonal_noise: true,
            probabilities: false,
            entropy: false,
            format: None,
            overwrite: false,
        }
    }

    /// Whether anything is asked for that a network without noise does not have.
    pub fn steers(&self) -> bool {
        let scales = !self.class_scales.is_empty() || !self.mode_weights.is_empty();
        self.temperature.is_some() || scales || !self.diagonal_noise
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
    /// Segmentation of 3D Slicer: label maps with the names of the classes.
    #[value(name = "seg.nrrd")]
    SegNrrd,
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
            Self::SegNrrd => ".seg.nrrd",
            Self::Mha => ".mha",
            Self::Png => ".png",
        }
    }
}
