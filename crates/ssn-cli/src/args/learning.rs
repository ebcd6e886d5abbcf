//! The arguments of the verbs that need libtorch.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use serde::{Deserialize, Serialize};
use ssn_data::{DeviceChoice, Normalization, Shard};
use ssn_eval::{Part, PredictionRule, StoredPrecision};

/// The arguments of `ssn demo`.
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

/// The arguments of `ssn train`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Presets: general (data of your own), small (a first look), lidc, lidc-as-coded, lidc-energy, brats, brats-60mm. Examples:\n  \
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

    /// Cross-validation: validate on fold K, counted from 0, and train on the others of data.split.folds, or of 5.
    #[arg(long, value_name = "K")]
    pub fold: Option<usize>,

    /// The folder of the new run.
    #[arg(long, default_value = "run")]
    pub out: PathBuf,

    /// Go on with the run in this folder.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "run",
        conflicts_with_all = ["config", "preset", "settings", "seed", "fold", "out"]
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

    /// Train without the cases in which the check before finds errors, instead of stopping.
    #[arg(long)]
    pub skip_check: bool,

    /// Go on with a run although images or labels of its dataset changed since it began.
    #[arg(long, requires = "resume")]
    pub allow_changed_data: bool,
}

/// The arguments of `ssn predict`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A prediction that was stopped goes on where it was: cases whose files are there are kept. Examples:\n  \
                  ssn predict runs/first\n  \
                  ssn predict runs/first patient1.nii.gz patient2.nii.gz --out predictions"
)]
pub struct PredictArgs {
    /// The folder of a run, or a bundle that `ssn export` or `ssn import` made.
    pub model: PathBuf,

    /// What to predict: a dataset, a config (.toml), or images. Without it, the dataset of the run.
    pub data: Vec<PathBuf>,

    /// A further run or bundle that predicts together with the first, as those of other folds or seeds: the samples of a case are
    /// shared among all. May be repeated.
    #[arg(long, value_name = "RUN")]
    pub ensemble: Vec<PathBuf>,

    /// The part of the dataset; without it, test, and all of what is named on the command line.
    #[arg(long)]
    pub split: Option<Part>,

    /// The folder to write to.
    #[arg(long, default_value = "predictions")]
    pub out: PathBuf,

    /// Which checkpoint of the run.
    #[arg(long, value_enum, default_value_t = Checkpoint::Best)]
    pub checkpoint: Checkpoint,

    /// How precisely the distribution is stored.
    #[arg(long, value_enum, default_value_t = StoredPrecision::HalfFactor)]
    pub precision: StoredPrecision,

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

    /// Which one segmentation is written: the labels of the mean logits, or of the marginal probabilities of 100 samples.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "mean|marginal")]
    pub prediction: PredictionRule,

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

/// The arguments of `ssn export`.
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

/// The arguments of `ssn toy`.
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
    #[arg(long = "precision", value_name = "PRECISION", default_value = "f64", action = ArgAction::Set)]
    #[arg(value_parser = PossibleValuesParser::new(["f32", "f64"]).map(|name| name == "f64"), hide_possible_values = true)]
    pub double: bool,

    /// The folder for figure and numbers.
    #[arg(long, default_value = "toy")]
    pub out: PathBuf,

    /// Replace the files of an earlier run.
    #[arg(long)]
    pub overwrite: bool,
}

/// The arguments of `ssn import`.
#[derive(Debug, Clone, Args)]
#[command(
    args_override_self = true,
    after_help = "`ssn predict` takes the model if its channels and classes have names. Example, for images that the authors' \
                  preprocessing wrote:\n  \
                  ssn import model.pt --channels flair,t1,t1ce,t2 --classes background,NET,oedema,enhancing\n  \
                  ssn predict model.safetensors data_index_test.csv --out predictions"
)]
pub struct ImportArgs {
    /// The authors' weights, a `.pt` file.
    pub weights: PathBuf,

    /// Names of the channels, in the order of training.
    #[arg(long, value_delimiter = ',', requires = "classes")]
    pub channels: Vec<String>,

    /// Names of the classes, the background first.
    #[arg(long, value_delimiter = ',', requires = "channels")]
    pub classes: Vec<String>,

    /// How intensities are normalized: none (they are in the files), z-score, brats (the rule of the paper's experiment), or a
    /// table as in configs, such as '{ kind = "scale", subtract = 0.5 }'.
    #[arg(long, default_value = "none", requires = "channels")]
    pub normalization: Normalization,

    /// The model file to write.
    #[arg(long, default_value = "model.safetensors")]
    pub out: PathBuf,

    /// Replace a file of that name.
    #[arg(long)]
    pub overwrite: bool,
}

/// The arguments of `ssn run-experiment`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "OUT/table.md is the table, OUT/results.json holds every figure of every run. An experiment that was \
                  stopped goes on with the same command: what is trained, predicted and scored is kept. Examples:\n  \
                  ssn run-experiment experiments/lidc.toml --reduced\n  \
                  ssn run-experiment experiments/lidc.toml --data lidc.pickle --device cuda\n  \
                  ssn run-experiment experiments/lidc.toml --data lidc.pickle --only low-rank --seeds 1"
)]
pub struct RunExperimentArgs {
    /// The experiment file.
    pub file: PathBuf,

    /// The dataset, instead of the one that the file names.
    #[arg(long, value_name = "DATASET")]
    pub data: Option<PathBuf>,

    /// The folder for everything [default: experiments-out/NAME, after the file].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Only the row of this name, or rows with this in their group and name; may be repeated. The table also has other rows that are finished.
    #[arg(long, value_name = "ROW")]
    pub only: Vec<String>,

    /// At most so many seeds of each row, the first of its list.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: Option<u16>,

    /// Change a setting of all trainings, such as training.steps=1000; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,

    /// A version that takes minutes, as the file describes it, on synthetic images unless --data names others.
    #[arg(long)]
    pub reduced: bool,

    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,

    /// Threads that prepare batches, as `ssn train` has them.
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub workers: Option<u16>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
        _ => Err("expected a positive number, such as 0.001".to_owned()),
    }
}
