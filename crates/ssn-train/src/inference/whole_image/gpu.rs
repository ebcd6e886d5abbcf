//! A whole image on a GPU: it is brought there once, tiles are cut, computed and added up there, and the result is fetched.
//!
//! Tiles are begun one after the other without fetching anything, so that the GPU has work all the time.

use half::f16;
use ssn_core::distribution::{MAX_PARAMETER, Values};
use ssn_data::Window;
use ssn_eval::Region;
use tch::{Device, Kind, Tensor};

use super::canvas::Storage;
use super::image::Image;
use crate::error::{ImageProblem, Result};
use crate::inference::tiles::Tile;
use ssn_nn::heads::Prediction;
use ssn_nn::layers::Mode;
use ssn_nn::model::Model;

/// Image and result may take this part of the GPU's free memory: looking for wrong numbers takes twice the result.
const SHARE_OF_MEMORY: f64 = 0.3;

/// Mean, diagonal and factor of a region while tiles are added, `[rows, d, h, w]` each.
pub(super) struct OnGpu {
    image: Tensor,
    mask: Option<Tensor>,
    size: [usize; 3],
    region: Region,
    sums: [Tensor; 3],
}

impl OnGpu {
    /// Brings an image to the GPU; nothing if the result has no room there.
    pub(super) fn new(model: &Model, image: &Image, [classes, rank]: [usize; 2]) -> Result<Option<Self>> {
        let device = model.execution().device;
        if device == Device::Cpu {
            return Ok(None);
        }
        let region = image.region();
        let numbers = (2 + rank) as f64 * (classes * region.voxels()) as f64;
        let numbers = numbers + image.values().len() as f64;
        if 4.0 * numbers > SHARE_OF_MEMORY * ssn_cuda::describe(device)?.free as f64 {
            return Ok(None);
        }
        let [d, h, w] = image.size().map(|n| n as i64);
        let values = Tensor::f_from_slice(image.values())?.f_view([-1, d, h, w])?.f_to_device(device)?;
        let mask = image.mask().map(|mask| {
            Tensor::f_from_slice(mask)?
                .f_view([1, d, h, w])?
                .f_to_device(device)?
                .f_gt(0)?
                .f_to_kind(Kind::Uint8)
        });
        let [d, h, w] = region.size.map(|n| n as i64);
        let sum = |rows: usize| Tensor::f_zeros([rows as i64, d, h, w], (Kind::Float, device));
        let sums = [sum(classes)?, sum(classes)?, sum(rank * classes)?];
        Ok(Some(Self { image: values, mask: mask.transpose()?, size: image.size(), region, sums }))
    }

    /// The voxels of the region.
    pub(super) fn voxels(&self) -> usize {
        self.region.voxels()
    }

    /// The prediction of some tiles, `[b, …, v]`.
    pub(super) fn forward(&self, model: &Model, batch: &[Tile]) -> Result<Prediction> {
        let (mut images, mut masks) = (vec![], vec![]);
        for tile in batch {
            images.push(self.window(tile.input())?);
            if let Some(mask) = &self.mask {
                masks.push(self.mask_window(mask, tile.output())?);
            }
        }
        let mask = if masks.is_empty() { None } else { Some(Tensor::f_cat(&masks, 0)?) };
        Ok(model.forward(&Tensor::f_stack(&images, 0)?, mask.as_ref(), Mode::Evaluation)?)
    }

    /// A part of the image, `[c, d', h', w']`; beyond the image its border is repeated.
    fn window(&self, window: Window) -> Result<Tensor> {
        let mut part = self.image.shallow_clone();
        for axis in 0..3 {
            let (start, length) = (window.start[axis], window.size[axis] as isize);
            let last = self.size[axis] as isize - 1;
            if start >= 0 && start + length <= last + 1 {
                part = part.f_narrow(axis as i64 + 1, start as i64, length as i64)?;
            } else {
                let places: Vec<i64> = (start..start + length).map(|i| i.clamp(0, last) as i64).collect();
                let places = Tensor::f_from_slice(&places)?.f_to_device(self.image.device())?;
                part = part.f_index_select(axis as i64 + 1, &places)?;
            }
        }
        Ok(part)
    }

    /// A part of the mask, `[1, d', h', w']`; beyond the image it is 0.
    fn mask_window(&self, mask: &Tensor, window: Window) -> Result<Tensor> {
        let [d, h, w] = window.size.map(|n| n as i64);
        let whole = Tensor::f_zeros([1, d, h, w], (Kind::Uint8, mask.device()))?;
        let (mut from, mut to) = (mask.shallow_clone(), whole.shallow_clone());
        for axis in 0..3 {
            let (start, end) = (window.start[axis], window.start[axis] + window.size[axis] as isize);
            let (first, last) = (start.max(0), end.min(self.size[axis] as isize));
            if first >= last {
                return Ok(whole);
            }
            from = from.f_narrow(axis as i64 + 1, first as i64, (last - first) as i64)?;
            to = to.f_narrow(axis as i64 + 1, (first - start) as i64, (last - first) as i64)?;
        }
        to.f_copy_(&from)?;
        Ok(whole)
    }

    /// Adds what tiles say, times their weights.
    pub(super) fn add(&mut self, batch: &[Tile], prediction: &Prediction) -> Result<()> {
        let parts = match prediction {
            Prediction::Deterministic(logits) => vec![logits],
            Prediction::Stochastic(distribution) => distribution.parts().to_vec(),
        };
        for (sum, part) in self.sums.iter().zip(parts) {
            for (i, tile) in batch.iter().enumerate() {
                let [d, h, w] = tile.output().size.map(|n| n as i64);
                let mut values = part.f_get(i as i64)?.f_reshape([-1, d, h, w])?;
                let mut place = sum.shallow_clone();
                for (axis, span) in tile.spans.iter().enumerate() {
                    let (dimension, count) = (axis as i64 + 1, span.weights.len() as i64);
                    values = values.f_narrow(dimension, span.first as i64, count)?;
                    let start = span.start + span.first - self.region.start[axis];
                    place = place.f_narrow(dimension, start as i64, count)?;
                    if span.weights.iter().any(|&weight| weight != 1.0) {
                        let mut shape = [1i64; 4];
                        shape[axis + 1] = count;
                        let weights = Tensor::f_from_slice(&span.weights)?.f_view(shape)?;
                        values = values.f_mul(&weights.f_to_device(values.device())?)?;
                    }
                }
                let _ = place.f_add_(&values)?;
            }
        }
        Ok(())
    }

    /// Fetches mean, diagonal and factor, `[rows, v]` each.
    pub(super) fn fetch(self, classes: usize, factor: Storage) -> Result<[Values; 3]> {
        let [mean, diagonal, factors] = &self.sums;
        Ok([
            self.fetch_part("mean", mean, classes, Storage::F32)?,
            self.fetch_part("diagonal", diagonal, classes, Storage::F32)?,
            self.fetch_part("factor", factors, classes, factor)?,
        ])
    }

    fn fetch_part(
        &self,
        part: &'static str,
        sum: &Tensor,
        classes: usize,
        storage: Storage,
    ) -> Result<Values> {
        let (largest, rule) = match storage {
            Storage::F32 => (MAX_PARAMETER, "be within ± 1e20"),
            Storage::F16 => (f16::MAX.to_f32(), "be within ± 65504 to be kept as f16"),
        };
        let flat = sum.f_reshape([-1])?;
        if flat.numel() > 0 {
            // A comparison with what is not a number is false.
            let wrong = flat.f_abs()?.f_le(f64::from(largest))?.f_logical_not()?.f_to_kind(Kind::Uint8)?;
            let at = wrong.f_argmax(None::<i64>, false)?.f_int64_value(&[])? as usize;
            if wrong.f_int64_value(&[at as i64])? != 0 {
                let value = flat.f_double_value(&[at as i64])? as f32;
                let (row, voxel) = (at / self.region.voxels(), self.region.voxel(at % self.region.voxels()));
                return Err(ImageProblem::Output { part, class: row % classes, voxel, value, rule }.into());
            }
        }
        let count = flat.numel();
        Ok(match storage {
            Storage::F32 => {
                let mut values = vec![0f32; count];
                flat.f_to_device(Device::Cpu)?.f_copy_data(&mut values, count)?;
                Values::F32(values)
            }
            Storage::F16 => {
                let mut values = vec![f16::ZERO; count];
                flat.f_to_kind(Kind::Half)?.f_to_device(Device::Cpu)?.f_copy_data(&mut values, count)?;
                Values::F16(values)
            }
        })
    }
}
