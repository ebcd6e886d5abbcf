//! The folder of a run: the frozen config and split, the lock, and where everything else lies.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ssn_data::SplitFile;
use ssn_io::write_atomically;

use super::config::RunConfig;
use super::layers::Layers;
use super::resolve::{Resolved, resolve};
use crate::checkpoint::Checkpoints;
use crate::error::{Result, TrainError};

/// The frozen config in the folder of a run.
pub const CONFIG: &str = "config.toml";
const SPLIT: &str = "split.toml";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = ".lock";

/// The folder of a run, for this process alone as long as the value lives, or for ranks of which one writes.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Held by the process that writes; other ranks read beside it.
    _lock: Option<File>,
}

/// A run that is read from its folder, by anybody.
#[derive(Debug)]
pub struct Frozen {
    /// Its settings; paths are absolute.
    pub config: RunConfig,
    /// Its checkpoints.
    pub checkpoints: Checkpoints,
}

impl RunFolder {
    /// Refuses a folder that holds a run already, or anything else.
    pub fn is_free(path: &Path) -> Result<()> {
        if path.join(CONFIG).exists() {
            let advice = "go on with it by --resume, or name another folder with --out";
            return Err(unusable(path, "there is a run in this folder", advice));
        }
        let others = fs::read_dir(path)
            .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != LOCK)));
        if others || path.is_file() {
            return Err(unusable(
                path,
                "it is there already and no empty folder",
                "name a new one with --out",
            ));
        }
        Ok(())
    }

    /// Makes the folder of a new run and freezes its settings into it.
    pub fn create(path: &Path, resolved: &Resolved) -> Result<Self> {
        Self::is_free(path)?;
        fs::create_dir_all(path).map_err(|source| TrainError::Save { path: path.to_owned(), source })?;
        let folder = Self::lock(path)?;
        folder.freeze(resolved)?;
        Ok(folder)
    }

    /// The folder of a run that is there.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(CONFIG).is_file() {
            let advice = "name the folder that `ssn train --out` made";
            return Err(unusable(path, "there is no run in this folder", advice));
        }
        Self::lock(path)
    }

    /// The folder of a run that the first rank has opened, for another one, which only reads.
    pub fn join(path: &Path) -> Result<Self> {
        if !path.join(CONFIG).is_file() {
            let advice = "put it on a file system that all ranks share";
            return Err(unusable(
                path,
                "this rank does not see the run that the first one has opened",
                advice,
            ));
        }
        Ok(Self { path: path.to_owned(), _lock: None })
    }

    /// The lock of a process that died is free: the system releases it.
    fn lock(path: &Path) -> Result<Self> {
        let name = path.join(LOCK);
        let lock = File::create(&name).map_err(|source| TrainError::Save { path: name, source })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: Some(lock) }),
            Err(fs::TryLockError::WouldBlock) => {
                let advice = "wait for it, stop it, or name another folder with --out";
                Err(unusable(path, "another process is working in this folder", advice))
            }
            Err(fs::TryLockError::Error(source)) => Err(TrainError::Save { path: path.join(LOCK), source }),
        }
    }

    /// Writes the split, then the config, which makes the folder a run.
    fn freeze(&self, resolved: &Resolved) -> Result<()> {
        let dataset = &resolved.dataset;
        let method = format!("as in the run {}", self.path.display());
        SplitFile::of_parts(&dataset.members(), &resolved.parts, &method).write(&self.path.join(SPLIT))?;
        let mut config = resolved.config.clone();
        config.data.path = fs::canonicalize(&config.data.path).unwrap_or(config.data.path);
        config.data.split.file = SPLIT.into();
        config.data.split.folds = None;
        let path = self.path.join(CONFIG);
        let text = toml::to_string(&config)
            .map_err(|error| TrainError::Config { path: path.clone(), reason: error.to_string() })?;
        write_atomically(&path, |out| out.write_all(text.as_bytes()))
            .map_err(|error| TrainError::Save { path: path.clone(), source: error.source })
    }

    /// The run with its dataset, as it was frozen; `data` is where the dataset lies now, if it was moved.
    pub fn resolved(&self, data: Option<&Path>) -> Result<Resolved> {
        let mut config = Frozen::config_of(&self.path)?;
        if let Some(data) = data {
            config.data.path = data.to_owned();
        }
        resolve(config)
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Result<Checkpoints> {
        Checkpoints::new(&self.path.join(CHECKPOINTS))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Frozen {
    /// Reads a run without disturbing the process that may be working on it.
    pub fn read(path: &Path) -> Result<Self> {
        let checkpoints = path.join(CHECKPOINTS);
        if !checkpoints.is_dir() {
            let advice = "name the folder that `ssn train --out` made";
            return Err(unusable(path, "there is no trained run in this folder", advice));
        }
        Ok(Self { config: Self::config_of(path)?, checkpoints: Checkpoints::new(&checkpoints)? })
    }

    fn config_of(run: &Path) -> Result<RunConfig> {
        let path = run.join(CONFIG);
        let text = fs::read_to_string(&path)
            .map_err(|error| TrainError::Config { path: path.clone(), reason: error.to_string() })?;
        Layers::frozen(path, text)
    }
}

fn unusable(path: &Path, reason: &str, advice: &'static str) -> TrainError {
    TrainError::Run { path: path.to_owned(), reason: reason.to_owned(), advice }
}
