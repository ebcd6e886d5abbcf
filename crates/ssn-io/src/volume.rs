//! Images in memory.

use crate::error::{Problem, refused};
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::voxels::Voxels;

/// Values of one type on a grid in the patient; a 2D image has depth 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume<T> {
    /// `[c, d, h, w]` in row-major order: `w` runs fastest.
    pub data: Vec<T>,
    /// `[c, d, h, w]`.
    pub shape: [usize; 4],
    /// Where the voxels lie.
    pub geometry: Geometry,
}

/// An image as its file stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The stored values, `[c, d, h, w]` in row-major order.
    pub voxels: Voxels,
    /// `[c, d, h, w]`.
    pub shape: [usize; 4],
    /// Where the voxels lie.
    pub geometry: Geometry,
    /// A value is `slope · stored + intercept`.
    pub slope: f64,
    /// See `slope`.
    pub intercept: f64,
    /// The NIfTI header that the image came with, kept for writing others like it: 348 bytes (NIfTI-1) or 540 (NIfTI-2), in
    /// the file's byte order. Of other formats nothing matters beyond the geometry.
    pub source: Option<Vec<u8>>,
}

impl Image {
    /// An image from its parts, with values as they are stored and no header.
    pub fn new(
        voxels: Voxels,
        shape: [usize; 4],
        geometry: Geometry,
        limits: &Limits,
    ) -> Result<Self, Problem> {
        let needed = limits.check_values(&shape)?;
        if voxels.len() != needed {
            let advice = "the file is inconsistent: export it again";
            return Err(refused("the number of values", voxels.len(), "what the shape asks for", advice));
        }
        Ok(Self { voxels, shape, geometry, slope: 1.0, intercept: 0.0, source: None })
    }

    /// The scaled values in single precision.
    pub fn to_f32(&self) -> Volume<f32> {
        let data = self.voxels.scaled_f32(self.slope, self.intercept);
        Volume { data, shape: self.shape, geometry: self.geometry }
    }

    /// The scaled values as labels; refuses values that are not whole numbers from 0 to 255.
    pub fn to_labels(&self) -> Result<Volume<u8>, Problem> {
        let data = self.voxels.scaled_labels(self.slope, self.intercept)?;
        Ok(Volume { data, shape: self.shape, geometry: self.geometry })
    }

    /// A label map on the grid of this image, with its header for writing.
    ///
    /// # Shapes
    /// `labels` `[d, h, w]` of this image.
    pub fn with_labels(&self, labels: Vec<u8>) -> Result<Self, Problem> {
        let [_, d, h, w] = self.shape;
        let image = Self::new(Voxels::U8(labels), [1, d, h, w], self.geometry, &Limits::default())?;
        Ok(Self { source: self.source.clone(), ..image })
    }
}
