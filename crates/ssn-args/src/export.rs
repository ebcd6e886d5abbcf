//! Arguments of `ssn export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::checkpoint::CheckpointChoice;

/// Which network is made one file of, and which file.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ExportConfig {
    /// The folder of a run, or a bundle.
    pub model: PathBuf,
    /// The file to write; without it, NAME.safetensors or NAME.pt, after the run.
    #[arg(long, help = "The file to write [default: NAME.safetensors or NAME.pt, after the run]")]
    pub out: Option<PathBuf>,
    /// The format.
    #[arg(long, value_enum, default_value_t = ExportFormat::Safetensors)]
    pub format: ExportFormat,
    /// Which checkpoint of the run.
    #[arg(long, value_enum, default_value_t = CheckpointChoice::Best)]
    pub checkpoint: CheckpointChoice,
    /// Replace a file of that name.
    #[arg(long)]
    pub overwrite: bool,
}

/// What a network is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A bundle of ours.
    Safetensors,
    /// TorchScript: from an image [1, c, d, h, w] of the size of training patches to rows of mean, diagonal and factor.
    #[value(name = "torchscript")]
    TorchScript,
}
