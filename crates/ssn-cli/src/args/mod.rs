//! What the user may type.

mod device;
mod evaluate;
mod experiment;
mod learning;
mod report;
mod sample;
mod view;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub use device::DeviceChoice;
pub use evaluate::EvaluateArgs;
pub use experiment::RunExperimentArgs;
pub use learning::{Checkpoint, DemoArgs, ExportArgs, ExportFormat, PredictArgs, Stored, TrainArgs};
pub use report::ReportArgs;
pub use sample::SampleArgs;
use ssn_data::Shard;
pub use view::ViewArgs;

/// Stochastic segmentation networks: one forward pass, any number of coherent segmentations.
#[derive(Debug, Parser)]
#[command(name = "ssn", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Start with `ssn demo`: it needs no data and shows the whole way in a few minutes.")]
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
    /// Show everything in a few minutes: train three small networks on synthetic images, sample and compare them.
    Demo(DemoArgs),
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
    /// Draw segmentations from the distributions that a network predicted; the network is not needed.
    Sample(SampleArgs),
    /// Score predictions against the raters of their dataset.
    Evaluate(EvaluateArgs),
    /// Train, predict and score every row of an experiment file, and write a table like the paper's.
    RunExperiment(RunExperimentArgs),
    /// Show predictions or runs in one HTML file: scores, curves, samples, modes, best and worst cases.
    Report(ReportArgs),
    /// Steer predicted distributions in the browser, or make a page of them that works without a server.
    View(ViewArgs),
    /// Make one file of a trained network: a bundle for `ssn predict`, or TorchScript for other programs.
    Export(ExportArgs),
    /// Make a model file of weights that were trained with the authors' PyTorch code.
    Import(ImportArgs),
    /// Show versions, CPU and GPUs, where libtorch is, and what CUDA lacks.
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

    /// What is minimized after that: likelihood (the paper's loss) or energy.
    #[arg(long, default_value = "likelihood", hide_possible_values = true, value_parser = ["likelihood", "energy"])]
    pub loss: String,

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

/// Looks at a folder or file, recognizes the layout of the dataset, and writes a commented config.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Recognized are nnU-Net, Medical Segmentation Decathlon and QUBIQ folders, CSV indices, the \
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
    /// BraTS: labels 0 to 3, a brain mask, normalized channels, and CSV files for training, validation, test.
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

    /// Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes CSV files and config.
    /// Without it, the share that mpirun or srun gives this process, or all cases.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
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
