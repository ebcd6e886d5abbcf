//! A trained network with all that a prediction needs: out of a run, or out of a bundle.

use std::path::{Path, PathBuf};

use ssn_data::{DataConfig, SplitAssignment, SplitFile};

use super::config::RunConfig;
use super::folder::Frozen;
use crate::checkpoint::{Best, Progress};
use crate::error::{Result, TrainError};
use ssn_nn::model::weights::{About, Loaded, Provenance, load};
use ssn_nn::model::{Execution, Model};

/// Which checkpoint of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The one with the best validation; without validations, the last.
    Best,
    /// The last.
    Last,
}

/// A network that can be used.
#[derive(Debug)]
pub struct Trained {
    /// The network.
    pub model: Model,
    /// What else a prediction needs.
    pub about: About,
    /// SHA-256 of the model: its identity.
    pub sha256: String,
    /// The dataset of the run with its split; nothing for a bundle.
    pub data: Option<DataConfig>,
}

impl Trained {
    /// Opens the folder of a run, or the file of a bundle.
    pub fn open(path: &Path, which: Which, execution: Execution) -> Result<Self> {
        if path.is_dir() { Self::of_run(path, which, execution) } else { Self::of_bundle(path, execution) }
    }

    fn of_bundle(path: &Path, execution: Execution) -> Result<Self> {
        let Loaded { model, about, sha256 } = load(path, execution)?;
        let about = about.ok_or_else(|| TrainError::File {
            path: path.to_owned(),
            reason: "it holds weights, but neither class names nor the scale of intensities; name the folder of its \
                     run, or a bundle that `ssn export` made"
                .to_owned(),
        })?;
        Ok(Self { model, about, sha256, data: None })
    }

    fn of_run(path: &Path, which: Which, execution: Execution) -> Result<Self> {
        let Frozen { config, checkpoints } = Frozen::read(path)?;
        let best = match which {
            Which::Best => checkpoints.best()?,
            Which::Last => None,
        };
        let generation = match best {
            Some(generation) => generation,
            None => checkpoints.newest()?.generation.ok_or_else(|| TrainError::Run {
                path: path.to_owned(),
                reason: "the run has no checkpoint that can be used".to_owned(),
                advice: "train it first, with `ssn train --resume`",
            })?,
        };
        let Loaded { model, sha256, .. } = generation.load(execution)?;
        let validation = checkpoints.best_validation()?;
        let about = about(path, &config, &generation.progress, validation)?;
        Ok(Self { model, about, sha256, data: Some(config.data) })
    }
}

/// What a run knows about its network.
fn about(run: &Path, config: &RunConfig, progress: &Progress, validation: Option<Best>) -> Result<About> {
    let whole = |what: &'static str| TrainError::Run {
        path: run.to_owned(),
        reason: format!("its config does not say {what}"),
        advice: "it was changed by hand: train again",
    };
    let best = validation.filter(|best| best.step == progress.step);
    let cases = match SplitFile::read(&config.data.split.file)?.assignment {
        SplitAssignment::Parts(lists) => lists.map(|list| list.len()),
        SplitAssignment::Folds(_) => [0; 3],
    };
    let provenance = Provenance {
        run: name_of(run),
        step: progress.step,
        seed: progress.seed,
        validation_ged: best.map(|best| best.score),
        dataset: name_of(&config.data.path),
        cases,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(About {
        channels: config.data.channels.clone().ok_or_else(|| whole("data.channels"))?,
        classes: config.data.classes.clone().ok_or_else(|| whole("data.classes"))?,
        normalization: config.data.normalization,
        spacing: config.data.spacing,
        patch: config.batches.patch.target_size.or_else(|| config.patch()).ok_or_else(|| whole("patches"))?,
        provenance,
    })
}

/// The last part of a path, which people know a run or a dataset by.
fn name_of(path: &Path) -> String {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
