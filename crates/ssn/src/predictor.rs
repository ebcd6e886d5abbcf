//! Predictions of images in memory, by a model that is opened once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ssn_args::{CheckpointChoice, PredictConfig, StoredPrecision};
use ssn_cuda::DeviceProperties;
use ssn_data::{Case, DeviceChoice};
use ssn_eval::{DistributionFile, ModelId, StoredImage, ensemble_id, mixture};
use ssn_io::hex::hex;
use ssn_io::{Geometry, Image};
use ssn_nn::{Execution, Model, Precision};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{LatentSamples, Storage, Timing, WholeImageConfig};
use ssn_train::run::{ModelMetadata, TrainedModel};
use tch::Device;

use crate::device::device;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline;
use ssn_core::Control;

/// Bytes of a GPU from which on tiles may be larger.
const LARGE_GPU: i64 = 24 << 30;

/// How a [`Predictor`] computes.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictorOptions {
    /// The checkpoint of a run.
    pub checkpoint: CheckpointChoice,
    /// Where to compute.
    pub device: DeviceChoice,
    /// Further runs or bundles that predict together with the first.
    pub ensemble: Vec<PathBuf>,
    /// The size of tiles `[d, h, w]`, for images that are too large to be computed at once.
    pub tile: Option<[usize; 3]>,
    /// Voxels that are computed at once; fewer need less memory.
    pub voxels_at_once: Option<usize>,
    /// Samples of each image by networks that draw them themselves (prob-unet, phiseg); other distributions give any number
    /// afterwards.
    pub samples: usize,
    /// The precision of distributions.
    pub precision: StoredPrecision,
}

impl Default for PredictorOptions {
    /// Returns the options of `ssn predict`.
    fn default() -> Self {
        Self::of(&PredictConfig::new("", ""))
    }
}

impl PredictorOptions {
    /// Returns the part of the settings of a prediction that concerns each image.
    pub fn of(config: &PredictConfig) -> Self {
        let PredictConfig { checkpoint, device, ensemble, tile, voxels_at_once, samples, precision, .. } =
            config;
        Self {
            checkpoint: *checkpoint,
            device: *device,
            ensemble: ensemble.clone(),
            tile: *tile,
            voxels_at_once: *voxels_at_once,
            samples: *samples,
            precision: *precision,
        }
    }

    fn whole_image(&self, gpu: Option<&DeviceProperties>) -> Result<WholeImageConfig> {
        let voxels_at_once = self.voxels_at_once.unwrap_or_else(|| voxels_at_once(gpu));
        let tiles = TileConfig { tile: self.tile, voxels_at_once, ..TileConfig::default() };
        tiles.check()?;
        let factor = if self.precision == StoredPrecision::Single { Storage::F32 } else { Storage::F16 };
        let latent_samples = LatentSamples { count: self.samples, seed: 0 };
        Ok(WholeImageConfig { tiles, factor, latent_samples })
    }
}

/// Returns how many voxels are computed at once: larger tiles share less of their surroundings, if there is memory for them.
pub(crate) fn voxels_at_once(gpu: Option<&DeviceProperties>) -> usize {
    let usual = TileConfig::default().voxels_at_once;
    if gpu.is_some_and(|gpu| gpu.free >= LARGE_GPU) { 4 * usual } else { usual }
}

/// An image in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    case: Case,
    /// Whether lengths are in millimeters.
    has_spacing: bool,
}

impl Volume {
    /// Wraps the values of an image, intensities as in its file; the network's own normalization is applied to them.
    ///
    /// `id` names the image in results, and is part of the seed of its samples.
    ///
    /// # Shapes
    /// `values` `[c, d, h, w]`, `w` running fastest; a 2D image has depth 1.
    ///
    /// # Errors
    /// A number of values that is not the product of the shape; a value that is not finite.
    pub fn new(id: impl Into<String>, values: Vec<f32>, [c, d, h, w]: [usize; 4]) -> Result<Self> {
        let needed = [c, d, h, w].into_iter().try_fold(1usize, usize::checked_mul).filter(|&n| n > 0);
        if needed != Some(values.len()) {
            let message = format!(
                "the image has {} values, but its shape [{c}, {d}, {h}, {w}] requires {}",
                values.len(),
                needed.map_or("at least 1 along every axis".to_owned(), |n| n.to_string())
            );
            return Err(Error::usage(message));
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let (voxel, channel) = (place % (d * h * w), place / (d * h * w));
            let message = format!(
                "channel {channel} of the image is {} at voxel {:?} (d, h, w), but must be finite",
                values[place],
                [voxel / (h * w), voxel / w % h, voxel % w]
            );
            return Err(Error::mismatch(message));
        }
        let case = Case { id: id.into(), channels: c, shape: [d, h, w], image: values, ..Case::default() };
        Ok(Self { case, has_spacing: false })
    }

    /// Wraps an image that was read from a file, with its geometry.
    pub fn from_image(id: impl Into<String>, image: &Image) -> Result<Self> {
        let values = image.to_f32();
        let mut volume = Self::new(id, values.data, values.shape)?.geometry(values.geometry);
        volume.case.header = image.source.clone();
        Ok(volume)
    }

    /// Sets the distance of neighboring voxels along `d, h, w`, in millimeters. Networks with a spacing of their own resample
    /// the image.
    ///
    /// # Errors
    /// A spacing that is not positive.
    pub fn spacing(self, [d, h, w]: [f64; 3]) -> Result<Self> {
        if ![d, h, w].iter().all(|x| x.is_finite() && *x > 0.0) {
            let message = format!("the spacing is [{d}, {h}, {w}], but must be positive");
            return Err(Error::usage(message));
        }
        Ok(self.geometry(Geometry::of_spacing([d, h, w])))
    }

    /// Sets spacing, origin and direction.
    pub fn geometry(mut self, geometry: Geometry) -> Self {
        self.case.geometry = geometry;
        self.has_spacing = true;
        self
    }

    /// Sets the region of interest, 1 inside and 0 outside: only the box around it is predicted.
    ///
    /// # Shapes
    /// `[d, h, w]`.
    ///
    /// # Errors
    /// A number of values that is not that of the voxels, or other values.
    pub fn mask(mut self, mask: Vec<u8>) -> Result<Self> {
        let voxels = self.case.voxels();
        if mask.len() != voxels || mask.iter().any(|&value| value > 1) {
            let message = format!("the mask needs {voxels} values, 0 or 1");
            return Err(Error::usage(message));
        }
        self.case.mask = Some(mask);
        Ok(self)
    }
}

/// A trained model, or an ensemble of them, that predicts images in memory.
///
/// ```no_run
/// use ssn::prelude::*;
/// use ssn::{Predictor, PredictorOptions, Volume};
///
/// let predictor = Predictor::open("run", &PredictorOptions::default(), Control::default())?;
/// let values = vec![0.0; 40 * 128 * 128];
/// let volume = Volume::new("case1", values, [1, 40, 128, 128])?.spacing([2.5, 0.7, 0.7])?;
/// let distribution = predictor.predict(volume, Control::default())?;
/// let samples = SampleSource::new(&distribution, 0, &Steering::default())?.labels(0..10)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Predictor {
    /// At least one.
    members: Vec<TrainedModel>,
    id: ModelId,
    config: WholeImageConfig,
    precision: StoredPrecision,
}

impl Predictor {
    /// Opens the folder of a run, or a bundle.
    pub fn open(model: impl AsRef<Path>, options: &PredictorOptions, control: Control<'_>) -> Result<Self> {
        let (device, gpu) = device(options.device, control)?;
        let config = options.whole_image(gpu.as_ref())?;
        let execution = Execution::on(device, Precision::F32);
        let paths = std::iter::once(model.as_ref()).chain(options.ensemble.iter().map(PathBuf::as_path));
        let members = paths
            .map(|path| Ok(TrainedModel::open(path, options.checkpoint, execution)?))
            .collect::<Result<Vec<_>>>()?;
        check_ensemble(&members, control)?;
        Ok(Self::of_members(members, config, options.precision))
    }

    /// Wraps a model in memory.
    pub fn of_model(model: Model, metadata: ModelMetadata, options: &PredictorOptions) -> Result<Self> {
        let config = options.whole_image(None)?;
        let member = TrainedModel::of_model(model, metadata)?;
        Ok(Self::of_members(vec![member], config, options.precision))
    }

    fn of_members(members: Vec<TrainedModel>, config: WholeImageConfig, precision: StoredPrecision) -> Self {
        let ids: Vec<ModelId> = members.iter().map(TrainedModel::id).collect();
        Self { id: ensemble_id(&ids.iter().collect::<Vec<_>>()), members, config, precision }
    }

    /// Returns the identity of the model, as in the files of its predictions.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// Returns the names of channels and classes and what else a prediction needs to know.
    pub fn metadata(&self) -> &ModelMetadata {
        &self.members[0].metadata
    }

    /// Returns the device: `cpu` or `cuda:0`.
    pub fn device(&self) -> String {
        match self.members[0].model.execution().device {
            Device::Cuda(number) => format!("cuda:{number}"),
            _ => "cpu".to_owned(),
        }
    }

    /// Returns the members of the ensemble, of which a single model is one.
    pub(crate) fn members(&self) -> &[TrainedModel] {
        &self.members
    }

    /// Predicts the distribution over segmentations of an image, the same as `ssn predict` writes.
    ///
    /// `control` gets the tiles done, and may stop between two of them.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`] if it was stopped; an image that the model does not take.
    pub fn predict(&self, volume: Volume, control: Control<'_>) -> Result<DistributionFile> {
        Ok(self.predict_timed(volume, control)?.0)
    }

    /// Predicts like [`Predictor::predict`], and returns how long the networks took.
    pub fn predict_timed(&self, volume: Volume, control: Control<'_>) -> Result<(DistributionFile, Timing)> {
        let Volume { case, has_spacing } = volume;
        let nifti_header = case.header.as_deref().map(hex);
        let image = StoredImage { has_spacing, nifti_header, ..StoredImage::default() };
        let (file, timing) = self.predict_case(case, control)?;
        Ok((file.with_precision(self.precision)?.of_image(Some(image)), timing))
    }

    /// Predicts images in their order. While one is computed, the next is read from `volumes`, and `each` gets the last one.
    ///
    /// # Errors
    /// The first of `volumes`, of a prediction, or of `each`.
    pub fn predict_all(
        &self,
        volumes: impl Iterator<Item = Result<Volume>> + Send,
        control: Control<'_>,
        each: impl FnMut(DistributionFile) -> Result<()> + Send,
    ) -> Result<()> {
        let items = volumes.map(|volume| volume.map(Some));
        pipeline::run(items, |volume| self.predict(volume, control), each, || true)
    }

    /// Predicts a case, and returns how long the networks took.
    pub(crate) fn predict_case(
        &self,
        case: Case,
        control: Control<'_>,
    ) -> Result<(DistributionFile, Timing)> {
        if case.mask.is_none() && self.metadata().normalization.needs_mask() {
            control.warn(&format!(
                "case {} has no region of interest, but the network learned intensities that were scaled inside one; add its mask",
                case.id
            ));
        }
        let one = |model: &TrainedModel, case: Case| {
            // The device of a thread may be another one.
            if let gpu @ Device::Cuda(_) = model.model.execution().device {
                ssn_cuda::use_device(gpu).map_err(ssn_nn::NnError::from)?;
            }
            let items = if model.model.latent().is_some() { "samples" } else { "tiles" };
            let mut phase = None;
            model.predict(case, &self.config, |done, total| {
                phase.get_or_insert_with(|| control.phase("computing", total, items)).reached(done);
                if control.should_stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        if let [model] = self.members.as_slice() {
            return Ok(one(model, case)?);
        }
        let (mut members, mut timing) = (vec![], Timing::default());
        for model in &self.members {
            let (member, more) = one(model, case.clone())?;
            timing.network += more.network;
            timing.gpu = more.gpu.map(|gpu| gpu + timing.gpu.unwrap_or(0.0));
            members.push(member);
        }
        Ok((mixture(&members, self.config.latent_samples.count)?, timing))
    }
}

/// Returns an error for members of an ensemble that take other images or know other classes.
fn check_ensemble(members: &[TrainedModel], control: Control<'_>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for model in members {
        if !seen.insert(&model.sha256) {
            control
                .warn(&format!("{} is in the ensemble more than once, and counts as often", model.id().name));
        }
    }
    let Some((first, others)) = members.split_first() else { return Ok(()) };
    let taken = |model: &TrainedModel| (model.metadata.channels.clone(), model.metadata.classes.clone());
    match others.iter().find(|other| taken(other) != taken(first)) {
        None => Ok(()),
        Some(other) => Err(Error::new(
            ErrorKind::Usage,
            format!(
                "{} takes {} and knows {}, but {} takes {} and knows {}: an ensemble has the same channels and classes",
                other.id().name,
                other.metadata.channels.join(", "),
                other.metadata.classes.join(", "),
                first.id().name,
                first.metadata.channels.join(", "),
                first.metadata.classes.join(", ")
            ),
        )),
    }
}
