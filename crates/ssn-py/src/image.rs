//! The geometry of arrays.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ssn_io::Geometry;

/// A geometry by the rows of an affine, or by the spacing along d, h, w alone.
pub fn geometry(spacing: Option<[f64; 3]>, affine: Option<[[f64; 4]; 4]>) -> PyResult<Geometry> {
    let Some([i, j, k, _]) = affine else {
        return Ok(spacing.map_or_else(Geometry::default, Geometry::of_spacing));
    };
    Geometry::from_affine([i, j, k])
        .ok_or_else(|| PyValueError::new_err("an axis of the affine has no length"))
}
