//! The arguments of the verbs that train and predict.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use ssn_data::Shard;
use ssn_eval::Part;

use super::device::DeviceChoice;
use super::evaluate::part;
use super::positive;

/// Makes a synthetic dataset with four raters, trains a deterministic, a diagonal and a low-rank network with the same
/// trunk on it, predicts the test cases, scores 100 samples of each, and draws some.
///
/// Every step is a command of its own, which is shown and can be repeated and changed.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "OUT/report/report.html shows the networks beside each other, OUT/report-low-rank/report.html \
                  what samples of one can do, OUT/samples.png a picture, OUT/scores.md the table. A demo that was stopped goes on where it was."
)]
pub struct DemoArgs {
    /// The folder for everything.
    #[arg(long, default_value = "demo")]
    pub out: PathBuf,

    /// The seed of the images and of training.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Images of the dataset: 60 % for training, 20 % for validation, 20 % for test.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub cases: u32,

    /// Change a setting of all three trainings, such as training.steps=1000; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,

    /// Where to compute: auto, cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}

/// Trains a network as a config says, or at once on a dataset with settings that suit it.
///
/// The folder of the run holds the config with everything filled in, metrics.csv, events for TensorBoard, log.txt and
/// the checkpoints. Ctrl-C, SIGTERM or SIGUSR1 finish the step, save, and end with 75; a second Ctrl-C ends at once.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Presets: general (data of your own), demo, lidc, lidc-as-coded, brats, brats-60mm. Examples:\n  \
                  ssn init DATASET && ssn train ssn.toml --out runs/first\n  \
                  ssn train --data DATASET --set training.steps=5000\n  \
                  ssn train --resume runs/first"
)]
pub struct TrainArgs {
    /// The config file; `ssn init DATASET` writes one.
    #[arg(required_unless_present_any = ["data", "resume"])]
    pub config: Option<PathBuf>,

    /// A dataset to train on without a config file; with --resume, where the dataset of the run lies now.
    #[arg(long, value_name = "DATASET", conflicts_with = "config")]
    pub data: Option<PathBuf>,

    /// The settings to start from, instead of those that the config names.
    #[arg(long)]
    pub preset: Option<String>,

    /// Change one setting, such as training.steps=1000 or model.head.stochastic.rank=5; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,

    /// The seed of first weights, batches and noise, instead of training.seed.
    #[arg(long)]
    pub seed: Option<u64>,

    /// The folder of the new run.
    #[arg(long, default_value = "run")]
    pub out: PathBuf,

    /// Go on with the run in this folder.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "run",
        conflicts_with_all = ["config", "preset", "settings", "seed", "out"]
    )]
    pub resume: Option<PathBuf>,

    /// Save and end with 75 after so many minutes.
    #[arg(long, value_name = "MINUTES", value_parser = positive)]
    pub time_limit: Option<f64>,

    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,

    /// Threads that prepare batches; they change no result. Without it 2, and for a GPU as many as there are CPU cores, up to 16.
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub workers: Option<u16>,

    /// Train on a dataset even if the check before finds problems, and do not check.
    #[arg(long)]
    pub skip_check: bool,
}

/// Predicts the cases of a dataset, or images of your own, with a trained network.
///
/// For each case it writes ID.ssn.safetensors, the distribution over segmentations of the whole image, which `ssn sample`
/// and `ssn evaluate` read, and ID_prediction.nii.gz, the label map of its mean on the grid of the image.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A prediction that was stopped goes on where it was: cases whose files are there are kept. Examples:\n  \
                  ssn predict runs/first\n  \
                  ssn predict runs/first patient1.nii.gz patient2.nii.gz --out predictions"
)]
pub struct PredictArgs {
    /// The folder of a run, or a bundle that `ssn export` made.
    pub model: PathBuf,

    /// What to predict: a dataset, a config (.toml), or images. Without it, the dataset of the run.
    pub data: Vec<PathBuf>,

    /// The part of the dataset; without it, test, and all of what is named on the command line.
    #[arg(long, value_parser = part())]
    pub split: Option<Part>,

    /// The folder to write to.
    #[arg(long, default_value = "predictions")]
    pub out: PathBuf,

    /// Which checkpoint of the run.
    #[arg(long, value_enum, default_value_t = Checkpoint::Best)]
    pub checkpoint: Checkpoint,

    /// How precisely the distribution is stored.
    #[arg(long, value_enum, default_value_t = Stored::HalfFactor)]
    pub precision: Stored,

    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,

    /// The size of tiles, D,H,W, for images that are too large to be computed at once.
    #[arg(long, value_name = "D,H,W", value_delimiter = ',', num_args = 1)]
    pub tile: Vec<usize>,

    /// Voxels that are computed at once; fewer need less memory. Without it 262144, and four times as many on a large GPU.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub voxels_at_once: Option<u32>,

    /// Samples of each case that a network draws whose every sample takes a pass (prob-unet, phiseg); of all others any number
    /// can be drawn afterwards.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,

    /// Also write the mean probabilities and the entropy of 100 samples.
    #[arg(long)]
    pub probabilities: bool,

    /// Also write mean, diagonal and factor as NIfTI, under the names of the authors' tool.
    #[arg(long)]
    pub nifti: bool,

    /// Predict cases again that are there already.
    #[arg(long)]
    pub overwrite: bool,

    /// Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes the index.
    /// Without it, the share that mpirun or srun gives this process, or all cases.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

/// Writes a trained network as one file that says everything about itself: weights, config, names of channels and classes,
/// scale of intensities, and where it came from.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// The folder of a run, or a bundle.
    pub model: PathBuf,

    /// The file to write [default: NAME.safetensors or NAME.pt, after the run].
    #[arg(long)]
    pub out: Option<PathBuf>,

    /// The format.
    #[arg(long, value_enum, default_value_t = ExportFormat::Safetensors)]
    pub format: ExportFormat,

    /// Which checkpoint of the run.
    #[arg(long, value_enum, default_value_t = Checkpoint::Best)]
    pub checkpoint: Checkpoint,

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
    Torchscript,
}

/// Which checkpoint of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checkpoint {
    /// The one with the best validation, or the last if there was none.
    Best,
    /// The last.
    Last,
}

/// How precisely numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stored {
    /// All in single precision.
    Single,
    /// The factor in half precision, the rest in single.
    HalfFactor,
    /// All in half precision.
    Half,
}
