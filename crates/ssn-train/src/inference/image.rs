//! An image on the host and the parts of it that tiles need.

use std::iter::repeat_n;

use ssn_data::{Window, mask_box};
use ssn_eval::Region;

use crate::error::{ImageProblem, Result, refused};

/// A checked image on the host, and the parts of it that tiles need.
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
            return Err(ImageProblem::Value { channel, voxel, value: values[index] }.into());
        }
        let mut region = Region { start: [0; 3], size };
        if let Some(mask) = mask {
            length("the mask", mask.len(), &[d, h, w], voxels)?;
            region = mask_box(mask, size).ok_or(ImageProblem::EmptyMask)?;
        }
        Ok(Self { values, mask, channels, size, region })
    }

    /// Appends a part of all channels, `[c, d', h', w']`; beyond the image its border is repeated, as in training.
    pub(super) fn append_window(&self, window: Window, out: &mut Vec<f32>) {
        for plane in self.values.chunks_exact(self.size.iter().product()) {
            append(plane, self.size, window, None, out);
        }
    }

    /// Appends a part of the mask, if there is one, `[d', h', w']`, as 0 and 1; beyond the image it is 0, as in training.
    pub(super) fn append_mask(&self, window: Window, out: &mut Vec<u8>) {
        let from = out.len();
        if let Some(mask) = self.mask {
            append(mask, self.size, window, Some(0), out);
        }
        out[from..].iter_mut().for_each(|inside| *inside = u8::from(*inside > 0));
    }
}

fn length(what: &'static str, found: usize, shape: &[usize], expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ImageProblem::Length { what, found, expected, shape: shape.to_vec() }.into())
}

/// Appends the part of `plane` `[d, h, w]` inside a window; what lies beyond is `beyond`, or the nearest voxel.
fn append<T: Copy>(plane: &[T], size: [usize; 3], window: Window, beyond: Option<T>, out: &mut Vec<T>) {
    let [_, h, w] = size;
    let nearest = |axis: usize, i: usize| {
        let place = window.start[axis] + i as isize;
        let inside = place.clamp(0, size[axis] as isize - 1);
        (inside as usize, inside == place)
    };
    let (start, width) = (window.start[2], window.size[2]);
    let within = |x: isize| x.clamp(0, width as isize) as usize;
    let (from, to) = (within(-start), within(w as isize - start));
    for z in 0..window.size[0] {
        for y in 0..window.size[1] {
            let ((z, z_inside), (y, y_inside)) = (nearest(0, z), nearest(1, y));
            let row = &plane[(z * h + y) * w..][..w];
            if let Some(value) = beyond
                && !(z_inside && y_inside)
            {
                out.extend(repeat_n(value, width));
                continue;
            }
            out.extend(repeat_n(beyond.unwrap_or(row[0]), from));
            if from < to {
                out.extend_from_slice(&row[(start + from as isize) as usize..][..to - from]);
            }
            out.extend(repeat_n(beyond.unwrap_or(row[w - 1]), width - from.max(to)));
        }
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
            let (mut part, mut inside) = (vec![], vec![]);
            image.append_window(window, &mut part);
            image.append_mask(window, &mut inside);
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
