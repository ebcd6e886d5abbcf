//! A run: from a config to a trained model, in a folder that loses nothing.
//!
//! Data flows one way: a config is merged from its sources, resolved against the dataset, frozen into the run's folder, and
//! trained step by step. The caller handles signals and shows progress.

mod config;
mod events;
mod folder;
mod inputs;
mod logs;
mod metadata;
mod sources;
mod trained;
mod training_cases;
mod training_loop;
mod validation;

pub use config::{ModelSection, OptimizerSection, PlanSection, RunConfig, SyncBatchNorm, TrainingSection};
pub use events::{Callback, Event, StopReason, ValidationScores};
pub use folder::{CONFIG, FrozenRun, ResolvedRun, RunFolder, resolve};
pub use inputs::RunInputs;
pub use metadata::{ModelMetadata, Provenance};
pub use sources::{ConfigSources, Override, RunPreset, join_torchscript};
pub use ssn_args::CheckpointChoice;
pub use trained::TrainedModel;
pub use training_cases::TrainingCases;
pub use training_loop::{Run, Throughput};
