//! Stochastic segmentation networks: one forward pass, any number of coherent segmentations.
//!
//! The functions of this crate are what the command `ssn` calls: [`train`], [`predict`], [`sample`], [`evaluate`] and
//! [`report()`], each over a plain config struct, with a callback for progress and a typed result. The crates below it
//! are re-exported for those who want more than files: [`core`] has the distribution, its samples and the scores,
//! [`io`] image files, [`data`] datasets, [`nn`] networks and losses, [`training`] the training step, [`eval`] prediction
//! files and reports.
//!
//! ```no_run
//! use ssn::prelude::*;
//!
//! // A folder of images with the masks of one or more raters.
//! train(&TrainConfig::from_data("dataset", "run"), Control::default())?.outcome()?;
//! predict(&PredictConfig::new("run", "predictions"), Control::default())?;
//! let evaluated = evaluate(&EvaluateConfig::new("predictions"), Control::default())?;
//! println!("{}", evaluated.evaluation);
//! # Ok::<(), ssn::Error>(())
//! ```

mod demo;
mod device;
mod error;
mod experiment;
mod export;
mod pipeline;
mod predict;
mod predictor;
mod text;
mod toy;
mod train;
mod work_folder;

pub use demo::{Demo, demo};
pub use error::{Error, ErrorKind, Result, of_panic};
pub use experiment::{ExperimentOutcome, run_experiment};
pub use export::{Exported, export, import};
pub use predict::{Phases, Predicted, predict};
pub use predictor::{Predictor, PredictorOptions, Volume};
pub use ssn_args as args;
pub use ssn_args::{
    BadCases, CheckpointChoice, DemoConfig, EvaluateConfig, ExperimentConfig, ExportConfig, ExportFormat,
    ImportConfig, LossKind, PredictConfig, SampleConfig, ToyProblem, TrainConfig,
};
pub use ssn_core as core;
pub use ssn_core::Control;
pub use ssn_data as data;
pub use ssn_data::DeviceChoice;
pub use ssn_eval as eval;
pub use ssn_eval::{evaluate, sample};
pub use ssn_io as io;
pub use ssn_nn as nn;
pub use ssn_report::{ReportConfig, ReportFiles, report};
pub use ssn_train as training;
pub use toy::{ToySolution, solve_toy};
pub use train::{TrainedRun, Training, check_config, train};

/// What most programs need.
pub mod prelude {
    pub use ssn_core::progress::silent;
    pub use ssn_core::{LabelMap, LowRankNormal, Progress, Sampler, Steering};
    pub use ssn_eval::{CaseMaps, DistributionFile, Predictions, SampleSource, ScoreConfig, score_maps};

    pub use crate::{
        Control, DeviceChoice, Error, ErrorKind, EvaluateConfig, PredictConfig, ReportConfig, SampleConfig,
        TrainConfig, Training, evaluate, predict, report, sample, train,
    };
}

/// The Rust of the first page is compiled with the examples of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The Rust of the guides is compiled with the examples of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/any-architecture.md")]
pub struct AnyArchitecture;

/// The Rust of the guides is compiled with the examples of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/rust.md")]
pub struct RustGuide;
