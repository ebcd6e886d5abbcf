//! Inference on whole images of any size: tiles aggregated into one distribution.
//!
//! Column q of the factor is the same latent variable wherever the head applies it. So the tiles' factors are columns of
//! one factor of the whole image: side by side, or as the weighted sum where tiles overlap. Samples of it have no
//! seams, and voxels of different tiles stay correlated. Means and variances are weighted means.
//!
//! Only the result and a copy of the image grow with the image: everything else is as large as the tiles that are computed
//! at once.

mod aggregator;
mod image;
mod latent;
pub mod tiles;

use std::ops::ControlFlow;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use ssn_core::{LowRankNormal, Region};
use ssn_cuda::CudaEvent;
use ssn_eval::PredictionKind;
use ssn_io::Error;
use ssn_nn::error::Result;
use ssn_nn::heads::HeadConfig;
use ssn_nn::model::Model;
use tch::Device;

pub use aggregator::Storage;
pub use image::InputImage;

use aggregator::{CpuAggregator, GpuAggregator, classes_and_rank, result_device};
use image::ImageTensors;
use tiles::{TileConfig, Tiles};

/// How a whole image is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WholeImageConfig {
    /// How it is divided.
    pub tiles: TileConfig,
    /// How the factor is stored, by far the largest part of a distribution. Where tiles overlap, it is rounded once for
    /// each.
    pub factor: Storage,
    /// The samples that a network with latent variables draws; other networks have any number afterwards.
    pub latent_samples: LatentSamples,
}

/// The samples of a network with latent variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentSamples {
    /// How many.
    pub count: usize,
    /// The seed; sample i of a seed does not depend on how many there are.
    pub seed: u64,
}

impl Default for LatentSamples {
    fn default() -> Self {
        Self { count: 100, seed: 0 }
    }
}

/// The prediction of a whole image.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeImagePrediction {
    /// The size of the image, `[d, h, w]`.
    pub size: [usize; 3],
    /// The part of the image that was predicted: the smallest box that holds the mask, or all of it. Everything else
    /// is background.
    pub region: Region,
    /// What the network gives: a distribution of logits, logits alone, or samples that it drew itself.
    pub kind: PredictionKind,
    /// The distribution of logits on the voxels of the region, in the order of the image. Outside the mask the mean is the
    /// output of the network, the factor is 0 and the diagonal ε. Of logits alone, the mean holds them, the rank and the
    /// diagonal are 0; of samples the same with the logarithm of their mean probabilities.
    pub distribution: LowRankNormal,
    /// The label maps of samples, `[m, v]`.
    pub samples: Option<Vec<u8>>,
    /// How long it took.
    pub timing: Timing,
}

/// How long a prediction took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// From the first tile to the last; of a network that draws samples, all of it.
    pub network: f64,
    /// From the image on the host to the result on the host.
    pub total: f64,
    /// The part of that in which a GPU had a tile to work on; short gaps between the kernels of a tile count as well.
    pub gpu: Option<f64>,
}

/// Goes on to the last tile.
pub fn never_stop(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Predicts a whole image, in evaluation mode and without gradients. `on_tile` gets the number of tiles
/// done, and of all, and may stop the work.
///
/// # Errors
/// [`ErrorKind::Stopped`](ssn_io::ErrorKind::Stopped) if `on_tile` breaks, and what makes an image or a network unusable.
pub fn predict(
    model: &Model,
    image: &InputImage,
    config: &WholeImageConfig,
    mut on_tile: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<WholeImagePrediction> {
    let mut tile_done = |done, total| match on_tile(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::stopped().into()),
    };
    let (found, expected) = (image.channels, model.config().channels);
    if found as i64 != expected {
        let reason = format!("the image has {found} channels, but the network was made for {expected}");
        return Err(Error::mismatch(reason).into());
    }
    let (size, region, start) = (image.size, image.region, Instant::now());
    if let Some(latent) = model.latent() {
        let (distribution, labels) =
            tch::no_grad(|| latent::sample(model, latent, image, config, tile_done))?;
        let total = start.elapsed().as_secs_f64();
        let timing = Timing { network: total, total, gpu: None };
        let (kind, samples) = (PredictionKind::Sampled, Some(labels));
        return Ok(WholeImagePrediction { size, region, kind, distribution, samples, timing });
    }
    let tiles = Tiles::new(size, region, &model.config().backbone, &config.tiles)?;
    let device = result_device(model, image)?;
    let tensors = ImageTensors::new(image, device)?;
    let (distribution, timing) = match device {
        Device::Cpu => {
            let mut aggregator = CpuAggregator::new(model, region, config.factor)?;
            let (mut done, total) = (0, tiles.count());
            tile_done(done, total)?;
            for batch in tiles.batches() {
                let prediction = tch::no_grad(|| tensors.forward(model, &batch))?;
                aggregator.add(&batch, &prediction)?;
                done += batch.len();
                tile_done(done, total)?;
            }
            let timing = Timing { network: start.elapsed().as_secs_f64(), ..Timing::default() };
            (aggregator.finish(region)?, timing)
        }
        _ => tch::no_grad(|| predict_on_gpu(model, &tensors, region, &tiles, config, tile_done))?,
    };
    let timing = Timing { total: start.elapsed().as_secs_f64(), ..timing };
    let kind = match model.config().head {
        HeadConfig::Stochastic(_) => PredictionKind::Stochastic,
        _ => PredictionKind::Deterministic,
    };
    Ok(WholeImagePrediction { size, region, kind, distribution, samples: None, timing })
}

/// Computes and adds up all tiles on a GPU. `tile_done` gets what is launched; the GPU follows.
fn predict_on_gpu(
    model: &Model,
    image: &ImageTensors,
    region: Region,
    tiles: &Tiles,
    config: &WholeImageConfig,
    mut tile_done: impl FnMut(usize, usize) -> Result<()>,
) -> Result<(LowRankNormal, Timing)> {
    let start = Instant::now();
    let (mut aggregator, [classes, rank]) = (GpuAggregator::new(model, region)?, classes_and_rank(model));
    let (mut done, total, mut moments) = (0, tiles.count(), vec![]);
    for batch in tiles.batches() {
        tile_done(done, total)?;
        let (begin, end) = (CudaEvent::new()?, CudaEvent::new()?);
        begin.record()?;
        let prediction = image.forward(model, &batch)?;
        aggregator.add(&batch, &prediction)?;
        end.record()?;
        moments.push((begin, end));
        done += batch.len();
    }
    ssn_cuda::synchronize()?;
    tile_done(done, total)?;
    let network = start.elapsed().as_secs_f64();
    let mut gpu = 0.0;
    for (begin, end) in &moments {
        gpu += end.seconds_since(begin)?;
    }
    let [mean, diagonal, factor] = aggregator.fetch(classes, config.factor)?;
    let distribution = LowRankNormal::new(classes, region.voxels(), rank, mean, diagonal, factor)?;
    Ok((distribution, Timing { network, gpu: Some(gpu), ..Timing::default() }))
}
