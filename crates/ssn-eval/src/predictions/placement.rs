//! Where the values of a distribution's region lie in the whole image, and back.

use ssn_core::LabelMap;
use ssn_io::{Image, Limits, Voxels};

use crate::error::{EvalError, Result};
use crate::predictions::description::Description;
use crate::predictions::distribution_file::DistributionFile;

impl DistributionFile {
    /// Labels on the region, put in their place: a label map `[d, h, w]` of the whole image. Outside the region and
    /// outside its mask it is background.
    ///
    /// # Errors
    /// When the map has another number of voxels than the region.
    pub fn labels_on_image(&self, map: &LabelMap) -> Result<Vec<u8>> {
        let mut labels = self.on_image(map.labels(), 0)?;
        self.clear_outside_mask(&mut labels, 0);
        Ok(labels)
    }

    /// Values `[v]` on the region, put in their place in the whole image, `[d, h, w]`; `outside` everywhere else, and
    /// outside the mask.
    ///
    /// # Errors
    /// When there is another number of values than voxels of the region.
    pub fn values_on_image(&self, values: &[f32], outside: f32) -> Result<Vec<f32>> {
        let mut values = self.on_image(values, outside)?;
        self.clear_outside_mask(&mut values, outside);
        Ok(values)
    }

    /// The labels `[v]` of the region, out of a label map `[d, h, w]` of the whole image.
    ///
    /// # Errors
    /// When the map has another number of voxels than the image.
    pub fn crop_to_region(&self, labels: &[u8]) -> Result<Vec<u8>> {
        self.check_count("the label map", labels.len(), "the image", self.description().voxels())?;
        Ok(self.description().region.cut(labels, self.description().size))
    }

    /// A label map `[d, h, w]` of the whole image as an image, in the geometry of the one that was predicted.
    ///
    /// # Errors
    /// When the map has another number of voxels than the image.
    pub fn as_image(&self, labels: Vec<u8>) -> Result<Image> {
        self.check_count("the label map", labels.len(), "the image", self.description().voxels())?;
        self.image(Voxels::U8(labels), 1)
    }

    /// Values `[channels, d, h, w]` of the whole image as an image.
    ///
    /// # Errors
    /// When there is another number of values than the image has, times the channels.
    pub fn values_as_image(&self, values: Vec<f32>, channels: usize) -> Result<Image> {
        self.image(Voxels::F32(values), channels)
    }

    /// Rows of values `[channels, v]` on the region as an image with a channel for each; `outside` elsewhere, by channel.
    ///
    /// # Errors
    /// When there is another number of values than rows of the region.
    pub fn rows_as_image(&self, rows: &[f32], outside: impl Fn(usize) -> f32) -> Result<Image> {
        let rows = rows.chunks(self.distribution().voxels());
        let (channels, mut values) = (rows.len(), vec![]);
        for (channel, row) in rows.enumerate() {
            values.extend(self.values_on_image(row, outside(channel))?);
        }
        self.values_as_image(values, channels)
    }

    /// Probabilities `[l, v]` of the region as an image with a channel per label; outside, all is background.
    pub fn probabilities_as_image(&self, rows: &[f32]) -> Result<Image> {
        self.rows_as_image(rows, |label| if label == 0 { 1.0 } else { 0.0 })
    }

    fn image(&self, voxels: Voxels, channels: usize) -> Result<Image> {
        let ([d, h, w], geometry) = (self.description().size, self.description().geometry);
        Image::new(voxels, [channels, d, h, w], geometry, &Limits::default())
            .map_err(|problem| EvalError::Parts(problem.to_string()))
    }

    fn on_image<T: Copy>(&self, values: &[T], outside: T) -> Result<Vec<T>> {
        self.check_count("the map", values.len(), "the region", self.distribution().voxels())?;
        let Description { size, region, .. } = self.description();
        let mut image = vec![outside; self.description().voxels()];
        for (row, values) in region.rows(*size).zip(values.chunks_exact(region.size[2])) {
            image[row].copy_from_slice(values);
        }
        Ok(image)
    }

    fn clear_outside_mask<T: Copy>(&self, image: &mut [T], outside: T) {
        let Some(mask) = self.mask() else { return };
        let Description { size, region, .. } = self.description();
        for (row, inside) in region.rows(*size).zip(mask.chunks_exact(region.size[2])) {
            let outside_mask = image[row].iter_mut().zip(inside).filter(|(_, inside)| **inside == 0);
            outside_mask.for_each(|(value, _)| *value = outside);
        }
    }

    fn check_count(&self, what: &str, found: usize, of: &str, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let case = &self.description().case;
        Err(EvalError::Parts(format!("case {case}: {what} has {found} voxels, but {of} has {expected}")))
    }
}
