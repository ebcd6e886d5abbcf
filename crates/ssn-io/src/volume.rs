//! Images in memory.

use crate::error::Problem;
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
    /// What else the file said about the image, kept for writing others like it.
    pub source: Source,
}

/// The header that an image came with.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Source {
    /// None whose details matter beyond the geometry.
    #[default]
    Other,
    /// The bytes of a NIfTI header, 348 (NIfTI-1) or 540 (NIfTI-2), in the file's byte order.
    Nifti(Vec<u8>),
}

impl Source {
    /// The bytes of a NIfTI header, if it was one.
    pub fn nifti(&self) -> Option<&[u8]> {
        match self {
            Self::Nifti(bytes) => Some(bytes),
            Self::Other => None,
        }
    }
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
            return Err(Problem::Field {
                field: "the number of values",
                found: voxels.len().to_string(),
                allowed: "what the shape asks for",
                advice: "the file is inconsistent: export it again",
            });
        }
        Ok(Self { voxels, shape, geometry, slope: 1.0, intercept: 0.0, source: Source::Other })
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
