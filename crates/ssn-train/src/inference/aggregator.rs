//! Where tiles are added up: mean, diagonal and factor of a region, in host memory or on a GPU.

use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfBitsVecExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use ssn_core::Region;
use ssn_core::distribution::{MAX_PARAMETER, Values};
use ssn_cuda::PinnedBuffer;
use ssn_io::{Error, ErrorKind};
use ssn_nn::error::Result;
use ssn_nn::heads::{HeadConfig, Prediction};
use ssn_nn::model::Model;
use tch::{Device, Kind, Tensor};

use super::image::{InputImage, bad_output};
use super::tiles::ImageTile;

/// The precision in which numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Single precision.
    #[default]
    F32,
    /// Half precision, for numbers up to 65504.
    F16,
}

/// One of mean, diagonal and factor: `rows` numbers for each voxel of a region, classes running faster than ranks.
#[derive(Debug)]
pub(super) struct PartAggregator {
    part: &'static str,
    classes: usize,
    rows: usize,
    region: Region,
    values: Values,
    /// A row of one tile, weighted.
    line: Vec<f32>,
    /// The same row as it stands in half precision.
    wide: Vec<f32>,
}

impl PartAggregator {
    /// Zeros for `ranks` × `classes` rows.
    pub(super) fn new(
        part: &'static str,
        [ranks, classes]: [usize; 2],
        region: Region,
        storage: Storage,
    ) -> Result<Self> {
        let rows = ranks * classes;
        let count = rows.saturating_mul(region.voxels());
        let values = match storage {
            Storage::F32 => Values::F32(zeros(part, count)?),
            Storage::F16 => Values::F16(zeros(part, count)?),
        };
        Ok(Self { part, classes, rows, region, values, line: vec![], wide: vec![] })
    }

    /// Adds the output of a tile, times its weights.
    ///
    /// # Shapes
    /// `values` `[rows, d, h, w]`, where `d, h, w` is the size of the tile's output.
    pub(super) fn add(&mut self, tile: &ImageTile, values: &[f32]) -> Result<()> {
        let ([_, th, tw], [d, h, w]) = (tile.output().size, tile.spans);
        let tile_voxels = tile.output().size.iter().product::<usize>();
        let [_, rh, rw] = self.region.size;
        for (row, values) in values.chunks_exact(tile_voxels).enumerate().take(self.rows) {
            for (z, dw) in (d.first..).zip(&d.weights) {
                for (y, hw) in (h.first..).zip(&h.weights) {
                    let line = &values[(z * th + y) * tw + w.first..][..w.weights.len()];
                    let voxel = [d.start + z, h.start + y, w.start + w.first];
                    self.check(row, voxel, line)?;
                    self.line.clear();
                    self.line.extend(line.iter().zip(&w.weights).map(|(value, ww)| value * (dw * hw * ww)));
                    let [z, y, x] = [0, 1, 2].map(|axis| voxel[axis] - self.region.start[axis]);
                    self.add_line(row * self.region.voxels() + (z * rh + y) * rw + x);
                }
            }
        }
        Ok(())
    }

    /// Adds the weighted line to the numbers from `place` on.
    fn add_line(&mut self, place: usize) {
        let n = self.line.len();
        match &mut self.values {
            Values::F32(values) => {
                for (sum, value) in values[place..place + n].iter_mut().zip(&self.line) {
                    *sum += value;
                }
            }
            Values::F16(values) => {
                let sums = &mut values[place..place + n];
                self.wide.resize(n, 0.0);
                sums.convert_to_f32_slice(&mut self.wide);
                for (sum, value) in self.wide.iter_mut().zip(&self.line) {
                    *sum += value;
                }
                sums.convert_from_f32_slice(&self.wide);
            }
        }
    }

    /// Refuses numbers that cannot be kept; `voxel` is that of the line's first.
    fn check(&self, row: usize, voxel: [usize; 3], line: &[f32]) -> Result<()> {
        let largest = match self.values {
            Values::F32(_) => MAX_PARAMETER,
            Values::F16(_) => f16::MAX.to_f32(),
        };
        let fits = |value: &f32| value.abs() <= largest;
        // Without a way out of the loop it is vectorized.
        if line.iter().fold(true, |all, value| all & fits(value)) {
            return Ok(());
        }
        let Some(x) = line.iter().position(|value| !fits(value)) else { return Ok(()) };
        let (value, [d, h, w]) = (line[x], voxel);
        let rule = match self.values {
            Values::F16(_) if value.abs() <= MAX_PARAMETER => "be within ± 65504 to be kept as f16",
            _ => "be within ± 1e20",
        };
        let (part, class) = (self.part, row % self.classes);
        Err(bad_output(part, class, [d, h, w + x], value, rule))
    }

    /// The sums `[rows, v]`.
    pub(super) fn into_values(self) -> Values {
        self.values
    }
}

/// So many zeros, or an error where there is no memory for them.
fn zeros<T: Clone + Default>(part: &'static str, count: usize) -> Result<Vec<T>> {
    let mut values = vec![];
    values.try_reserve_exact(count).map_err(|_| {
        Error::new(ErrorKind::OutOfMemory, format!("there is no memory for {count} numbers of the {part}"))
            .advise("keep the factor as f16, or give a smaller image or a mask")
    })?;
    values.resize(count, T::default());
    Ok(values)
}

/// The classes and the rank of a network; 0 without a distribution.
pub(super) fn classes_and_rank(model: &Model) -> [usize; 2] {
    let rank = match model.config().head {
        HeadConfig::Stochastic(head) => head.rank as usize,
        _ => 0,
    };
    [model.config().classes as usize, rank]
}

/// Mean, diagonal and factor of a region while tiles are added in host memory.
pub(super) struct CpuAggregator {
    mean: PartAggregator,
    diagonal: PartAggregator,
    factor: PartAggregator,
    classes: usize,
    rank: usize,
    /// One part of one tile on the host.
    tile: Vec<f32>,
}

impl CpuAggregator {
    pub(super) fn new(model: &Model, region: Region, factor: Storage) -> Result<Self> {
        let [classes, rank] = classes_and_rank(model);
        Ok(Self {
            mean: PartAggregator::new("mean", [1, classes], region, Storage::F32)?,
            diagonal: PartAggregator::new("diagonal", [1, classes], region, Storage::F32)?,
            factor: PartAggregator::new("factor", [rank, classes], region, factor)?,
            classes,
            rank,
            tile: vec![],
        })
    }

    pub(super) fn add(&mut self, batch: &[ImageTile], prediction: &Prediction) -> Result<()> {
        match prediction {
            Prediction::Deterministic(logits) => add(&mut self.mean, batch, logits, &mut self.tile),
            Prediction::Stochastic(distribution) => {
                let all = [&mut self.mean, &mut self.diagonal, &mut self.factor];
                for (sums, part) in all.into_iter().zip(distribution.parts()) {
                    add(sums, batch, part, &mut self.tile)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn finish(self, region: Region) -> Result<ssn_core::LowRankNormal> {
        let [mean, diagonal, factor] =
            [self.mean, self.diagonal, self.factor].map(PartAggregator::into_values);
        let (classes, voxels) = (self.classes, region.voxels());
        Ok(ssn_core::LowRankNormal::new(classes, voxels, self.rank, mean, diagonal, factor)?)
    }
}

/// Adds one part of a prediction, `[b, …, v]`, by way of a buffer.
fn add(sums: &mut PartAggregator, batch: &[ImageTile], part: &Tensor, buffer: &mut Vec<f32>) -> Result<()> {
    for (i, tile) in batch.iter().enumerate() {
        let values =
            part.f_get(i as i64)?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?;
        buffer.resize(values.numel(), 0.0);
        values.f_copy_data(buffer, values.numel())?;
        sums.add(tile, buffer)?;
    }
    Ok(())
}

/// Image and result may take this part of the GPU's free memory: looking for wrong numbers takes twice the result.
const SHARE_OF_MEMORY: f64 = 0.3;

/// Where the tiles of an image are added up: on the GPU of the model if image and result have room there, else in host memory.
pub(super) fn result_device(model: &Model, image: &InputImage) -> Result<Device> {
    let device = model.execution().device;
    if device == Device::Cpu {
        return Ok(device);
    }
    let [classes, rank] = classes_and_rank(model);
    let numbers = (2 + rank) as f64 * (classes * image.region.voxels()) as f64;
    let numbers = numbers + image.values.len() as f64;
    let room = SHARE_OF_MEMORY * ssn_cuda::device_properties(device)?.free as f64;
    Ok(if 4.0 * numbers > room { Device::Cpu } else { device })
}

/// Mean, diagonal and factor of a region while tiles are added on a GPU, `[rows, d, h, w]` each.
///
/// Tiles are launched one after the other without fetching anything, so that the GPU always has work.
pub(super) struct GpuAggregator {
    region: Region,
    sums: [Tensor; 3],
}

impl GpuAggregator {
    pub(super) fn new(model: &Model, region: Region) -> Result<Self> {
        let [classes, rank] = classes_and_rank(model);
        let [d, h, w] = region.size.map(|n| n as i64);
        let options = (Kind::Float, model.execution().device);
        let sum = |rows: usize| Tensor::f_zeros([rows as i64, d, h, w], options);
        Ok(Self { region, sums: [sum(classes)?, sum(classes)?, sum(rank * classes)?] })
    }

    /// Adds the outputs of tiles, times their weights.
    pub(super) fn add(&mut self, batch: &[ImageTile], prediction: &Prediction) -> Result<()> {
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
                return Err(bad_output(part, row % classes, voxel, value, rule));
            }
        }
        Ok(match storage {
            Storage::F32 => {
                let mut values = vec![0f32; flat.numel()];
                fetch(&flat, &mut values)?;
                Values::F32(values)
            }
            Storage::F16 => {
                // Zeros of a plain type are not written until they are used.
                let mut values = vec![0u16; flat.numel()].reinterpret_into::<f16>();
                fetch(&flat.f_to_kind(Kind::Half)?, &mut values)?;
                Values::F16(values)
            }
        })
    }
}

/// Bytes that are fetched at once, through memory that the GPU writes by itself.
const FETCHED: usize = 64 << 20;
/// Numbers that a thread copies at a time.
const COPIED: usize = 1 << 18;

/// Copies the numbers of a tensor on a GPU. Memory that was never used is slow to write: all threads do.
fn fetch<T: ssn_cuda::Number + Send + Sync>(from: &Tensor, to: &mut [T]) -> Result<()> {
    let block = (FETCHED / size_of::<T>()).min(to.len());
    let mut pinned = PinnedBuffer::<T>::new(block)?;
    for (number, to) in to.chunks_mut(block.max(1)).enumerate() {
        let (start, count) = ((number * block) as i64, to.len() as i64);
        let mut place = pinned.tensor(&[-1])?.f_narrow(0, 0, count)?;
        ssn_cuda::copy_async(&mut place, &from.f_narrow(0, start, count)?)?;
        ssn_cuda::synchronize()?;
        let fetched = &*pinned.values();
        let parts = to.par_chunks_mut(COPIED).zip(fetched.par_chunks(COPIED));
        parts.for_each(|(to, from)| to.copy_from_slice(&from[..to.len()]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::tiles::{TileConfig, Tiles};
    use ssn_nn::model::ModelConfig;

    #[test]
    fn numbers_that_cannot_be_kept_are_named() {
        let region = Region { start: [0, 2, 3], size: [1, 5, 6] };
        let unet = ModelConfig::lidc().backbone;
        let tiles = Tiles::new([1, 60, 60], region, &unet, &TileConfig::default()).unwrap();
        let tile = tiles.batches().flatten().next().unwrap();
        let message = |storage, value: f32| {
            let mut part = PartAggregator::new("factor", [2, 3], region, storage).unwrap();
            let mut values = vec![0.0; 6 * 64 * 64];
            values[0] = f32::NAN; // outside the region: it does not matter
            values[(4 * 64 + 5) * 64 + 7] = value;
            part.add(&tile, &values).map_err(|error| error.to_string())
        };
        let starts = |message: std::result::Result<(), String>, start: &str| {
            let message = message.unwrap_err();
            assert!(message.starts_with(start), "{message}");
        };
        let place = "for class 1 at voxel [0, 5, 7] (d, h, w), but must be within";
        starts(
            message(Storage::F32, f32::NAN),
            &format!("the network's factor is NaN {place} ± 1e20; the usual reason"),
        );
        starts(
            message(Storage::F16, 1e5),
            &format!("the network's factor is 100000 {place} ± 65504 to be kept as f16"),
        );
        starts(message(Storage::F16, f32::INFINITY), &format!("the network's factor is inf {place} ± 1e20"));
        assert_eq!(message(Storage::F32, 1e5), Ok(()));
    }

    #[test]
    fn what_does_not_fit_into_memory_is_an_error() {
        assert_eq!(
            zeros::<f32>("factor", usize::MAX / 2).unwrap_err().to_string(),
            "there is no memory for 9223372036854775807 numbers of the factor; keep the factor as f16, or give \
             a smaller image or a mask"
        );
    }
}
