//! Staging of batches: the one that the GPU works on, and the next one on its way there.

use ssn_core::Lattice;
use ssn_cuda::PinnedBuffer;
use ssn_data::Batch;
use ssn_nn::error::{NnError, Result, refused};
use ssn_nn::loss::Target;
use tch::{Device, Kind, Tensor};

use super::objective::{BatchTensors, grids, patch_size};

/// A batch on the device, and the next one on its way.
pub(super) struct Staging {
    /// All numbers of the images, `[b, n]`, and the grids that they are.
    images: Tensor,
    pub(super) tensors: BatchTensors,
    target: Tensor,
    /// The noise of latent variables, `[b, n]`, if the network has any.
    pub(super) noise: Option<(PinnedBuffer<f32>, Tensor)>,
    slots: [Slot; 2],
    /// The batch that the next step finds.
    pub(super) staged: Option<u64>,
    pub(super) shape: BatchShape,
}

/// What all batches of a captured step have in common.
#[derive(Debug, PartialEq)]
pub(super) struct BatchShape {
    pub(super) image: [usize; 5],
    target: [usize; 5],
    grids: Vec<Lattice>,
    has_mask: bool,
    /// Where the items begin in the whole batch, and its items.
    pub(super) first: usize,
    pub(super) of: usize,
}

/// One of two batches on their way: host memory that the device reads, and where it goes.
struct Slot {
    images: PinnedBuffer<f32>,
    labels: PinnedBuffer<u8>,
    on_device: Tensor,
    /// Targets, then masks.
    bytes: Tensor,
}

impl Staging {
    /// Room for batches of a form, such as this one, whose images take so many numbers of noise.
    pub(super) fn new(
        shape: BatchShape,
        batch: &Batch,
        device: Device,
        [classes, noise]: [i64; 2],
    ) -> Result<Self> {
        let [b, t, d, h, w] = batch.target_shape.map(|n| n as i64);
        let room = || {
            let each = batch.images.len() as i64 / b.max(1);
            Tensor::f_zeros([b, each], (Kind::Float, device))
        };
        let mask =
            shape.has_mask.then(|| Tensor::f_zeros([b, d, h, w], (Kind::Uint8, device))).transpose()?;
        let slot = || {
            let labels = batch.targets.len() + mask.as_ref().map_or(0, Tensor::numel);
            Ok::<_, NnError>(Slot {
                images: PinnedBuffer::new(batch.images.len())?,
                labels: PinnedBuffer::new(labels)?,
                on_device: room()?,
                bytes: Tensor::f_zeros([labels as i64], (Kind::Uint8, device))?,
            })
        };
        let images = room()?;
        let noise = match noise {
            0 => None,
            n => {
                Some((PinnedBuffer::new((b * n) as usize)?, Tensor::f_zeros([b, n], (Kind::Float, device))?))
            }
        };
        let target = Tensor::f_zeros([b, t, d * h * w], (Kind::Int64, device))?;
        let slots = [slot()?, slot()?];
        let tensors = BatchTensors {
            parts: grids(&images, batch)?,
            size: patch_size(batch),
            mask,
            target: Target::from_checked(target.shallow_clone(), classes),
        };
        Ok(Self { images, tensors, target, noise, slots, staged: None, shape })
    }

    /// Copies a batch to the device on the side stream, and to its place after the present work.
    pub(super) fn stage(&mut self, batch: &Batch, classes: i64) -> Result<()> {
        if let Some(&label) = batch.targets.iter().find(|&&label| i64::from(label) >= classes) {
            return refused("target", label, "a class number, below the number of classes");
        }
        // The slot's last batch is two steps back, and the step after that has been waited for.
        let slot = &mut self.slots[(batch.number % 2) as usize];
        copy(&batch.images, slot.images.values());
        let (targets, masks) = slot.labels.values().split_at_mut(batch.targets.len());
        targets.copy_from_slice(&batch.targets);
        match &batch.masks {
            Some(given) => masks.copy_from_slice(given),
            None => masks.fill(1),
        }
        let images = slot.images.tensor(&self.images.size())?;
        ssn_cuda::copy_on_side_stream(&mut slot.on_device, &images)?;
        ssn_cuda::copy_on_side_stream(&mut slot.bytes, &slot.labels.tensor(&[-1])?)?;
        ssn_cuda::wait_for_copies()?;
        ssn_cuda::copy_async(&mut self.images, &slot.on_device)?;
        let count = self.target.numel() as i64;
        let labels = slot.bytes.f_narrow(0, 0, count)?.f_view(self.target.size().as_slice())?;
        ssn_cuda::copy_async(&mut self.target, &labels)?;
        if let Some(mask) = &mut self.tensors.mask {
            let size = mask.size();
            let bytes = slot.bytes.f_slice(0, count, None::<i64>, 1)?.f_view(size.as_slice())?;
            ssn_cuda::copy_async(mask, &bytes)?;
        }
        self.staged = Some(batch.number);
        Ok(())
    }
}

impl BatchShape {
    pub(super) fn of(batch: &Batch, has_mask: bool) -> Self {
        Self {
            image: batch.image_shape,
            target: batch.target_shape,
            grids: batch.grids.clone(),
            has_mask,
            first: batch.first,
            of: batch.of,
        }
    }
}

/// Copies with several threads: a batch of volumes has hundreds of megabytes.
fn copy(from: &[f32], to: &mut [f32]) {
    const PART: usize = 1 << 22;
    if from.len() <= PART {
        return to.copy_from_slice(from);
    }
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let part = from.len().div_ceil(threads);
        for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
}
