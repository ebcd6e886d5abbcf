//! What the user may type.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use ssn_args::{
    DemoConfig, EvaluateConfig, ExperimentConfig, ExportConfig, ImportConfig, PredictConfig, ReportConfig,
    SampleConfig, ToyProblem, TrainConfig,
};
use ssn_data::Shard;
use ssn_eval::ErrorKind;

use crate::exit::Failure;

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
    #[command(
        after_help = "OUT/report/report.html shows the networks beside each other, OUT/report-low-rank/report.html \
                      what samples of one can do, OUT/samples.png a picture, OUT/scores.md the table. A demo that was stopped goes on where it was."
    )]
    Demo(DemoConfig),
    /// Learn the paper's toy problem: two label maps of 21 pixels, with and without correlation.
    #[command(
        args_override_self = true,
        after_help = "The figure is OUT/toy.svg and OUT/toy.png, the numbers are in OUT/toy.json."
    )]
    Toy(ToyProblem),
    /// Look at a dataset, say what it is, and write a commented config for it.
    Init(InitArgs),
    /// Find every problem of a dataset at once, and show its figures.
    Check(CheckArgs),
    /// Prepare a dataset of the paper for training.
    #[command(subcommand)]
    Prepare(PrepareArgs),
    /// Train a network on a dataset; stopped at any time, it goes on with --resume.
    #[command(
        after_help = "Presets: general (data of your own), small (a first look), lidc, lidc-as-coded, lidc-energy, brats, brats-60mm. Examples:\n  \
                      ssn init DATASET && ssn train ssn.toml --out runs/first\n  \
                      ssn train --data DATASET --set training.steps=5000\n  \
                      ssn train --resume runs/first"
    )]
    Train(TrainConfig),
    /// Predict whole images: a distribution file and a label map per case.
    #[command(
        after_help = "A prediction that was stopped goes on where it was: cases whose files are there are kept. Examples:\n  \
                      ssn predict runs/first\n  \
                      ssn predict runs/first patient1.nii.gz patient2.nii.gz --out predictions"
    )]
    Predict(PredictConfig),
    /// Draw segmentations from the distributions that a network predicted; the network is not needed.
    #[command(
        after_help = "η = μ + T·w_c·(Σ_q g_q·ε_q·P_q + √D·ε): T is --temperature, w_c a --class-scale, g_q a \
                      --mode-weight. The noise ε of a sample stays what it is, so that only what is steered changes.\n\
                      OUT/samples.csv has the volume of every class in every sample. Of a deterministic network, every \
                      voxel draws its label by itself, which shows the grain that the correlations take away. Of a network \
                      that draws samples itself, those in its file are written, whatever the seed."
    )]
    Sample(SampleConfig),
    /// Score predictions against the raters of their dataset.
    #[command(
        after_help = "Writes OUT/cases.csv, a row per case, and OUT/summary.json, and prints means with standard errors; \
                      docs/reference/metrics.md defines every score. A run that was stopped goes on where it was: \
                      cases whose prediction and settings are the same are not scored again."
    )]
    Evaluate(EvaluateArgs),
    /// Train, predict and score every row of an experiment file, and write a table like the paper's.
    #[command(
        after_help = "OUT/table.md is the table, OUT/results.json holds every figure of every run. An experiment that was \
                      stopped goes on with the same command: what is trained, predicted and scored is kept. Examples:\n  \
                      ssn run-experiment experiments/lidc.toml --reduced\n  \
                      ssn run-experiment experiments/lidc.toml --data lidc.pickle --device cuda\n  \
                      ssn run-experiment experiments/lidc.toml --data lidc.pickle --only low-rank --seeds 1"
    )]
    RunExperiment(ExperimentConfig),
    /// Show predictions or runs in one HTML file: scores, curves, samples, modes, best and worst cases.
    #[command(
        after_help = "Writes OUT/report.html and OUT/figures. Scores are those of `ssn evaluate`, where it was run before. The \
                      same input gives the same bytes. docs/reference/report.md tells what every figure shows. Examples:\n  \
                      ssn report predictions\n  \
                      ssn report runs/first\n  \
                      ssn report predictions/rank-2 predictions/rank-10 runs/rank-10 --out comparison"
    )]
    Report(ReportConfig),
    /// Steer predicted distributions in the browser, or make a page of them that works without a server.
    View(ViewArgs),
    /// Make one file of a trained network: a bundle for `ssn predict`, or TorchScript for other programs.
    Export(ExportConfig),
    /// Make a model file of weights that were trained with the authors' PyTorch code.
    #[command(
        args_override_self = true,
        after_help = "`ssn predict` takes the model if its channels and classes have names. Example, for images that the authors' \
                      preprocessing wrote:\n  \
                      ssn import model.pt --channels flair,t1,t1ce,t2 --classes background,NET,oedema,enhancing\n  \
                      ssn predict model.safetensors data_index_test.csv --out predictions"
    )]
    Import(ImportConfig),
    /// Show versions, CPU and GPUs, where libtorch is, and what CUDA lacks.
    Info,
    /// Answer requests of another program, as of the Python package.
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// The arguments of the worker.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// The pipe that replies go to.
    pub replies: PathBuf,
}

/// Returns the sentence of an error of arguments, without the usage that follows it on a terminal.
pub fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// The evaluation, and this process's share of it.
#[derive(Debug, Clone, Args)]
pub struct EvaluateArgs {
    /// What is scored.
    #[command(flatten)]
    config: EvaluateConfig,

    /// How many samples to draw of each case [default: 100]; or label maps of samples that another tool drew: a folder, or a
    /// pattern such as 'out/{case}_{sample}.nii.gz'.
    #[arg(long, value_name = "N|DIR|PATTERN")]
    samples: Option<String>,

    /// Work on share I of N of the cases: N processes, on any machines, do all of them, and the last to finish writes the table.
    /// Without it, the share that mpirun or srun gives this process, or all cases.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

impl EvaluateArgs {
    /// What is scored, with the samples that are named.
    pub fn config(&self) -> Result<EvaluateConfig, Failure> {
        let mut config = self.config.clone();
        match self.samples.as_deref().map(|text| (text, text.parse::<usize>())) {
            None => {}
            Some((_, Ok(count @ 1..=MOST_SAMPLES))) => config.samples = count,
            Some((text, Ok(_))) => {
                let message =
                    format!("--samples {text}: it must be 1 to {MOST_SAMPLES}, a folder or a pattern");
                return Err(Failure::new(ErrorKind::Usage, message));
            }
            Some((text, Err(_))) => config.other.samples = Some(PathBuf::from(text)),
        }
        Ok(config)
    }
}

/// The most samples that are drawn of each case.
const MOST_SAMPLES: usize = 100_000;

/// Looks at a folder or file, recognizes the layout of the dataset, and writes a commented config.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Recognized are nnU-Net, Medical Segmentation Decathlon, MONAI, BIDS and QUBIQ folders, CSV \
                  indices, the LIDC pickles, HDF5, PNG and JPEG folders, a folder per case, and images/ beside \
                  labels/ or beside a folder per rater. See docs/reference/datasets.md."
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

/// The arguments of `ssn check`.
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

/// The arguments of `ssn view`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Sample I in the page is sample I of `ssn sample` with the same seed and settings, voxel for voxel. \
                  docs/reference/viewer.md tells what the page can do and what guards the server. Examples:\n  \
                  ssn view predictions\n  \
                  ssn view predictions/case1.ssn.safetensors --no-open --port 8000\n  \
                  ssn view predictions --case case1 --case case7 --export cases.html"
)]
pub struct ViewArgs {
    /// A distribution file (.ssn.safetensors), or a folder of them.
    #[arg(value_name = "FILE|FOLDER")]
    pub input: PathBuf,

    /// Only the case of this id. May be repeated.
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,

    /// The folder or file of the dataset, or a config (.toml) that names it; without it, what was predicted.
    #[arg(long, value_name = "DATASET|CONFIG")]
    pub data: Option<PathBuf>,

    /// The seed that the page starts with.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,

    /// Cut images to the box of what can change or is marked.
    #[arg(long)]
    pub crop: bool,

    /// Write page and cases to this file, and serve nothing.
    #[arg(long, value_name = "HTML", conflicts_with_all = ["port", "host", "no_open"])]
    pub export: Option<PathBuf>,

    /// Replace a file that is there already.
    #[arg(long, requires = "export")]
    pub overwrite: bool,

    /// The port to serve at [default: any that is free].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// Do not open the browser.
    #[arg(long)]
    pub no_open: bool,

    /// The address to serve at; another than this machine's own needs --allow-remote.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,

    /// Let other machines reach the page, unencrypted.
    #[arg(long)]
    pub allow_remote: bool,
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
