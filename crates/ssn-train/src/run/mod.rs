//! A run: from a config to a trained model, in a folder that loses nothing.
//!
//! Data flows one way: a config is put together from layers, resolved against the dataset, frozen into the run's
//! folder, and driven step by step. Who calls decides about signals and shows progress.

pub mod config;
pub mod drive;
pub mod events;
pub mod folder;
pub mod incident;
pub mod layers;
pub mod metrics;
pub mod pace;
pub mod predict;
pub mod presets;
pub mod resolve;
pub mod trained;
pub mod validate;
pub mod watch;

pub use config::{ModelSection, OptimizerSection, RunConfig, SharedNorm, TrainingSection};
pub use drive::{Ended, Run};
pub use folder::{CONFIG, Frozen, RunFolder};
pub use layers::{Layers, Setting};
pub use pace::Pace;
pub use presets::RunPreset;
pub use resolve::{Resolved, resolve};
pub use trained::{Trained, Which};
pub use watch::{Event, Watch};
