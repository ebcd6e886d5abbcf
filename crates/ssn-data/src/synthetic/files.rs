//! A synthetic set as files that people can look at: a folder of images beside one of labels.

use std::fs;
use std::path::Path;

use ssn_io::{Image, Limits, Problem, Voxels, write};

use super::Synthetic;
use crate::case::{Case, Cases};
use crate::error::{DataError, Result};

/// Label 1 of pictures with two classes, so that masks are white on black.
const WHITE: u8 = u8::MAX;

impl Synthetic {
    /// Writes the set into a folder: 2D as PNG of 16 bits, 3D as NIfTI. The labels of rater n end in `_n`; masks, if
    /// there are any, are in a third folder. `progress` gets the number of cases done.
    pub fn write(&self, folder: &Path, progress: &dyn Fn(usize)) -> Result<()> {
        let flat = self.config().size[0] == 1;
        let ending = if flat { "png" } else { "nii.gz" };
        let [images, labels, masks] = ["images", "labels", "masks"].map(|name| folder.join(name));
        for folder in [&images, &labels].into_iter().chain(self.config().mask.then_some(&masks)) {
            fs::create_dir_all(folder)
                .map_err(|error| DataError::File(Problem::Io(error).in_file(folder)))?;
        }
        for index in 0..self.len() {
            let case = self.load(index)?;
            let save = |folder: &Path, suffix: String, voxels: Voxels| {
                let path = folder.join(format!("{}{suffix}.{ending}", case.id));
                let image = as_image(&case, voxels).map_err(|problem| problem.in_file(&path))?;
                Ok::<_, DataError>(write(&path, &image)?)
            };
            save(
                &images,
                String::new(),
                if flat { Voxels::U16(gray(&case)) } else { Voxels::F32(case.image.clone()) },
            )?;
            for (number, rater) in case.raters.iter().enumerate() {
                save(&labels, format!("_{number}"), Voxels::U8(self.stored(rater, flat)))?;
            }
            if let Some(mask) = &case.mask {
                save(&masks, String::new(), Voxels::U8(mask.clone()))?;
            }
            progress(index + 1);
        }
        Ok(())
    }

    fn stored(&self, labels: &[u8], flat: bool) -> Vec<u8> {
        let is_mask = flat && self.config().classes == 2;
        labels.iter().map(|&label| if is_mask { label * WHITE } else { label }).collect()
    }
}

/// Values from 0 to 1 as 16 bits: finer than the noise.
fn gray(case: &Case) -> Vec<u16> {
    case.image.iter().map(|x| (x.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16).collect()
}

fn as_image(case: &Case, voxels: Voxels) -> Result<Image, Problem> {
    let [d, h, w] = case.shape;
    Image::new(voxels, [1, d, h, w], case.geometry, &Limits::default())
}
