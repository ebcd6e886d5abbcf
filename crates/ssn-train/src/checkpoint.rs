//! Checkpoints of a run, each in a folder that is complete or absent.
//!
//! A checkpoint holds the model, what the next step begins with if that is something else, the state of the optimizer,
//! where the run stands, and a manifest with the hash of every file. It is written aside, flushed to the disk and renamed;
//! the newest one that verifies is used. It is what a run is after a step and before the validation that may follow, and
//! so a function of the config and the step.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_eval::metrics_file::{ESS, GRADIENT_NORM, LEARNING_RATE, LOSS};
use ssn_io::hex::hex;
use ssn_io::{write_atomically, write_folder_atomically};
use ssn_nn::error::{NnError, Result};
use ssn_nn::model::{Execution, Model};
use ssn_nn::weights::container::{StoredTensor, decode, encode, named};
use ssn_nn::weights::{LoadedModel, assign, load, to_bytes};
use tch::{Device, Tensor};

use crate::trainer::{StepReport, Trainer};

const MODEL: &str = "model.safetensors";
/// The weights that training goes on with, where the model has the EMA weights.
const WEIGHTS: &str = "weights.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const PROGRESS: &str = "progress.json";
const MANIFEST: &str = "manifest.json";
/// The file beside the checkpoints that names the best.
const BEST: &str = "best.json";
/// What a checkpoint's folder is called before its number.
const CHECKPOINT: &str = "step-";

/// What a checkpoint that does not verify is called before its number, so that it is in nobody's way and can be
/// looked into.
const DAMAGED: &str = "damaged-";
/// What names begin with while a file or folder is written.
const WRITTEN: &str = ssn_io::UNFINISHED;
/// What names begin with while a folder is removed.
const REMOVED: &str = ".removed-";
/// How many of the newest checkpoints are kept, beside the best.
const NEWEST_KEPT: usize = 2;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// Steps done.
    pub step: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The best validation so far.
    pub best: Option<BestValidation>,
    /// Validations since the best.
    pub unimproved: u32,
    /// The last steps, one after another, that could not be applied.
    pub incidents: u32,
    /// The steps since the last row of the metrics.
    pub interval: AverageMeter,
}

impl RunState {
    /// A run before its first validation.
    pub fn new(step: u64, seed: u64) -> Self {
        Self { step, seed, best: None, unimproved: 0, incidents: 0, interval: AverageMeter::default() }
    }
}

/// The best validation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestValidation {
    /// The step after which it was.
    pub step: u64,
    /// Its score; lower is better.
    pub score: f64,
}

/// The checkpoints of a run, in a folder.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
}

/// A checkpoint whose files are what was saved.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    /// Where the run stood.
    pub progress: RunState,
}

/// The newest checkpoint that verifies, and those newer ones that do not.
#[derive(Debug)]
pub struct NewestCheckpoint {
    /// The one to go on from, if there is any.
    pub checkpoint: Option<Checkpoint>,
    /// Generations that were passed over, the newest first.
    pub damaged: Vec<DamagedCheckpoint>,
}

/// A checkpoint that does not verify.
#[derive(Debug)]
pub struct DamagedCheckpoint {
    step: u64,
    /// Which file, and what is wrong with it.
    pub reason: String,
}

impl Checkpoints {
    /// The checkpoints of a folder, which is made if it is not there.
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| NnError::unsaved(folder, error))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Saves a checkpoint and removes those that are no longer needed. A step that is saved already is left as it is.
    pub fn save(&self, progress: &RunState, trainer: &mut Trainer) -> Result<PathBuf> {
        let path = self.path_of(progress.step);
        if !path.exists() {
            let encoded = |tensors: &[(String, Tensor)]| {
                let stored = tensors.iter().map(|(name, tensor)| StoredTensor::new(name, tensor));
                encode(progress, stored.collect::<Result<_, _>>()?)
                    .map_err(|reason| NnError::file(&path, reason))
            };
            let mut files = vec![
                (MODEL, trainer.with_eval_model(|model| to_bytes::<()>(model, None))?),
                (OPTIMIZER, encoded(&trainer.optimizer().state()?)?),
                (PROGRESS, serde_json::to_vec_pretty(progress).map_err(|error| NnError::file(&path, error))?),
            ];
            if trainer.has_ema() {
                files.push((WEIGHTS, encoded(&trainer.model().parameters().named())?));
            }
            let hashes: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (*name, digest(bytes))).collect();
            let manifest = serde_json::to_vec_pretty(&hashes).map_err(|error| NnError::file(&path, error))?;
            write_folder_atomically(&path, |folder| {
                for (name, bytes) in &files {
                    fs::write(folder.join(name), bytes)?;
                }
                fs::write(folder.join(MANIFEST), &manifest)
            })
            .map_err(|error| NnError::unsaved(&path, error.source))?;
        }
        self.prune(progress.best.map(|best| best.step))?;
        Ok(path)
    }

    /// Says which checkpoint is the best.
    pub fn name_best(&self, best: &BestValidation) -> Result<()> {
        let path = self.folder.join(BEST);
        let bytes = serde_json::to_vec_pretty(best).map_err(|error| NnError::file(&path, error))?;
        write_atomically(&path, |out| out.write_all(&bytes))
            .map_err(|error| NnError::unsaved(&path, error.source))
    }

    /// The newest checkpoint that verifies.
    pub fn newest(&self) -> Result<NewestCheckpoint> {
        let mut damaged = vec![];
        for step in self.steps()?.into_iter().rev() {
            match self.open(step) {
                Ok(checkpoint) => return Ok(NewestCheckpoint { checkpoint: Some(checkpoint), damaged }),
                Err(error) => damaged.push(DamagedCheckpoint { step, reason: error.to_string() }),
            }
        }
        Ok(NewestCheckpoint { checkpoint: None, damaged })
    }

    /// The checkpoint with the best validation, if there was one.
    pub fn best(&self) -> Result<Option<Checkpoint>> {
        self.best_validation()?.map(|best| self.open(best.step)).transpose()
    }

    /// The best validation, if there was one. Its checkpoint was saved before it and cannot tell.
    pub fn best_validation(&self) -> Result<Option<BestValidation>> {
        let path = self.folder.join(BEST);
        let bytes = match ssn_io::read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(NnError::file(&path, error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| NnError::file(&path, error))
    }

    /// The steps that have a checkpoint, in order.
    pub fn steps(&self) -> Result<Vec<u64>> {
        let entries = fs::read_dir(&self.folder).map_err(|error| NnError::file(&self.folder, error))?;
        let mut steps = vec![];
        for entry in entries {
            let name = entry.map_err(|error| NnError::file(&self.folder, error))?.file_name();
            let step = name.to_str().and_then(|name| name.strip_prefix(CHECKPOINT)?.parse::<u64>().ok());
            // Other ways to write the number are somebody else's folders.
            steps.extend(step.filter(|step| self.path_of(*step).ends_with(&name)));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    fn path_of(&self, step: u64) -> PathBuf {
        self.named(CHECKPOINT, step)
    }

    fn named(&self, prefix: &str, step: u64) -> PathBuf {
        self.folder.join(format!("{prefix}{step:09}"))
    }

    /// Removes what a process that was killed had begun to write or to remove. For the one process that works on the
    /// run: what another is about to write looks the same.
    pub fn remove_unfinished(&self) -> Result<()> {
        for entry in fs::read_dir(&self.folder).map_err(|error| NnError::file(&self.folder, error))? {
            let entry = entry.map_err(|error| NnError::file(&self.folder, error))?;
            let name = entry.file_name();
            if [WRITTEN, REMOVED].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
            {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                removed.map_err(|error| NnError::unsaved(&path, error))?;
            }
        }
        Ok(())
    }

    /// Takes checkpoints that do not verify out of the way of new ones of their steps; gives their new places.
    pub fn set_aside(&self, damaged: &[DamagedCheckpoint]) -> Result<Vec<PathBuf>> {
        let aside = |damaged: &DamagedCheckpoint| {
            let (path, aside) = (self.path_of(damaged.step), self.named(DAMAGED, damaged.step));
            if aside.exists() {
                fs::remove_dir_all(&aside).map_err(|error| NnError::unsaved(&aside, error))?;
            }
            fs::rename(&path, &aside).map_err(|error| NnError::unsaved(&path, error))?;
            Ok(aside)
        };
        damaged.iter().map(aside).collect()
    }

    /// Removes checkpoints that are neither new nor the best.
    fn prune(&self, best: Option<u64>) -> Result<()> {
        let steps = self.steps()?;
        let old = &steps[..steps.len().saturating_sub(NEWEST_KEPT)];
        for step in old.iter().filter(|step| Some(**step) != best) {
            let path = self.path_of(*step);
            // Renamed first, so that a folder with a checkpoint's name is never half removed.
            let condemned = self.folder.join(format!("{REMOVED}{step}"));
            fs::rename(&path, &condemned).map_err(|error| NnError::unsaved(&path, error))?;
            fs::remove_dir_all(&condemned).map_err(|error| NnError::unsaved(&condemned, error))?;
        }
        Ok(())
    }

    /// Opens a checkpoint and compares every file with the manifest.
    fn open(&self, step: u64) -> Result<Checkpoint> {
        let folder = self.path_of(step);
        let read = |name: &str| {
            let path = folder.join(name);
            ssn_io::read_file(&path).map_err(|error| NnError::file(&path, error))
        };
        let manifest: BTreeMap<String, String> =
            serde_json::from_slice(&read(MANIFEST)?).map_err(|error| NnError::file(&folder, error))?;
        let verified = |name: &str| {
            let bytes = read(name)?;
            if manifest.get(name) != Some(&digest(&bytes)) {
                return Err(NnError::file(&folder.join(name), "it is not what was saved (SHA-256 differs)"));
            }
            Ok(bytes)
        };
        let weights = manifest.contains_key(WEIGHTS).then_some(WEIGHTS);
        for name in [MODEL, OPTIMIZER].into_iter().chain(weights) {
            verified(name)?;
        }
        let progress =
            serde_json::from_slice(&verified(PROGRESS)?).map_err(|error| NnError::file(&folder, error))?;
        Ok(Checkpoint { folder, progress })
    }
}

impl Checkpoint {
    /// The model as it was: that for predictions.
    pub fn model(&self, execution: Execution) -> Result<Model> {
        Ok(self.load(execution)?.model)
    }

    /// The model as it was, with its identity.
    pub fn load(&self, execution: Execution) -> Result<LoadedModel<()>> {
        load(&self.folder.join(MODEL), execution)
    }

    /// A trainer of the same model, brought to where it was.
    pub fn resume(&self, trainer: Trainer) -> Result<Trainer> {
        let device = trainer.model().execution().device;
        // Only where the model has the EMA weights does training go on with others.
        let path = self.folder.join(WEIGHTS);
        if path.exists() {
            let report = assign(trainer.model().parameters(), &tensors(&path, device)?)?;
            if !report.is_complete() {
                return Err(NnError::file(&path, "its tensors are not those of the model beside it"));
            }
        }
        let state = tensors(&self.folder.join(OPTIMIZER), device)?;
        trainer.resumed_at(self.progress.step, |optimizer| optimizer.load_state(&state))
    }
}

/// The tensors of a file of a checkpoint.
fn tensors(path: &Path, device: Device) -> Result<Vec<(String, Tensor)>> {
    let bytes = ssn_io::read_file(path).map_err(|error| NnError::file(path, error))?;
    let (_, stored) = decode::<RunState>(&bytes).map_err(|reason| NnError::file(path, reason))?;
    named(&stored, device)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Means over the steps between two rows of a run's metrics: part of a checkpoint, so that a row may span two processes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AverageMeter {
    steps: u64,
    loss: f64,
    sampled_steps: u64,
    #[serde(rename = "effective_samples")]
    ess: f64,
    gradient_norm: f64,
    learning_rate: f64,
}

impl AverageMeter {
    /// Adds a step.
    pub fn add(&mut self, report: &StepReport) {
        self.steps += 1;
        self.loss += report.loss;
        self.gradient_norm += report.gradient_norm;
        self.learning_rate = report.learning_rate;
        if let Some(ess) = report.ess {
            self.sampled_steps += 1;
            self.ess += ess;
        }
    }

    /// Returns the means.
    pub fn means(&self) -> StepMeans {
        StepMeans {
            loss: mean(self.loss, self.steps),
            ess: mean(self.ess, self.sampled_steps),
            gradient_norm: mean(self.gradient_norm, self.steps),
            learning_rate: (self.steps > 0).then_some(self.learning_rate),
        }
    }
}

/// Means over some steps; `None` before the first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StepMeans {
    /// The loss.
    pub loss: Option<f64>,
    /// The effective sample size of the steps that drew samples.
    pub ess: Option<f64>,
    /// The norm of the gradient before clipping.
    pub gradient_norm: Option<f64>,
    /// The learning rate of the last step.
    pub learning_rate: Option<f64>,
}

impl StepMeans {
    /// Returns the values of the columns of a row.
    pub fn columns(&self) -> [(&'static str, Option<f64>); 4] {
        let Self { loss, ess, gradient_norm, learning_rate } = *self;
        [(LOSS, loss), (ESS, ess), (GRADIENT_NORM, gradient_norm), (LEARNING_RATE, learning_rate)]
    }
}

fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}
