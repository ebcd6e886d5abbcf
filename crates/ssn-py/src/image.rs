//! Arrays as image files, for the engine.

use std::path::PathBuf;

use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;
use ssn_io::{Geometry, Image, Limits, Voxels, write};

use crate::convert::{exception, not_a_slice, shape};
use crate::work;

/// Writes an image `[c, d, h, w]` in the format of the path's ending. `spacing` along d, h, w; `affine` as rows.
#[pyfunction]
#[pyo3(signature = (path, image, spacing, affine))]
pub fn write_image(
    py: Python<'_>,
    path: PathBuf,
    image: PyReadonlyArrayDyn<'_, f32>,
    spacing: Option<[f64; 3]>,
    affine: Option<[[f64; 4]; 4]>,
) -> PyResult<()> {
    let shape = shape::<4>(&image)?;
    let voxels = Voxels::F32(image.as_slice().map_err(not_a_slice)?.to_vec());
    let image =
        Image::new(voxels, shape, geometry(spacing, affine), &Limits::default()).map_err(not_a_slice)?;
    work::run(py, move |_| write(&path, &image))?.map_err(|error| exception(error.into()))
}

/// A geometry by an affine, or by the spacing along d, h, w alone.
pub fn geometry(spacing: Option<[f64; 3]>, affine: Option<[[f64; 4]; 4]>) -> Geometry {
    let Some(affine) = affine else {
        let [d, h, w] = spacing.unwrap_or([1.0; 3]);
        return Geometry { spacing: [w, h, d], ..Geometry::default() };
    };
    let spacing = [0, 1, 2].map(|axis| (0..3).map(|row| affine[row][axis].powi(2)).sum::<f64>().sqrt());
    let direction = [0, 1, 2].map(|row| [0, 1, 2].map(|axis| affine[row][axis] / spacing[axis]));
    Geometry { spacing, origin: [0, 1, 2].map(|row| affine[row][3]), direction }
}
