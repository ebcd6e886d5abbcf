//! An image on the host and the parts of it that tiles need.

use ssn_core::{Region, Window};
use ssn_data::mask_box;
use ssn_io::{Error, ErrorKind};
use ssn_nn::error::{NnError, Result, refused};
use ssn_nn::heads::Prediction;
use ssn_nn::layers::Mode;
use ssn_nn::model::Model;
use tch::{Device, Kind, Tensor};

use super::tiles::ImageTile;

/// A checked image on the host.
#[derive(Debug, Clone, Copy)]
pub struct InputImage<'a> {
    /// `[c, d, h, w]`.
    pub(super) values: &'a [f32],
    /// `[d, h, w]`.
    pub(super) mask: Option<&'a [u8]>,
    pub(super) channels: usize,
    /// `[d, h, w]`.
    pub(super) size: [usize; 3],
    /// The smallest box that holds the mask; the whole image if there is none.
    pub(super) region: Region,
}

impl<'a> InputImage<'a> {
    /// An image from its values; `mask` is 0 outside the region of interest and anything else inside.
    ///
    /// # Shapes
    /// `values` `[c, d, h, w]`, `mask` `[d, h, w]`, where `size` is `[d, h, w]`; `w` runs fastest.
    pub fn new(values: &'a [f32], channels: usize, size: [usize; 3], mask: Option<&'a [u8]>) -> Result<Self> {
        let Some(voxels) = size.iter().try_fold(1usize, |n, &m| n.checked_mul(m)).filter(|&n| n > 0) else {
            return refused(
                "the image size",
                format!("{size:?}"),
                "at least 1 along every axis, and fit into memory",
            );
        };
        let [d, h, w] = size;
        length("the image", values.len(), &[channels, d, h, w], channels.saturating_mul(voxels))?;
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            let (channel, voxel) = (index / voxels, index % voxels);
            let voxel = [voxel / (h * w), voxel / w % h, voxel % w];
            let value = values[index];
            let reason = format!(
                "channel {channel} of the image is {value} at voxel {voxel:?} (d, h, w), but must be finite"
            );
            return Err(Error::mismatch(reason).into());
        }
        let mut region = Region { start: [0; 3], size };
        if let Some(mask) = mask {
            length("the mask", mask.len(), &[d, h, w], voxels)?;
            region = mask_box(mask, size).ok_or_else(|| {
                Error::mismatch("the mask is 0 everywhere").advise("leave it out to predict the whole image")
            })?;
        }
        Ok(Self { values, mask, channels, size, region })
    }
}

fn length(what: &str, found: usize, shape: &[usize], expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let reason = format!("{what} has {found} values, but its shape {shape:?} asks for {expected}");
    Err(Error::mismatch(reason).into())
}

/// Returns the error of a number of the network that cannot be kept; `voxel` is `[d, h, w]` in the whole image.
pub(super) fn bad_output(part: &str, class: usize, voxel: [usize; 3], value: f32, rule: &str) -> NnError {
    let reason = format!(
        "the network's {part} is {value} for class {class} at voxel {voxel:?} (d, h, w), but must {rule}"
    );
    let advice = "the usual reasons are an image whose intensities are not scaled like those of training and a network \
                  that has hardly begun to learn";
    Error::new(ErrorKind::NonFinite, reason).advise(advice).into()
}

/// An image as tensors, on any device, and the parts of it that tiles need.
#[derive(Debug)]
pub(super) struct ImageTensors {
    /// `[c, d, h, w]`.
    values: Tensor,
    /// `[1, d, h, w]`, 1 inside and 0 outside.
    mask: Option<Tensor>,
    /// `[d, h, w]`.
    size: [usize; 3],
}

impl ImageTensors {
    /// Copies an image to a device.
    pub(super) fn new(image: &InputImage, device: Device) -> Result<Self> {
        let [d, h, w] = image.size.map(|n| n as i64);
        let values = Tensor::f_from_slice(image.values)?.f_view([-1, d, h, w])?.f_to_device(device)?;
        let mask = image.mask.map(|mask| {
            let mask = Tensor::f_from_slice(mask)?.f_view([1, d, h, w])?.f_to_device(device)?;
            mask.f_gt(0)?.f_to_kind(Kind::Uint8)
        });
        Ok(Self { values, mask: mask.transpose()?, size: image.size })
    }

    /// The prediction of some tiles, `[b, …, v]` with the voxels of a tile's output.
    pub(super) fn forward(&self, model: &Model, batch: &[ImageTile]) -> Result<Prediction> {
        let (mut images, mut masks) = (vec![], vec![]);
        for tile in batch {
            images.push(self.window(tile.input())?);
            masks.extend(self.mask_window(tile.output())?);
        }
        let mask = if masks.is_empty() { None } else { Some(Tensor::f_cat(&masks, 0)?) };
        match model.forward(&Tensor::f_stack(&images, 0)?, mask.as_ref(), Mode::Evaluation)? {
            Prediction::Stochastic(distribution) => Ok(Prediction::Stochastic(distribution.limited()?)),
            logits => Ok(logits),
        }
    }

    /// A part of the image, `[c, d', h', w']`; beyond the image its border is repeated, as in training.
    pub(super) fn window(&self, window: Window) -> Result<Tensor> {
        let mut part = self.values.shallow_clone();
        for axis in 0..3 {
            let (start, length) = (window.start[axis], window.size[axis] as isize);
            let last = self.size[axis] as isize - 1;
            if start >= 0 && start + length <= last + 1 {
                part = part.f_narrow(axis as i64 + 1, start as i64, length as i64)?;
            } else {
                let places: Vec<i64> = (start..start + length).map(|i| i.clamp(0, last) as i64).collect();
                let places = Tensor::f_from_slice(&places)?.f_to_device(self.values.device())?;
                part = part.f_index_select(axis as i64 + 1, &places)?;
            }
        }
        Ok(part)
    }

    /// A part of the mask, if there is one, `[1, d', h', w']`; beyond the image it is 0, as in training.
    fn mask_window(&self, window: Window) -> Result<Option<Tensor>> {
        let Some(mask) = &self.mask else { return Ok(None) };
        let [d, h, w] = window.size.map(|n| n as i64);
        let whole = Tensor::f_zeros([1, d, h, w], (Kind::Uint8, mask.device()))?;
        let (mut from, mut to) = (mask.shallow_clone(), whole.shallow_clone());
        for axis in 0..3 {
            let (start, end) = (window.start[axis], window.start[axis] + window.size[axis] as isize);
            let (first, last) = (start.max(0), end.min(self.size[axis] as isize));
            if first >= last {
                return Ok(Some(whole));
            }
            from = from.f_narrow(axis as i64 + 1, first as i64, (last - first) as i64)?;
            to = to.f_narrow(axis as i64 + 1, (first - start) as i64, (last - first) as i64)?;
        }
        to.f_copy_(&from)?;
        Ok(Some(whole))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_hold_the_nearest_voxel(
            size in [1..4usize, 1..4, 1..6],
            start in [-5..6isize, -5..6, -9..9],
            window in [1..4usize, 1..4, 1..12],
        ) {
            let values: Vec<f32> = (0..2 * size.iter().product::<usize>()).map(|i| i as f32).collect();
            let mask: Vec<u8> = (0..size.iter().product::<usize>()).map(|i| (i % 3) as u8 + 1).collect();
            let image = InputImage::new(&values, 2, size, Some(&mask)).unwrap();
            let window = Window { start, size: window };
            let tensors = ImageTensors::new(&image, Device::Cpu).unwrap();
            let flat = |part: Tensor| part.reshape([-1]);
            let part = Vec::<f32>::try_from(flat(tensors.window(window).unwrap())).unwrap();
            let inside = Vec::<u8>::try_from(flat(tensors.mask_window(window).unwrap().unwrap())).unwrap();
            let mut i = 0;
            for c in 0..2 {
                for z in 0..window.size[0] {
                    for y in 0..window.size[1] {
                        for x in 0..window.size[2] {
                            let place = [0, 1, 2].map(|k| start[k] + [z, y, x][k] as isize);
                            let [d, h, w] = [0, 1, 2].map(|k| place[k].clamp(0, size[k] as isize - 1) as usize);
                            let index = ((c * size[0] + d) * size[1] + h) * size[2] + w;
                            prop_assert_eq!(part[i], values[index]);
                            if c == 0 {
                                let outside = (0..3).any(|k| place[k] < 0 || place[k] >= size[k] as isize);
                                prop_assert_eq!(inside[i], u8::from(!outside));
                            }
                            i += 1;
                        }
                    }
                }
            }
            prop_assert_eq!((part.len(), inside.len()), (i, i / 2));
        }
    }

    #[test]
    fn the_region_is_the_box_of_the_mask() {
        let (values, mut mask) = (vec![0.0; 24], vec![0; 24]);
        assert_eq!(InputImage::new(&values, 1, [2, 3, 4], None).unwrap().region.size, [2, 3, 4]);
        (mask[5], mask[10]) = (1, 7); // [0, 1, 1] and [0, 2, 2]
        let image = InputImage::new(&values, 1, [2, 3, 4], Some(&mask)).unwrap();
        assert_eq!(image.region, Region { start: [0, 1, 1], size: [1, 2, 2] });
    }

    #[test]
    fn every_defect_is_named() {
        let message =
            |values: &[f32], size, mask| InputImage::new(values, 2, size, mask).unwrap_err().to_string();
        assert_eq!(
            message(&[0.0; 12], [1, 0, 4], None),
            "the image size is [1, 0, 4], but it must be at least 1 along every axis, and fit into memory"
        );
        assert!(message(&[0.0; 12], [usize::MAX, 2, 4], None).ends_with("fit into memory"));
        assert_eq!(
            message(&[0.0; 11], [1, 2, 3], None),
            "the image has 11 values, but its shape [2, 1, 2, 3] asks for 12"
        );
        assert_eq!(
            message(&[0.0; 12], [1, 2, 3], Some(&[1; 5])),
            "the mask has 5 values, but its shape [1, 2, 3] asks for 6"
        );
        assert_eq!(
            message(&[0.0; 12], [1, 2, 3], Some(&[0; 6])),
            "the mask is 0 everywhere; leave it out to predict the whole image"
        );
        let mut values = [0.0; 12];
        values[6 + 4] = f32::NAN;
        assert_eq!(
            message(&values, [1, 2, 3], None),
            "channel 1 of the image is NaN at voxel [0, 1, 1] (d, h, w), but must be finite"
        );
    }
}
