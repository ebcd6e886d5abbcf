//! Checkpoints: generations of a run, each in a folder that is whole or not there.
//!
//! A generation holds the model, what the next step begins with if that is something else, the state of the optimizer,
//! where the run stands, and a manifest with the hash of every file. It is written aside, flushed to the disk and renamed;
//! the newest one that verifies is used. It is what a run is after a step and before the validation that may follow, and
//! so a function of the config and the step.

pub mod interval;
mod upkeep;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_data::text::hex;
use ssn_io::{write_atomically, write_folder_atomically};
use tch::{Device, Tensor};

use crate::checkpoint::interval::Interval;
use crate::error::{Result, TrainError};
use crate::trainer::Trainer;
use ssn_nn::model::weights::container::{Stored, decode, encode, named};
use ssn_nn::model::weights::{Loaded, assign, load, to_bytes};
use ssn_nn::model::{Execution, Model};

const MODEL: &str = "model.safetensors";
/// What the next step begins with, where the model is a mean over the last steps.
const WEIGHTS: &str = "weights.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const PROGRESS: &str = "progress.json";
const MANIFEST: &str = "manifest.json";
/// The file beside the generations that names the best.
const BEST: &str = "best.json";
/// What a generation's folder is called before its number.
const GENERATION: &str = "step-";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The best validation so far.
    pub best: Option<Best>,
    /// Validations since the best.
    pub unimproved: u32,
    /// The last steps, one after another, that could not be applied.
    pub incidents: u32,
    /// The steps since the last row of the metrics.
    pub interval: Interval,
}

impl Progress {
    /// A run before its first validation.
    pub fn new(step: u64, seed: u64) -> Self {
        Self { step, seed, best: None, unimproved: 0, incidents: 0, interval: Interval::default() }
    }
}

/// The best validation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// The step after which it was.
    pub step: u64,
    /// Its score; lower is better.
    pub score: f64,
}

/// The generations of a run, in a folder.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
}

/// A generation whose files are what was saved.
#[derive(Debug)]
pub struct Generation {
    folder: PathBuf,
    /// Where the run stood.
    pub progress: Progress,
}

/// The newest generation that verifies, and those newer ones that do not.
#[derive(Debug)]
pub struct Newest {
    /// The one to go on from, if there is any.
    pub generation: Option<Generation>,
    /// Generations that were passed over, the newest first.
    pub damaged: Vec<Damaged>,
}

/// A generation that does not verify.
#[derive(Debug)]
pub struct Damaged {
    step: u64,
    /// Which file, and what is wrong with it.
    pub reason: String,
}

impl Checkpoints {
    /// The checkpoints of a folder, which is made if it is not there.
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| unsaved(folder, error))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Saves a generation and removes those that are no longer needed. A step that is saved already is left as it is.
    pub fn save(&self, progress: &Progress, trainer: &mut Trainer) -> Result<PathBuf> {
        let path = self.path_of(progress.step);
        if !path.exists() {
            let encoded = |tensors: &[(String, Tensor)]| {
                let stored = tensors.iter().map(|(name, tensor)| Stored::new(name, tensor));
                encode(progress, stored.collect::<Result<_, _>>()?).map_err(|reason| problem(&path, reason))
            };
            let mut files = vec![
                (MODEL, trainer.with_result(|model| Ok(to_bytes(model, None)?))?),
                (OPTIMIZER, encoded(&trainer.optimizer().state()?)?),
                (PROGRESS, serde_json::to_vec_pretty(progress).map_err(|error| problem(&path, error))?),
            ];
            if trainer.has_average() {
                files.push((WEIGHTS, encoded(&trainer.model().parameters().named())?));
            }
            let hashes: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (*name, digest(bytes))).collect();
            let manifest = serde_json::to_vec_pretty(&hashes).map_err(|error| problem(&path, error))?;
            write_folder_atomically(&path, |folder| {
                for (name, bytes) in &files {
                    fs::write(folder.join(name), bytes)?;
                }
                fs::write(folder.join(MANIFEST), &manifest)
            })
            .map_err(|error| unsaved(&path, error.source))?;
        }
        self.prune(progress.best.map(|best| best.step))?;
        Ok(path)
    }

    /// Says which generation is the best.
    pub fn name_best(&self, best: &Best) -> Result<()> {
        let path = self.folder.join(BEST);
        let bytes = serde_json::to_vec_pretty(best).map_err(|error| problem(&path, error))?;
        write_atomically(&path, |out| out.write_all(&bytes)).map_err(|error| unsaved(&path, error.source))
    }

    /// The newest generation that verifies.
    pub fn newest(&self) -> Result<Newest> {
        let mut damaged = vec![];
        for step in self.steps()?.into_iter().rev() {
            match self.open(step) {
                Ok(generation) => return Ok(Newest { generation: Some(generation), damaged }),
                Err(error) => damaged.push(Damaged { step, reason: error.to_string() }),
            }
        }
        Ok(Newest { generation: None, damaged })
    }

    /// The generation with the best validation, if there was one.
    pub fn best(&self) -> Result<Option<Generation>> {
        self.best_validation()?.map(|best| self.open(best.step)).transpose()
    }

    /// The best validation, if there was one. Its generation was saved before it and cannot tell.
    pub fn best_validation(&self) -> Result<Option<Best>> {
        let path = self.folder.join(BEST);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(problem(&path, error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| problem(&path, error))
    }

    /// The steps that have a generation, in order.
    pub fn steps(&self) -> Result<Vec<u64>> {
        let entries = fs::read_dir(&self.folder).map_err(|error| problem(&self.folder, error))?;
        let mut steps = vec![];
        for entry in entries {
            let name = entry.map_err(|error| problem(&self.folder, error))?.file_name();
            let step = name.to_str().and_then(|name| name.strip_prefix(GENERATION)?.parse::<u64>().ok());
            // Other ways to write the number are somebody else's folders.
            steps.extend(step.filter(|step| self.path_of(*step).ends_with(&name)));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    fn path_of(&self, step: u64) -> PathBuf {
        self.named(GENERATION, step)
    }

    fn named(&self, prefix: &str, step: u64) -> PathBuf {
        self.folder.join(format!("{prefix}{step:09}"))
    }

    /// Opens a generation and compares every file with the manifest.
    fn open(&self, step: u64) -> Result<Generation> {
        let folder = self.path_of(step);
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(|error| problem(&path, error))
        };
        let manifest: BTreeMap<String, String> =
            serde_json::from_slice(&read(MANIFEST)?).map_err(|error| problem(&folder, error))?;
        let verified = |name: &str| {
            let bytes = read(name)?;
            if manifest.get(name) != Some(&digest(&bytes)) {
                return Err(problem(&folder.join(name), "it is not what was saved (SHA-256 differs)"));
            }
            Ok(bytes)
        };
        let weights = manifest.contains_key(WEIGHTS).then_some(WEIGHTS);
        for name in [MODEL, OPTIMIZER].into_iter().chain(weights) {
            verified(name)?;
        }
        let progress =
            serde_json::from_slice(&verified(PROGRESS)?).map_err(|error| problem(&folder, error))?;
        Ok(Generation { folder, progress })
    }
}

impl Generation {
    /// The model as it was: that for predictions.
    pub fn model(&self, execution: Execution) -> Result<Model> {
        Ok(self.load(execution)?.model)
    }

    /// The model as it was, with its identity.
    pub fn load(&self, execution: Execution) -> Result<Loaded> {
        Ok(load(&self.folder.join(MODEL), execution)?)
    }

    /// A trainer of the same model, brought to where it was.
    pub fn resume(&self, trainer: Trainer) -> Result<Trainer> {
        let device = trainer.model().execution().device;
        // Only where the model is a mean does the next step begin with something else.
        let path = self.folder.join(WEIGHTS);
        if path.exists() {
            let report = assign(trainer.model().parameters(), &tensors(&path, device)?)?;
            if !report.is_complete() {
                return Err(problem(&path, "its tensors are not those of the model beside it"));
            }
        }
        let state = tensors(&self.folder.join(OPTIMIZER), device)?;
        trainer.resumed_at(self.progress.step, |optimizer| Ok(optimizer.load_state(&state)?))
    }
}

/// The tensors of a file of a generation.
fn tensors(path: &Path, device: Device) -> Result<Vec<(String, Tensor)>> {
    let bytes = fs::read(path).map_err(|error| problem(path, error))?;
    let (_, stored) = decode::<Progress>(&bytes).map_err(|reason| problem(path, reason))?;
    Ok(named(&stored, device)?)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn unsaved(path: &Path, source: io::Error) -> TrainError {
    TrainError::Save { path: path.to_owned(), source }
}

fn problem(path: &Path, reason: impl ToString) -> TrainError {
    TrainError::File { path: path.to_owned(), reason: reason.to_string() }
}
