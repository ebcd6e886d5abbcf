//! The prediction of a whole image of any size: tiles stitched into one distribution.
//!
//! Column q of the factor is the same latent variable wherever the head applies it. So the tiles' factors are columns of
//! one factor of the whole image: side by side, or as the weighted sum where tiles overlap. Samples of it have no
//! seams, and voxels of different tiles stay correlated. Means and variances are weighted means.
//!
//! Only the result grows with the image: everything else is as large as the tiles that are computed at once.

mod canvas;
mod gpu;
mod image;
mod latent;

use std::time::Instant;

use serde::{Deserialize, Serialize};
use ssn_cuda::Event;
use ssn_eval::Region;
use tch::{Device, Kind, Tensor};

pub use canvas::Storage;
pub use image::Image;

use crate::error::{ImageProblem, Result};
use crate::inference::tiles::{Tile, TileConfig, Tiles};
use canvas::Canvas;
use gpu::OnGpu;
use ssn_nn::heads::{HeadConfig, Prediction};
use ssn_nn::layers::Mode;
use ssn_nn::model::Model;

/// How a whole image is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WholeImageConfig {
    /// How it is divided.
    pub tiles: TileConfig,
    /// How the factor is kept, by far the largest part of a distribution. Where tiles overlap, it is rounded once for
    /// each.
    pub factor: Storage,
    /// The samples that a network with latent variables draws; other networks have any number afterwards.
    pub draws: Draws,
}

/// The samples of a network with latent variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draws {
    /// How many.
    pub count: usize,
    /// The seed; sample i of a seed does not depend on how many there are.
    pub seed: u64,
}

impl Default for Draws {
    fn default() -> Self {
        Self { count: 100, seed: 0 }
    }
}

/// What a network says about a whole image.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeImage {
    /// The size of the image, `[d, h, w]`.
    pub size: [usize; 3],
    /// The part of the image that was predicted: the smallest box that holds the mask, or all of it. Everything else
    /// is background.
    pub region: Region,
    /// What the network says of its uncertainty.
    pub says: Says,
    /// How long it took.
    pub timing: Timing,
}

impl WholeImage {
    /// The distribution of logits, or logits alone; nothing of a network that drew samples.
    pub fn distribution(&self) -> Option<&ssn_core::LowRankNormal> {
        match &self.says {
            Says::Distribution(distribution) | Says::Logits(distribution) => Some(distribution),
            Says::Samples { .. } => None,
        }
    }
}

/// What a network says of its uncertainty, on the voxels of a region in the order of the image.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// A distribution of logits. Outside the mask the mean is what the network says, the factor is 0 and the diagonal ε.
    Distribution(ssn_core::LowRankNormal),
    /// Nothing: the mean holds its logits, the rank and the diagonal are 0.
    Logits(ssn_core::LowRankNormal),
    /// What it drew.
    Samples {
        /// The logarithm of the samples' mean probabilities, `[c, v]`.
        mean: Vec<f32>,
        /// The label maps, `[m, v]`.
        labels: Vec<u8>,
    },
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

/// Predicts a whole image, in evaluation mode and without gradients. `progress` is told how many tiles are done, and of
/// how many.
pub fn predict(
    model: &Model,
    image: &Image,
    config: &WholeImageConfig,
    mut progress: impl FnMut(usize, usize),
) -> Result<WholeImage> {
    let (found, expected) = (image.channels(), model.config().channels);
    if found as i64 != expected {
        return Err(ImageProblem::Channels { found, expected }.into());
    }
    let start = Instant::now();
    if let Some(latent) = model.latent() {
        let says = tch::no_grad(|| latent::draw(model, latent, image, config, progress))?;
        let total = start.elapsed().as_secs_f64();
        let timing = Timing { network: total, total, gpu: None };
        return Ok(WholeImage { size: image.size(), region: image.region(), says, timing });
    }
    let tiles = Tiles::new(image.size(), image.region(), &model.config().backbone, &config.tiles)?;
    let stochastic = matches!(model.config().head, HeadConfig::Stochastic(_));
    let (distribution, timing) = match OnGpu::new(model, image, rows(model))? {
        Some(on_gpu) => tch::no_grad(|| stitch_on_gpu(model, on_gpu, &tiles, config, progress))?,
        None => {
            let mut stitched = Stitched::new(model, image.region(), config.factor)?;
            let (mut done, total) = (0, tiles.count());
            progress(done, total);
            for batch in tiles.batches() {
                let prediction = tch::no_grad(|| forward(model, image, &batch))?;
                stitched.add(&batch, &prediction)?;
                done += batch.len();
                progress(done, total);
            }
            let timing = Timing { network: start.elapsed().as_secs_f64(), ..Timing::default() };
            (stitched.finish(image.region())?, timing)
        }
    };
    let timing = Timing { total: start.elapsed().as_secs_f64(), ..timing };
    let says = if stochastic { Says::Distribution(distribution) } else { Says::Logits(distribution) };
    Ok(WholeImage { size: image.size(), region: image.region(), says, timing })
}

/// Computes and adds up all tiles on a GPU. `progress` is told what is begun; the GPU follows.
fn stitch_on_gpu(
    model: &Model,
    mut on_gpu: OnGpu,
    tiles: &Tiles,
    config: &WholeImageConfig,
    mut progress: impl FnMut(usize, usize),
) -> Result<(ssn_core::LowRankNormal, Timing)> {
    let start = Instant::now();
    let ([classes, rank], voxels) = (rows(model), on_gpu.voxels());
    let (mut done, total, mut moments) = (0, tiles.count(), vec![]);
    for batch in tiles.batches() {
        progress(done, total);
        let (begin, end) = (Event::new()?, Event::new()?);
        begin.record()?;
        let prediction = on_gpu.forward(model, &batch)?;
        on_gpu.add(&batch, &prediction)?;
        end.record()?;
        moments.push((begin, end));
        done += batch.len();
    }
    ssn_cuda::synchronize()?;
    progress(done, total);
    let network = start.elapsed().as_secs_f64();
    let mut gpu = 0.0;
    for (begin, end) in &moments {
        gpu += end.seconds_since(begin)?;
    }
    let [mean, diagonal, factor] = on_gpu.fetch(classes, config.factor)?;
    let distribution = ssn_core::LowRankNormal::new(classes, voxels, rank, mean, diagonal, factor)?;
    Ok((distribution, Timing { network, gpu: Some(gpu), ..Timing::default() }))
}

/// The classes and the rank of a network; 0 without a distribution.
fn rows(model: &Model) -> [usize; 2] {
    let rank = match model.config().head {
        HeadConfig::Stochastic(head) => head.rank as usize,
        _ => 0,
    };
    [model.config().classes as usize, rank]
}

/// The prediction of some tiles, `[b, …, v]` with the voxels of a tile's output.
fn forward(model: &Model, image: &Image, batch: &[Tile]) -> Result<Prediction> {
    let (mut values, mut mask) = (vec![], vec![]);
    for tile in batch {
        image.append_window(tile.input(), &mut values);
        image.append_mask(tile.output(), &mut mask);
    }
    let [input, output] = [batch[0].input(), batch[0].output()].map(|window| window.size.map(|n| n as i64));
    let [d, h, w] = input;
    let (b, c) = (batch.len() as i64, model.config().channels);
    let values = Tensor::f_from_slice(&values)?.f_view([b, c, d, h, w])?;
    let [d, h, w] = output;
    let mask = image.is_masked().then(|| Tensor::f_from_slice(&mask)?.f_view([b, d, h, w])).transpose()?;
    Ok(model.forward(&values, mask.as_ref(), Mode::Evaluation)?)
}

/// The parts of a distribution while tiles are added.
struct Stitched {
    mean: Canvas,
    diagonal: Canvas,
    factor: Canvas,
    classes: usize,
    rank: usize,
    /// One part of one tile on the host.
    tile: Vec<f32>,
}

impl Stitched {
    fn new(model: &Model, region: Region, factor: Storage) -> Result<Self> {
        let [classes, rank] = rows(model);
        Ok(Self {
            mean: Canvas::new("mean", [1, classes], region, Storage::F32)?,
            diagonal: Canvas::new("diagonal", [1, classes], region, Storage::F32)?,
            factor: Canvas::new("factor", [rank, classes], region, factor)?,
            classes,
            rank,
            tile: vec![],
        })
    }

    fn add(&mut self, batch: &[Tile], prediction: &Prediction) -> Result<()> {
        match prediction {
            Prediction::Deterministic(logits) => add(&mut self.mean, batch, logits, &mut self.tile),
            Prediction::Stochastic(distribution) => {
                let canvases = [&mut self.mean, &mut self.diagonal, &mut self.factor];
                for (canvas, part) in canvases.into_iter().zip(distribution.parts()) {
                    add(canvas, batch, part, &mut self.tile)?;
                }
                Ok(())
            }
        }
    }

    fn finish(self, region: Region) -> Result<ssn_core::LowRankNormal> {
        let [mean, diagonal, factor] = [self.mean, self.diagonal, self.factor].map(Canvas::into_values);
        let (classes, voxels) = (self.classes, region.voxels());
        Ok(ssn_core::LowRankNormal::new(classes, voxels, self.rank, mean, diagonal, factor)?)
    }
}

/// Adds one part of a prediction, `[b, …, v]`, by way of a buffer.
fn add(canvas: &mut Canvas, batch: &[Tile], part: &Tensor, buffer: &mut Vec<f32>) -> Result<()> {
    for (i, tile) in batch.iter().enumerate() {
        let values =
            part.f_get(i as i64)?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?;
        buffer.resize(values.numel(), 0.0);
        values.f_copy_data(buffer, values.numel())?;
        canvas.add(tile, buffer)?;
    }
    Ok(())
}
