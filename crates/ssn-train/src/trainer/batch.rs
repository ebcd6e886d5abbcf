//! Batches as tensors.

use ssn_data::{Batch, Grid};
use tch::{Kind, Tensor};

use crate::error::Result;
use ssn_nn::loss::target::Target;
use ssn_nn::space::Size;

/// A batch as tensors.
pub(super) struct Seen {
    /// What there is of the patches, `[b, c, dᵢ, hᵢ, wᵢ]` for each grid.
    pub parts: Vec<Tensor>,
    /// The size of the patches.
    pub size: Size,
    /// `[b, d, h, w]`.
    pub mask: Option<Tensor>,
    /// The label maps.
    pub target: Target,
}

/// The grids of a batch out of all its numbers, `[b, n]`, sharing memory.
pub(super) fn parts(images: &Tensor, batch: &Batch) -> Result<Vec<Tensor>> {
    let [b, c] = [batch.image_shape[0], batch.image_shape[1]].map(|n| n as i64);
    let mut start = 0;
    let part = |grid: &Grid| {
        let ([d, h, w], count) = (grid.count.map(|n| n as i64), c * grid.voxels() as i64);
        start += count;
        Ok(images.f_narrow(1, start - count, count)?.f_view([b, c, d, h, w])?)
    };
    batch.grids.iter().map(part).collect()
}

/// The size of the patches of a batch.
pub(super) fn patch_size(batch: &Batch) -> Size {
    [2, 3, 4].map(|axis| batch.image_shape[axis] as i64)
}

/// A batch as tensors on the processor.
pub(super) fn tensors(batch: &Batch, classes: i64) -> Result<Seen> {
    let images = Tensor::f_from_slice(&batch.images)?.f_view([batch.image_shape[0] as i64, -1])?;
    let parts = parts(&images, batch)?;
    let [b, t, d, h, w] = batch.target_shape.map(|n| n as i64);
    let maps = Tensor::f_from_slice(&batch.targets)?.f_view([b, t, d * h * w])?.f_to_kind(Kind::Int64)?;
    let mask =
        batch.masks.as_ref().map(|mask| Tensor::f_from_slice(mask)?.f_view([b, d, h, w])).transpose()?;
    Ok(Seen { parts, size: patch_size(batch), mask, target: Target::classes(maps, classes)? })
}
