//! The arguments of `ssn run-experiment`.

use std::path::PathBuf;

use clap::Args;

use super::device::DeviceChoice;

/// Trains, predicts and scores every row of an experiment file, and writes a table in the form of the paper's.
///
/// Every step is a command of its own, which is shown and can be repeated and changed. The folder `experiments` holds the
/// experiments of the paper; docs/guides/experiments.md tells how to write one.
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
