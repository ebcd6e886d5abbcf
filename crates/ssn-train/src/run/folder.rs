//! A run and its folder: the config resolved against the dataset, and frozen into the folder with the split and a lock.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssn_data::{BatchConfig, Case, Cases, Dataset, LabelCoding, PatchSampler, Replica, Split, SplitFile};
use ssn_io::{Error, ErrorKind, write_atomically};
use ssn_nn::backbones::{BackboneConfig, UNetPlan, plan_unet};
use ssn_nn::error::{NnError, Result, refused};
use ssn_nn::heads::HeadConfig;
use ssn_nn::layers::Mode;
use ssn_nn::model::{Execution, Model, ModelConfig, Precision};
use ssn_nn::space::Size;
use tch::{Device, Kind, Tensor};

use super::config::RunConfig;
use super::sources::{ConfigSources, Override};
use crate::checkpoint::Checkpoints;

/// A run whose every setting is known.
#[derive(Debug, Clone)]
pub struct ResolvedRun {
    /// The config, with the network and the patches filled in.
    pub config: RunConfig,
    /// The network.
    pub model: ModelConfig,
    /// The dataset.
    pub dataset: Arc<Dataset>,
    /// The part of each of its cases.
    pub parts: Vec<Split>,
}

impl ResolvedRun {
    /// The settings of batches, which hold what the network sees of a patch.
    pub fn batches(&self) -> Result<BatchConfig> {
        let size = self.config.patch().map(|size| size.map(|n| n as i64));
        let seen = size.map(|size| self.model.backbone.plan().input_grids(size)).transpose()?.flatten();
        Ok(BatchConfig { input_grids: seen, ..self.config.batches() })
    }

    /// Returns an error for what would fail in the first step: a batch smaller than the number of ranks, a norm over a single
    /// value, or a foreign network that does not take the patches.
    pub fn check(&self, ranks: usize) -> Result<()> {
        let items =
            Replica { rank: ranks - 1, world_size: ranks }.items(self.config.batches.batch_size)?.len();
        let Some(size) = self.config.patch().or(self.config.batches.patch.target_size) else { return Ok(()) };
        let size: Size = size.map(|n| n as i64);
        let backbone = &self.model.backbone;
        let sharing =
            if self.config.syncs_batch_norm(ranks) { self.config.batches.batch_size } else { items };
        backbone.plan().check_batch(size, sharing as i64)?;
        if backbone.is_foreign() {
            let model = Model::new(&self.model, Execution::cpu(Precision::F32), 0)?;
            let [d, h, w] = backbone.input_size(size)?;
            let image = Tensor::f_zeros([1, self.model.channels, d, h, w], (Kind::Float, Device::Cpu))?;
            tch::no_grad(|| model.forward(&image, None, Mode::Evaluation))?;
        }
        Ok(())
    }
}

/// Opens the dataset and fills in what the config left open: the network, and sizes of patches that it can have.
pub fn resolve(mut config: RunConfig) -> Result<ResolvedRun> {
    let dataset = Arc::new(config.data.open()?);
    let parts = config.data.split.parts(&dataset)?;
    let training = dataset.subset(&parts, Split::Train);
    if training.is_empty() {
        let advice = "change data.split.ratios, or the file of the split";
        return Err(unusable(&config.data.path, "no case is for training", advice));
    }
    let first = training.load_first()?;
    let (channels, classes) = (dataset.channels.len(), dataset.classes.len());
    if first.channels != channels {
        return refused(
            "data.channels",
            format!("{channels} names, while case {} has {} channels", first.id, first.channels),
            "one name per channel",
        );
    }
    config.data.channels = Some(dataset.channels.clone());
    config.data.classes = Some(dataset.classes.clone());
    config.data.annotations = dataset.annotations().map(str::to_owned);
    match &dataset.reading.coding {
        LabelCoding::Plain => {}
        LabelCoding::Values(values) => config.data.label_values = Some(values.clone()),
        LabelCoding::Threshold(threshold) => config.data.label_threshold = Some(*threshold),
    }
    let backbone = fit(&mut config, &first)?;
    config.model.backbone = Some(backbone.clone());
    let model =
        ModelConfig { channels: channels as i64, classes: classes as i64, backbone, head: config.model.head };
    let features = model.backbone.features();
    if matches!(model.head, HeadConfig::Identity) && features != model.classes {
        let found = format!("\"identity\" on a network that gives {features} channels for {classes} classes");
        return refused(
            "model.head",
            found,
            "another head, unless the network gives one channel for each class",
        );
    }
    Ok(ResolvedRun { config, model, dataset, parts })
}

/// The network, with patches of a size that it can have and targets of the size that it gives.
fn fit(config: &mut RunConfig, first: &Case) -> Result<BackboneConfig> {
    let asked: Size = config.patch().unwrap_or(first.shape).map(|n| n as i64);
    let place = &mut config.batches.patch.sampler;
    let (backbone, size) = match &config.model.backbone {
        Some(backbone) => (backbone.clone(), nearest_fit(backbone, asked)?),
        None => {
            let [x, y, z] = first.geometry.spacing;
            let plan = config.model.plan;
            let batch = config.batches.batch_size as i64;
            let (unet, size) = plan_unet(UNetPlan {
                width: plan.width,
                levels: plan.levels,
                ..UNetPlan::new(asked, [z, y, x], batch)
            })?;
            (BackboneConfig::Unet(unet), size)
        }
    };
    if size != asked {
        let size = size.map(|n| n as usize);
        *place = match *place {
            PatchSampler::Whole | PatchSampler::CenterCrop { .. } => PatchSampler::CenterCrop { size },
            PatchSampler::Random { foreground_probability, .. } => {
                PatchSampler::Random { size, foreground_probability }
            }
        };
    }
    let target = backbone.output_size(size)?.map(|n| n as usize);
    match config.batches.patch.target_size {
        Some(asked) if asked != target => {
            return refused(
                "batches.patch.target_size",
                format!("{asked:?}, while the network makes {target:?} of patches of {size:?}"),
                "what the network makes, or left out",
            );
        }
        _ => config.batches.patch.target_size = Some(target),
    }
    Ok(backbone)
}

/// The size itself, or the next larger one if the network gives what it gets and cannot have this size.
fn nearest_fit(backbone: &BackboneConfig, size: Size) -> Result<Size> {
    let error = match backbone.output_size(size) {
        Ok(_) => return Ok(size),
        Err(error) => error,
    };
    let larger = backbone.input_size(size)?;
    if backbone.output_size(larger)? == larger { Ok(larger) } else { Err(error) }
}

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
pub struct FrozenRun {
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
        // A process that was killed before it wrote the config leaves these.
        let is_beginning = |name: &OsStr| {
            [LOCK, SPLIT].iter().any(|own| name == *own)
                || name.as_encoded_bytes().starts_with(ssn_io::UNFINISHED.as_bytes())
        };
        let others = fs::read_dir(path).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| !is_beginning(&entry.file_name())))
        });
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
    pub fn create(path: &Path, resolved: &ResolvedRun) -> Result<Self> {
        Self::is_free(path)?;
        fs::create_dir_all(path).map_err(|error| NnError::unsaved(path, error))?;
        let folder = Self::lock(path)?;
        folder.freeze(resolved)?;
        Ok(folder)
    }

    /// The folder of a run that is there.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(CONFIG).is_file() {
            let (reason, advice) = match path.join(LOCK).exists() && Self::is_free(path).is_ok() {
                true => (
                    "its training ended before the settings were written",
                    "begin it again with the command that began it",
                ),
                false => ("there is no run in this folder", "name the folder that `ssn train --out` made"),
            };
            return Err(unusable(path, reason, advice));
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
        let lock = ssn_io::open_own(&name, false).map_err(|error| NnError::unsaved(&name, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: Some(lock) }),
            Err(fs::TryLockError::WouldBlock) => {
                let advice = "wait for it, stop it, or name another folder with --out";
                Err(unusable(path, "another process is working in this folder", advice))
            }
            Err(fs::TryLockError::Error(error)) => Err(NnError::unsaved(&name, error)),
        }
    }

    /// Writes the split, then the config, which makes the folder a run.
    fn freeze(&self, resolved: &ResolvedRun) -> Result<()> {
        let dataset = &resolved.dataset;
        let method = format!("as in the run {}", self.path.display());
        SplitFile::of_parts(&dataset.entries, &resolved.parts, method).write(&self.path.join(SPLIT))?;
        let mut config = resolved.config.clone();
        config.data.path = fs::canonicalize(&config.data.path).unwrap_or(config.data.path);
        if let Some(BackboneConfig::Torchscript(network)) = &mut config.model.backbone
            && let Ok(path) = fs::canonicalize(&network.torchscript)
        {
            network.torchscript = path;
        }
        config.data.split.file = SPLIT.into();
        config.data.split.folds = None;
        let path = self.path.join(CONFIG);
        let text = toml::to_string(&config).map_err(|error| Error::data(&path, error))?;
        write_atomically(&path, |out| out.write_all(text.as_bytes()))
            .map_err(|error| NnError::unsaved(&path, error.source))
    }

    /// Changes settings of the frozen config, such as the number of steps.
    pub fn change(&self, changes: &[Override]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let path = self.path.join(CONFIG);
        let text = ssn_io::read_text(&path).map_err(|error| Error::data(&path, error))?;
        let text = ConfigSources::changed(&path, text, changes)?;
        write_atomically(&path, |out| out.write_all(text.as_bytes()))
            .map_err(|error| NnError::unsaved(&path, error.source))
    }

    /// The run with its dataset, as it was frozen; `data` is where the dataset lies now, if it was moved.
    pub fn resolved(&self, data: Option<&Path>) -> Result<ResolvedRun> {
        let mut config = FrozenRun::config_of(&self.path)?;
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

impl FrozenRun {
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
        let text = ssn_io::read_text(&path).map_err(|error| Error::data(&path, error))?;
        ConfigSources::frozen(path, text)
    }
}

pub(super) fn unusable(path: &Path, reason: &str, advice: &'static str) -> NnError {
    Error::data(path, reason).of_kind(ErrorKind::Usage).advise(advice).into()
}
