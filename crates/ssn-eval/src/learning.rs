//! What the verbs that learn or predict are asked for: `ssn demo`, `toy`, `train`, `predict`, `export`, `import` and
//! `run-experiment`.
//!
//! The functions that do it need torch, and are in the crate `ssn`, which re-exports these types. They are stated here, so that the
//! command `ssn`, which has no torch, parses its arguments into them (feature `clap`).

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "clap")]
use clap::ArgAction;
#[cfg(feature = "clap")]
use clap::builder::{BoolValueParser, PossibleValuesParser, TypedValueParser};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_data::{DeviceChoice, Normalization, Shard};

#[cfg(feature = "clap")]
use crate::arguments::{count, minutes, name, positive, tile};
use crate::evaluation::Part;
use crate::predictions::{PredictionRule, StoredPrecision};

/// What the demo does.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DemoConfig {
    /// The folder for everything.
    #[cfg_attr(feature = "clap", arg(long, default_value = "demo"))]
    pub out: PathBuf,
    /// The seed of the images and of training.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0))]
    pub seed: u64,
    /// Images of the dataset: 60 % for training, 20 % for validation, 20 % for test.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 500, value_parser = count(20..=100_000)))]
    pub cases: usize,
    /// Changed settings of all three trainings, such as `training.steps=1000`.
    #[cfg_attr(feature = "clap", arg(long = "set", value_name = "KEY=VALUE"))]
    #[cfg_attr(
        feature = "clap",
        arg(help = "Change a setting of all three trainings, such as training.steps=1000; may be repeated")
    )]
    pub settings: Vec<String>,
    /// Where to compute: auto, cpu, cuda, or cuda:N for another GPU than the first.
    #[cfg_attr(feature = "clap", arg(long, default_value_t))]
    pub device: DeviceChoice,
}

/// What is trained, on what, and where.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TrainConfig {
    /// The config file; `ssn init DATASET` writes one.
    #[cfg_attr(feature = "clap", arg(required_unless_present_any = ["data", "resume"]))]
    pub config: Option<PathBuf>,
    /// A dataset to train on without a config file; with `resume`, where the dataset of the run lies now.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DATASET", conflicts_with = "config"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "A dataset to train on without a config file; with --resume, where the dataset of the run lies now"
        )
    )]
    pub data: Option<PathBuf>,
    /// The settings to start from, instead of those that the config names.
    #[cfg_attr(feature = "clap", arg(long))]
    pub preset: Option<String>,
    /// Changed settings, such as `training.steps=1000` or `model.head.stochastic.rank=5`.
    #[cfg_attr(feature = "clap", arg(long = "set", value_name = "KEY=VALUE"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "Change one setting, such as training.steps=1000 or model.head.stochastic.rank=5; may be repeated"
        )
    )]
    pub settings: Vec<String>,
    /// The seed of first weights, batches and noise, instead of training.seed.
    #[cfg_attr(feature = "clap", arg(long))]
    pub seed: Option<u64>,
    /// Cross-validation: validate on fold K, counted from 0, and train on the others of data.split.folds, or of 5.
    #[cfg_attr(feature = "clap", arg(long, value_name = "K"))]
    pub fold: Option<usize>,
    /// The folder of the new run.
    #[cfg_attr(feature = "clap", arg(long, default_value = "run"))]
    pub out: PathBuf,
    /// Go on with the run in this folder; only `data`, `time_limit`, `device`, `workers` and `allow_changed_data` count then.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            help = "Go on with the run in this folder",
            value_name = "RUN",
            num_args = 0..=1,
            default_missing_value = "run",
            conflicts_with_all = ["config", "preset", "settings", "seed", "fold", "out"]
        )
    )]
    pub resume: Option<PathBuf>,
    /// Save and end after this time.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MINUTES", value_parser = minutes))]
    #[cfg_attr(feature = "clap", arg(help = "Save and end with 75 after so many minutes"))]
    pub time_limit: Option<Duration>,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[cfg_attr(feature = "clap", arg(long, default_value_t))]
    pub device: DeviceChoice,
    /// Threads that prepare batches; they change no result. Without it 2, and for a GPU as many as there are CPU cores, up to 16.
    #[cfg_attr(feature = "clap", arg(long, value_parser = count(0..=256)))]
    pub workers: Option<usize>,
    /// What happens to cases that cannot be used.
    #[cfg_attr(feature = "clap", arg(long = "skip-check", action = ArgAction::SetTrue, value_parser = skip_check()))]
    #[cfg_attr(
        feature = "clap",
        arg(help = "Train without the cases in which the check before finds errors, instead of stopping")
    )]
    pub bad_cases: BadCases,
    /// Go on with a run although images or labels of its dataset changed since it began.
    #[cfg_attr(feature = "clap", arg(long, requires = "resume"))]
    pub allow_changed_data: bool,
}

/// What training does about cases that cannot be used: files that are damaged or missing, labels of no class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadCases {
    /// All cases are checked before, and training does not begin if one cannot be used.
    #[default]
    Refuse,
    /// All cases are checked before, and those that cannot be used are left out.
    LeaveOut,
    /// Nothing is checked, because that was done.
    Unchecked,
}

#[cfg(feature = "clap")]
fn skip_check() -> impl TypedValueParser<Value = BadCases> {
    BoolValueParser::new().map(|skip| if skip { BadCases::LeaveOut } else { BadCases::Refuse })
}

impl TrainConfig {
    fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            config: None,
            data: None,
            preset: None,
            settings: vec![],
            seed: None,
            fold: None,
            out: out.into(),
            resume: None,
            time_limit: None,
            device: DeviceChoice::Auto,
            workers: None,
            bad_cases: BadCases::Refuse,
            allow_changed_data: false,
        }
    }

    /// A new run as a config file says.
    pub fn from_file(config: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self { config: Some(config.into()), ..Self::new(out) }
    }

    /// A new run on a dataset, with settings that suit it.
    pub fn from_data(data: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::new(out) }
    }

    /// The rest of a run.
    pub fn resume(run: impl Into<PathBuf>) -> Self {
        let run = run.into();
        Self { resume: Some(run.clone()), ..Self::new(run) }
    }
}

/// What is predicted, with which network, and what is written.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PredictConfig {
    /// The folder of a run, or a bundle that `ssn export` or `ssn import` made.
    pub model: PathBuf,
    /// What to predict: a dataset, a config (.toml), or images. Without it, the dataset of the run.
    pub data: Vec<PathBuf>,
    /// Further runs or bundles that predict together with the first, as those of other folds or seeds: the samples of a case are
    /// shared among all.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RUN"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "A further run or bundle that predicts together with the first, as those of other folds or seeds: the samples of a case are shared among all. May be repeated"
        )
    )]
    pub ensemble: Vec<PathBuf>,
    /// The part of the dataset; without it, test of the dataset of the run, and all of `data`.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            help = "The part of the dataset; without it, test, and all of what is named on the command line"
        )
    )]
    pub split: Option<Part>,
    /// The folder to write to.
    #[cfg_attr(feature = "clap", arg(long, default_value = "predictions"))]
    pub out: PathBuf,
    /// Which checkpoint of the run.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = CheckpointChoice::Best))]
    pub checkpoint: CheckpointChoice,
    /// How precisely the distribution is stored.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = StoredPrecision::HalfFactor))]
    pub precision: StoredPrecision,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[cfg_attr(feature = "clap", arg(long, default_value_t))]
    pub device: DeviceChoice,
    /// The size of tiles `[d, h, w]`, for images that are too large to be computed at once.
    #[cfg_attr(feature = "clap", arg(long, value_name = "D,H,W", value_parser = tile))]
    #[cfg_attr(
        feature = "clap",
        arg(help = "The size of tiles, D,H,W, for images that are too large to be computed at once")
    )]
    pub tile: Option<[usize; 3]>,
    /// Voxels that are computed at once; fewer need less memory. Without it 262144, and four times as many on a large GPU.
    #[cfg_attr(feature = "clap", arg(long, value_parser = count(1..=u32::MAX)))]
    pub voxels_at_once: Option<usize>,
    /// Samples of each case that a network draws whose every sample takes a pass (prob-unet, phiseg); of all others any number
    /// can be drawn afterwards.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 100, value_parser = count(1..=100_000)))]
    pub samples: usize,
    /// Which one segmentation is written: the labels of the mean logits, or of the marginal probabilities of 100 samples.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "mean|marginal")
    )]
    pub prediction: PredictionRule,
    /// Also write the mean probabilities and the entropy of 100 samples.
    #[cfg_attr(feature = "clap", arg(long))]
    pub probabilities: bool,
    /// Also write mean, diagonal and factor as NIfTI, under the names of the authors' tool.
    #[cfg_attr(feature = "clap", arg(long))]
    pub nifti: bool,
    /// Predict cases again that are there already.
    #[cfg_attr(feature = "clap", arg(long))]
    pub overwrite: bool,
    /// The share of the cases that is predicted; without it, all.
    #[cfg_attr(feature = "clap", arg(long, value_name = "I/N"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes \
                    the index. Without it, the share that mpirun or srun gives this process, or all cases"
        )
    )]
    pub shard: Option<Shard>,
}

impl PredictConfig {
    /// The test cases of a run's dataset, with its best checkpoint.
    pub fn new(model: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            data: vec![],
            ensemble: vec![],
            split: None,
            out: out.into(),
            checkpoint: CheckpointChoice::Best,
            precision: StoredPrecision::HalfFactor,
            device: DeviceChoice::Auto,
            tile: None,
            voxels_at_once: None,
            samples: 100,
            prediction: PredictionRule::Mean,
            probabilities: false,
            nifti: false,
            overwrite: false,
            shard: None,
        }
    }
}

/// Which checkpoint of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointChoice {
    /// The one with the best validation, or the last if there was none.
    Best,
    /// The last.
    Last,
}

/// Which network is made one file of, and which file.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ExportConfig {
    /// The folder of a run, or a bundle.
    pub model: PathBuf,
    /// The file to write; without it, NAME.safetensors or NAME.pt, after the run.
    #[cfg_attr(
        feature = "clap",
        arg(long, help = "The file to write [default: NAME.safetensors or NAME.pt, after the run]")
    )]
    pub out: Option<PathBuf>,
    /// The format.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = ExportFormat::Safetensors))]
    pub format: ExportFormat,
    /// Which checkpoint of the run.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = CheckpointChoice::Best))]
    pub checkpoint: CheckpointChoice,
    /// Replace a file of that name.
    #[cfg_attr(feature = "clap", arg(long))]
    pub overwrite: bool,
}

/// What a network is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ExportFormat {
    /// A bundle of ours.
    Safetensors,
    /// TorchScript: from an image [1, c, d, h, w] of the size of training patches to rows of mean, diagonal and factor.
    #[cfg_attr(feature = "clap", value(name = "torchscript"))]
    TorchScript,
}

/// Which weights of the authors' code are made a model file of, and what they do not say about their images.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ImportConfig {
    /// The authors' weights, a `.pt` file.
    pub weights: PathBuf,
    /// Names of the channels, in the order of training.
    #[cfg_attr(feature = "clap", arg(long, value_delimiter = ',', value_parser = name, requires = "classes"))]
    pub channels: Vec<String>,
    /// Names of the classes, the background first.
    #[cfg_attr(feature = "clap", arg(long, value_delimiter = ',', value_parser = name, requires = "channels"))]
    pub classes: Vec<String>,
    /// How intensities are normalized; the model file has it beside the names, and neither without them.
    #[cfg_attr(feature = "clap", arg(long, default_value = "none", requires = "channels"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "How intensities are normalized: none (they are in the files), z-score, brats (the rule of the paper's experiment), \
                    or a table as in configs, such as '{ kind = \"scale\", subtract = 0.5 }'"
        )
    )]
    pub normalization: Normalization,
    /// The model file to write.
    #[cfg_attr(feature = "clap", arg(long, default_value = "model.safetensors"))]
    pub out: PathBuf,
    /// Replace a file of that name.
    #[cfg_attr(feature = "clap", arg(long))]
    pub overwrite: bool,
}

/// How the toy problem is solved, and where the result goes.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ToyProblem {
    /// Train this many times, with `seed` and those after it.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000)))]
    #[cfg_attr(feature = "clap", arg(help = "Train this many times, with the seeds SEED, SEED + 1, …"))]
    pub seeds: u32,
    /// The first seed; the same seed gives the same numbers.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0))]
    pub seed: u64,
    /// Training steps, pre-training included (the paper: 10000).
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..)))]
    pub steps: u32,
    /// The first steps, which train the mean alone.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 5_000))]
    pub pretrain: u32,
    /// What is minimized after that: likelihood (the paper's loss) or energy.
    #[cfg_attr(feature = "clap", arg(long, value_enum, hide_possible_values = true, default_value_t))]
    pub loss: LossKind,
    /// Monte-Carlo samples per label map in each step.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000)))]
    pub samples: u32,
    /// Samples per label map for the log-likelihood at the end.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000)))]
    pub eval_samples: u32,
    /// The learning rate of Adam.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 1e-3, value_parser = positive))]
    pub learning_rate: f64,
    /// Double precision instead of single.
    #[cfg_attr(feature = "clap", arg(long = "precision", value_name = "PRECISION", default_value = "f64"))]
    #[cfg_attr(feature = "clap", arg(action = ArgAction::Set, value_parser = precision(), hide_possible_values = true))]
    #[cfg_attr(feature = "clap", arg(help = "The precision of all computation, f32 or f64"))]
    pub double: bool,
    /// The folder for figure and numbers.
    #[cfg_attr(feature = "clap", arg(long, default_value = "toy"))]
    pub out: PathBuf,
    /// Replace the files of an earlier run.
    #[cfg_attr(feature = "clap", arg(long))]
    pub overwrite: bool,
}

#[cfg(feature = "clap")]
fn precision() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["f32", "f64"]).map(|name| name == "f64")
}

impl ToyProblem {
    /// One seed, with the settings that reach the optimum.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            seeds: 1,
            seed: 0,
            steps: 20_000,
            pretrain: 5_000,
            loss: LossKind::Likelihood,
            samples: 200,
            eval_samples: 100_000,
            learning_rate: 1e-3,
            double: true,
            out: out.into(),
            overwrite: false,
        }
    }
}

/// What is minimized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// The negative log-likelihood of the targets by Monte-Carlo integration: the paper's loss.
    #[default]
    Likelihood,
    /// The energy distance between soft samples and the targets: what GED² measures. With `batches.patch.rater` = `all`,
    /// samples are compared with all raters at once.
    Energy,
}

/// What is done of an experiment file, and where.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ExperimentConfig {
    /// The experiment file.
    pub file: PathBuf,
    /// The dataset, instead of the one that the file names.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DATASET"))]
    pub data: Option<PathBuf>,
    /// The folder for everything; without it, experiments-out/NAME, after the file.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    #[cfg_attr(
        feature = "clap",
        arg(help = "The folder for everything [default: experiments-out/NAME, after the file]")
    )]
    pub out: Option<PathBuf>,
    /// Only the rows of these names, or with one of them in their group and name. The table also has other rows that are finished.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ROW"))]
    #[cfg_attr(
        feature = "clap",
        arg(
            help = "Only the row of this name, or rows with this in their group and name; may be repeated. The table also has other rows that are finished"
        )
    )]
    pub only: Vec<String>,
    /// At most so many seeds of each row, the first of its list.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count(1..=65_535)))]
    pub seeds: Option<usize>,
    /// Changed settings of all trainings, such as `training.steps=1000`.
    #[cfg_attr(feature = "clap", arg(long = "set", value_name = "KEY=VALUE"))]
    #[cfg_attr(
        feature = "clap",
        arg(help = "Change a setting of all trainings, such as training.steps=1000; may be repeated")
    )]
    pub settings: Vec<String>,
    /// A version that takes minutes, as the file describes it, on synthetic images unless `data` names others.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            help = "A version that takes minutes, as the file describes it, on synthetic images unless --data names others"
        )
    )]
    pub reduced: bool,
    /// Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:N for another GPU than the first.
    #[cfg_attr(feature = "clap", arg(long, default_value_t))]
    pub device: DeviceChoice,
    /// Threads that prepare batches, as [`TrainConfig::workers`].
    #[cfg_attr(feature = "clap", arg(long, value_parser = count(0..=256)))]
    #[cfg_attr(feature = "clap", arg(help = "Threads that prepare batches, as `ssn train` has them"))]
    pub workers: Option<usize>,
}

impl ExperimentConfig {
    /// All of an experiment file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            data: None,
            out: None,
            only: vec![],
            seeds: None,
            settings: vec![],
            reduced: false,
            device: DeviceChoice::Auto,
            workers: None,
        }
    }
}
