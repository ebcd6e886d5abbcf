//! A trained model with all that a prediction needs, out of a run folder or out of a bundle, and its predictions.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use ssn_args::CheckpointChoice;
use ssn_core::modes::canonical;
use ssn_data::{Case, DataConfig, Preprocessing};
use ssn_eval::{CaseDescription, DistributionFile, ModelId, PredictionKind, case_seed};
use ssn_io::hex::hex;
use ssn_nn::error::{NnError, Result};
use ssn_nn::layers::Mode;
use ssn_nn::model::{Execution, Model};
use ssn_nn::weights::{LoadedModel, load, to_bytes};
use tch::{Device, Kind, Tensor};

use super::config::RunConfig;
use super::folder::{FrozenRun, unusable};
use super::metadata::{ModelMetadata, Provenance};
use super::training_cases::TrainingCases;
use crate::checkpoint::{BestValidation, RunState};
use crate::inference::tiles::TileConfig;
use crate::inference::{InputImage, LatentSamples, Timing, WholeImageConfig, WholeImagePrediction, predict};

/// A network that can be used.
///
/// ```no_run
/// use std::path::Path;
///
/// use ssn_args::CheckpointChoice;
/// use ssn_data::Case;
/// use ssn_nn::{Execution, Precision};
/// use ssn_train::inference::{WholeImageConfig, never_stop};
/// use ssn_train::run::TrainedModel;
///
/// let model = TrainedModel::open(Path::new("run"), CheckpointChoice::Best, Execution::cpu(Precision::F32))?;
/// // Raw intensities `[c, d, h, w]`; the model's own normalization is applied.
/// let case = Case { id: "a".into(), channels: 1, shape: [1, 64, 64], image: vec![0.0; 64 * 64], ..Case::default() };
/// let (file, _) = model.predict(case, &WholeImageConfig::default(), never_stop)?;
/// println!("rank {}", file.distribution().rank());
/// # Ok::<(), ssn_nn::NnError>(())
/// ```
#[derive(Debug)]
pub struct TrainedModel {
    /// The network.
    pub model: Model,
    /// What else a prediction needs.
    pub metadata: ModelMetadata,
    /// SHA-256 of the model: its identity.
    pub sha256: String,
    /// The dataset of the run with its split; nothing for a bundle.
    pub data: Option<DataConfig>,
    /// The cases that it trained on, as far as they are known.
    pub training: TrainingCases,
}

impl TrainedModel {
    /// Opens the folder of a run, or the file of a bundle.
    pub fn open(path: &Path, which: CheckpointChoice, execution: Execution) -> Result<Self> {
        if path.is_dir() { Self::of_run(path, which, execution) } else { Self::of_bundle(path, execution) }
    }

    /// Wraps a model in memory.
    pub fn of_model(model: Model, metadata: ModelMetadata) -> Result<Self> {
        let sha256 = hex(&Sha256::digest(to_bytes(&model, Some(&metadata))?));
        let training = TrainingCases::of_bundle(&metadata.training_images);
        Ok(Self { model, metadata, sha256, data: None, training })
    }

    fn of_bundle(path: &Path, execution: Execution) -> Result<Self> {
        let LoadedModel { model, metadata, sha256 } = load::<ModelMetadata>(path, execution)?;
        let metadata = metadata.ok_or_else(|| {
            let reason = "it holds weights, but neither class names nor the scale of intensities; name the folder of its \
                          run, a bundle that `ssn export` made, or one of `ssn import` with --channels and --classes";
            NnError::file(path, reason)
        })?;
        let training = TrainingCases::of_bundle(&metadata.training_images);
        Ok(Self { model, metadata, sha256, data: None, training })
    }

    fn of_run(path: &Path, which: CheckpointChoice, execution: Execution) -> Result<Self> {
        let FrozenRun { config, checkpoints } = FrozenRun::read(path)?;
        let best = match which {
            CheckpointChoice::Best => checkpoints.best()?,
            CheckpointChoice::Last => None,
        };
        let untrained = |reason| unusable(path, reason, "train it first, with `ssn train --resume`");
        let checkpoint = match best {
            Some(checkpoint) => checkpoint,
            None => {
                let newest = checkpoints.newest()?.checkpoint;
                newest.ok_or_else(|| untrained("the run has no checkpoint that can be used"))?
            }
        };
        if checkpoint.progress.step == 0 {
            return Err(untrained("the run has done no step, and would predict noise"));
        }
        let LoadedModel { model, sha256, .. } = checkpoint.load(execution)?;
        let validation = checkpoints.best_validation()?;
        let (training, cases) = TrainingCases::of_run(path, &config.data)?;
        let metadata = ModelMetadata {
            training_images: training.images(),
            ..metadata(path, &config, &checkpoint.progress, validation, cases)?
        };
        Ok(Self { model, metadata, sha256, data: Some(config.data), training })
    }
}

/// What a run knows about its network.
fn metadata(
    run: &Path,
    config: &RunConfig,
    progress: &RunState,
    validation: Option<BestValidation>,
    cases: [usize; 3],
) -> Result<ModelMetadata> {
    let whole = |what: &str| {
        let reason = format!("its config does not say {what}");
        unusable(run, &reason, "it was changed by hand: train again")
    };
    let best = validation.filter(|best| best.step == progress.step);
    let provenance = Provenance {
        run: name_of(run),
        step: progress.step,
        seed: progress.seed,
        validation_ged: best.map(|best| best.score),
        dataset: name_of(&config.data.path),
        cases,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(ModelMetadata {
        channels: config.data.channels.clone().ok_or_else(|| whole("data.channels"))?,
        classes: config.data.classes.clone().ok_or_else(|| whole("data.classes"))?,
        normalization: config.data.normalization,
        spacing: config.data.spacing,
        patch: config.batches.patch.target_size.or_else(|| config.patch()).ok_or_else(|| whole("patches"))?,
        labels: Some(config.data.label_reading()),
        training_images: vec![],
        provenance,
    })
}

/// The last part of a path, which people know a run or a dataset by.
fn name_of(path: &Path) -> String {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl TrainedModel {
    /// How a model is called in files.
    pub fn id(&self) -> ModelId {
        let provenance = &self.metadata.provenance;
        // Imported weights do not say after how many steps they were saved.
        let step = if provenance.step > 0 { format!(", step {}", provenance.step) } else { String::new() };
        let name = format!("{}{step}", provenance.run);
        ModelId { sha256: self.sha256.clone(), name }
    }

    /// Computes a patch of zeros on a GPU, which loads what it needs when it is first used; other devices have nothing to load.
    pub fn warm_up(&self) {
        let (config, device) = (self.model.config(), self.model.execution().device);
        if device == Device::Cpu || self.model.latent().is_some() {
            return;
        }
        // What fails here fails again with the first case, and is told then.
        let _ = (|| {
            let [d, h, w] = config.backbone.input_size(self.metadata.patch.map(|n| n as i64))?;
            let zeros = Tensor::f_zeros([1, config.channels, d, h, w], (Kind::Float, device))?;
            tch::no_grad(|| self.model.forward(&zeros, None, Mode::Evaluation))?;
            Ok::<_, NnError>(ssn_cuda::synchronize()?)
        })();
    }

    /// The distribution of a case as its files have it, and how long the network took. `on_tile` gets the tiles done and
    /// their number, and may stop the work.
    ///
    /// The columns of its factor are the modes of variation, orthogonal and ordered by the variance that they explain.
    ///
    /// If the network has a spacing of its own, the case is resampled for it, and the file says how its voxels lie in the image.
    /// Cases with a region of interest are predicted in the box around it.
    pub fn predict(
        &self,
        case: Case,
        config: &WholeImageConfig,
        on_tile: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<(DistributionFile, Timing)> {
        // Cutting to the mask is the region's business, so that the file keeps the size of the image.
        let preprocessing = Preprocessing {
            spacing: self.metadata.spacing,
            crop_to_mask: false,
            normalization: self.metadata.normalization,
        };
        let (size, geometry) = (case.shape, case.geometry);
        let case = preprocessing.apply(case)?;
        let image = InputImage::new(&case.image, case.channels, case.shape, case.mask.as_deref())?;
        // Cases of one seed share no noise.
        let seed = case_seed(config.latent_samples.seed, &case.id);
        let tiles = TileConfig { unit: Some(self.metadata.patch), ..config.tiles };
        let latent_samples = LatentSamples { seed, ..config.latent_samples };
        let config = WholeImageConfig { tiles, latent_samples, ..*config };
        let mut prediction = predict(&self.model, &image, &config, on_tile)?;
        let timing = prediction.timing;
        // In files, the columns of the factor are modes, so that steering one of them means something.
        if prediction.kind == PredictionKind::Stochastic {
            prediction.distribution = canonical(prediction.distribution)?;
        }
        let file = describe(case, prediction, &self.metadata.classes, self.id())?;
        Ok((file.resampled_from(size, geometry)?, timing))
    }
}

/// What a network said about a case, with what its file needs.
pub(super) fn describe(
    case: Case,
    prediction: WholeImagePrediction,
    classes: &[String],
    model: ModelId,
) -> Result<DistributionFile> {
    let WholeImagePrediction { size, region, kind, distribution, samples, timing: _ } = prediction;
    let mask = case.mask.map(|mask| region.cut(&mask, size));
    let description = CaseDescription {
        case: case.id,
        classes: classes.to_vec(),
        kind,
        size,
        geometry: case.geometry,
        network_grid: None,
        region,
        model,
        image: None,
        labels_only: false,
    };
    Ok(DistributionFile::of_parts(description, distribution, mask, samples)?)
}
