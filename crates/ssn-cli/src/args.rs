//! What the user may type.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Stochastic segmentation networks: one forward pass, any number of coherent segmentations.
#[derive(Debug, Parser)]
#[command(name = "ssn", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Start with `ssn toy`: it trains two small models in seconds and draws what they learnt."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,

    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
}

/// The heading of the options that are not a verb's own.
const EVERY_VERB: &str = "Options of every verb";

/// Options that every verb understands.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print the result as JSON on standard output.
    #[arg(long, global = true, help_heading = EVERY_VERB)]
    pub json: bool,

    /// Show no progress.
    #[arg(short, long, global = true, help_heading = EVERY_VERB)]
    pub quiet: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Learn the paper's toy problem: two label maps of 21 pixels, with and without correlation.
    Toy(ToyArgs),
    /// Look at a dataset, say what it is, and write a commented config for it.
    Init(InitArgs),
    /// Find every problem of a dataset at once, and show its figures.
    Check(CheckArgs),
    /// Prepare a dataset of the paper for training.
    #[command(subcommand)]
    Prepare(PrepareArgs),
    /// Train a network on a dataset; stopped at any time, it goes on with --resume.
    Train(TrainArgs),
    /// Predict whole images: a distribution file and a label map per case.
    Predict(PredictArgs),
    /// Make a model file of weights that were trained with the authors' PyTorch code.
    Import(ImportArgs),
    /// Show versions, processors and GPUs, where libtorch is, and what CUDA lacks.
    Info,
}

/// The toy problem: a low-rank and a diagonal distribution learn two equally probable label maps.
///
/// Only the low-rank model can know that the seven pixels in the middle switch together.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
#[command(after_help = "The figure is OUT/toy.svg and OUT/toy.png, the numbers are in OUT/toy.json.")]
pub struct ToyArgs {
    /// Train this many times, with the seeds SEED, SEED + 1, …
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,

    /// The first seed; the same seed gives the same numbers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Training steps, pre-training included (the paper: 10000).
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: u32,

    /// The first steps, which train the mean alone.
    #[arg(long, default_value_t = 5_000)]
    pub pretrain: u32,

    /// Monte-Carlo samples per label map in each step.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub samples: u32,

    /// Samples per label map for the log-likelihood at the end.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub eval_samples: u32,

    /// The learning rate of Adam.
    #[arg(long, default_value_t = 1e-3, value_parser = positive)]
    pub learning_rate: f64,

    /// The precision of all computation, f32 or f64.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Precision::F64)]
    pub precision: Precision,

    /// The folder for figure and numbers.
    #[arg(long, default_value = "toy")]
    pub out: PathBuf,

    /// Replace the files of an earlier run.
    #[arg(long)]
    pub overwrite: bool,
}

/// Looks at a folder or file, recognises the layout of the dataset, and writes a commented config.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Recognised are nnU-Net, Medical Segmentation Decathlon and QUBIQ folders, CSV indices, the \
                  LIDC pickles, HDF5, PNG and JPEG folders, a folder per case, and images/ beside labels/. \
                  See docs/reference/datasets.md."
)]
pub struct InitArgs {
    /// The folder or file of the dataset.
    pub dataset: PathBuf,

    /// The config file to write.
    #[arg(long, default_value = "ssn.toml")]
    pub out: PathBuf,

    /// Replace a config that is there already.
    #[arg(long)]
    pub overwrite: bool,
}

/// Reads every case of a dataset and lists what is wrong: unreadable files, missing channels, values that are
/// not finite, labels of no class, sizes and places that differ, empty masks, duplicates, patients in two
/// splits.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Ends with 0 if there are no problems, 1 if there are, and 65 if this is no dataset.")]
pub struct CheckArgs {
    /// The folder or file of a dataset, or a config (.toml) that names one.
    pub dataset: PathBuf,
}

/// The datasets that can be prepared.
#[derive(Debug, Clone, Subcommand)]
pub enum PrepareArgs {
    /// BraTS: labels 0 to 3, a brain mask, normalised channels, and CSV files for training, validation, test.
    Brats(BratsArgs),
    /// LIDC in any of its layouts: one file that loads fast.
    Lidc(LidcArgs),
}

/// Prepares BraTS as the paper does.
#[derive(Debug, Clone, Args)]
#[command(after_help = "A run that was stopped goes on where it was: cases whose files are there are kept.")]
pub struct BratsArgs {
    /// The folder of the dataset, with a folder per case.
    pub dataset: PathBuf,

    /// The folder to write to.
    #[arg(long, default_value = "brats")]
    pub out: PathBuf,

    /// The seed of the split (60 % training, 10 % validation, 30 % test).
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Prepare cases again that are there already.
    #[arg(long)]
    pub overwrite: bool,
}

/// Writes all slices and masks into one file.
#[derive(Debug, Clone, Args)]
pub struct LidcArgs {
    /// The pickle, HDF5 file or folder of the dataset.
    pub dataset: PathBuf,

    /// The file to write; its name ends in .cache.safetensors.
    #[arg(long, default_value = "lidc.cache.safetensors")]
    pub out: PathBuf,

    /// Replace a file that is there already.
    #[arg(long)]
    pub overwrite: bool,
}

/// Trains a network as a config says, or at once on a dataset with settings that suit it.
///
/// The folder of the run holds the config with everything filled in, metrics.csv, events for TensorBoard, log.txt and
/// the checkpoints. Ctrl-C, SIGTERM or SIGUSR1 finish the step, save, and end with 75; a second signal ends at once.
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

    /// A dataset to train on without a config file.
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
        conflicts_with_all = ["config", "data", "preset", "settings", "seed", "out"]
    )]
    pub resume: Option<PathBuf>,

    /// Save and end with 75 after so many minutes.
    #[arg(long, value_name = "MINUTES", value_parser = positive)]
    pub time_limit: Option<f64>,

    /// Threads that prepare batches; they change no result.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub workers: u16,

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

    /// The part of the dataset; without it, test if the dataset is divided, or all.
    #[arg(long, value_enum)]
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

    /// The size of tiles, D,H,W, for images that are too large to be computed at once.
    #[arg(long, value_name = "D,H,W", value_delimiter = ',', num_args = 1)]
    pub tile: Vec<usize>,

    /// Voxels that are computed at once; fewer need less memory.
    #[arg(long, default_value_t = 1 << 18, value_parser = clap::value_parser!(u32).range(1..))]
    pub voxels_at_once: u32,

    /// Also write the mean probabilities and the entropy of 100 samples.
    #[arg(long)]
    pub probabilities: bool,

    /// Also write mean, diagonal and factor as NIfTI, under the names of the authors' tool.
    #[arg(long)]
    pub nifti: bool,

    /// Predict cases again that are there already.
    #[arg(long)]
    pub overwrite: bool,
}

/// A part of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Cases to learn from.
    Train,
    /// Cases to choose by.
    Validation,
    /// Cases for the final figures.
    Test,
    /// All cases.
    All,
}

/// Which checkpoint of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

/// Reads a `.pt` file of the authors' DeepMedic, deterministic or stochastic, and writes it as a model of ours.
///
/// The network is read off the names and shapes of the weights. The pickle inside the file is read as data; nothing of
/// it is executed.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ImportArgs {
    /// The authors' weights, a `.pt` file.
    pub weights: PathBuf,

    /// The model file to write.
    #[arg(long, default_value = "model.safetensors")]
    pub out: PathBuf,

    /// Replace a file of that name.
    #[arg(long)]
    pub overwrite: bool,
}

/// Floating-point precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
        _ => Err("expected a positive number, such as 0.001".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
