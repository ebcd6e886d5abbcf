//! Arguments of the commands: a config struct for each verb of `ssn`, and the closed sets that their fields choose from.
//!
//! A config is what a function of the crates above takes, and what the command line is parsed into (`clap`): its fields, their
//! documentation and their defaults are the flags, help and defaults of `ssn`. Nothing here opens a file.

mod checkpoint;
mod demo;
mod evaluate;
mod experiment;
mod export;
mod import;
mod loss;
mod parsers;
mod part;
mod precision;
mod predict;
mod report;
mod rule;
mod sample;
mod scores;
mod toy;
mod train;

pub use checkpoint::CheckpointChoice;
pub use demo::DemoConfig;
pub use evaluate::{EvaluateConfig, OtherTool};
pub use experiment::ExperimentConfig;
pub use export::{ExportConfig, ExportFormat};
pub use import::ImportConfig;
pub use loss::LossKind;
pub use part::SplitChoice;
pub use precision::StoredPrecision;
pub use predict::PredictConfig;
pub use report::ReportConfig;
pub use rule::PredictionRule;
pub use sample::{MapFormat, SampleConfig};
pub use scores::{
    DEFAULT_BINS, DEFAULT_SAMPLES, DEFAULT_SURFACE_SAMPLES, DEFAULT_TOLERANCE, GedDistance, Group, ScoreSet,
};
pub use toy::ToyProblem;
pub use train::{BadCases, TrainConfig};
