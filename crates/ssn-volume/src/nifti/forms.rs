//! The geometry in a header: sform, qform, or voxel sizes alone.

use super::fields::Fields;
use super::quaternion;
use super::shape::Shape;
use crate::error::Problem;
use crate::geometry::{Geometry, Tolerance};

/// The codes of the standard, `NIFTI_XFORM_UNKNOWN` to `NIFTI_XFORM_TEMPLATE_OTHER`.
const CODES: std::ops::RangeInclusive<i64> = 0..=5;
/// `NIFTI_XFORM_SCANNER_ANAT`: the code of geometry from other formats.
const SCANNER: i64 = 1;
/// `NIFTI_UNITS_MM`.
const MILLIMETRES: i64 = 2;
/// The volume that the three unit vectors along the axes span at least; 1 when they are perpendicular.
const SMALLEST_VOLUME: f64 = 1e-6;

/// The geometry that the header gives the image.
pub(super) fn read(fields: &Fields, shape: &Shape) -> Result<Geometry, Problem> {
    let layout = fields.layout();
    if code(fields.integer(layout.sform_code, 0), "sform_code")? > 0 {
        return from_sform(fields);
    }
    if code(fields.integer(layout.qform_code, 0), "qform_code")? > 0 {
        return from_qform(fields, shape);
    }
    from_sizes(fields, shape)
}

/// Readers disagree about other codes: some take them for none, some for a geometry.
fn code(found: i64, field: &'static str) -> Result<i64, Problem> {
    if CODES.contains(&found) {
        return Ok(found);
    }
    Err(Problem::Field {
        field,
        found: found.to_string(),
        allowed: "a code from 0 to 5",
        advice: "set the geometry of the file again with the tool that wrote it",
    })
}

fn from_sform(fields: &Fields) -> Result<Geometry, Problem> {
    let srow = fields.layout().srow;
    let affine = [0, 1, 2].map(|row| [0, 1, 2, 3].map(|column| fields.float(srow, 4 * row + column)));
    let geometry = Geometry::from_affine(affine);
    geometry.filter(|found| determinant(&found.direction).abs() >= SMALLEST_VOLUME).ok_or_else(|| {
        Problem::Field {
            field: "the sform (srow_x, srow_y, srow_z)",
            found: format!("{affine:?}"),
            allowed: "finite, with three axes that span a volume",
            advice: "set sform_code to 0 to use the qform instead, or set the geometry again",
        }
    })
}

fn from_qform(fields: &Fields, shape: &Shape) -> Result<Geometry, Problem> {
    let layout = fields.layout();
    let bcd = [0, 1, 2].map(|i| fields.float(layout.quatern, i));
    let Some(mut direction) = quaternion::to_matrix(bcd, fields.version) else {
        return Err(Problem::Field {
            field: "the quaternion (quatern_b, quatern_c, quatern_d)",
            found: format!("{bcd:?}"),
            allowed: "finite, with squares that sum to at most 1",
            advice: "set the geometry of the file again",
        });
    };
    // 0 means 1 by the standard; readers disagree about negative values other than -1.
    let handedness = fields.float(layout.pixdim, 0);
    if !(handedness == -1.0 || handedness.is_finite() && handedness >= 0.0) {
        return Err(Problem::Field {
            field: "pixdim[0] (qfac)",
            found: handedness.to_string(),
            allowed: "1 or -1",
            advice: "set the geometry of the file again",
        });
    }
    if handedness < 0.0 {
        direction.iter_mut().for_each(|row| row[2] = -row[2]);
    }
    let origin = [0, 1, 2].map(|i| fields.float(layout.qoffset, i));
    if !origin.iter().all(|x| x.is_finite()) {
        return Err(Problem::Field {
            field: "qoffset_x, qoffset_y, qoffset_z",
            found: format!("{origin:?}"),
            allowed: "finite",
            advice: "set the geometry of the file again",
        });
    }
    Ok(Geometry { spacing: sizes(fields, shape, 3)?, origin, direction })
}

/// Without a form the origin is the middle of the image and x points left, as in nibabel and the older Analyze.
fn from_sizes(fields: &Fields, shape: &Shape) -> Result<Geometry, Problem> {
    let spacing = sizes(fields, shape, shape.axes)?;
    let mut geometry = Geometry { spacing, ..Geometry::default() };
    geometry.direction[0][0] = -1.0;
    for axis in 0..3 {
        let middle = (shape.extents()[axis] - 1) as f64 / 2.0;
        geometry.origin[axis] = -middle * spacing[axis] * geometry.direction[axis][axis];
    }
    Ok(geometry)
}

/// The voxel sizes along i, j, k; axes from `stored` on have none in the header and get 1.
fn sizes(fields: &Fields, shape: &Shape, stored: usize) -> Result<[f64; 3], Problem> {
    let mut sizes = [1.0; 3];
    for axis in 0..stored.min(3) {
        let size = fields.float(fields.layout().pixdim, axis + 1);
        match size {
            size if size.is_finite() && size > 0.0 => sizes[axis] = size,
            // Writers leave the size along an axis of one voxel empty; it moves nothing.
            0.0 if shape.extents()[axis] == 1 => {}
            _ => {
                return Err(Problem::Field {
                    field: "a voxel size (pixdim[1] to pixdim[3])",
                    found: format!("{size} along axis {}", axis + 1),
                    allowed: "positive and finite",
                    advice: "set the voxel sizes of the file again",
                });
            }
        }
    }
    Ok(sizes)
}

/// Writes a geometry: as sform, and as qform too where it is a rotation.
pub(super) fn write(fields: &mut Fields, geometry: &Geometry) {
    let layout = fields.layout();
    for (row, numbers) in geometry.affine().iter().enumerate() {
        (0..4).for_each(|column| fields.put_float(layout.srow, 4 * row + column, numbers[column]));
    }
    fields.put_integer(layout.sform_code, 0, SCANNER);
    fields.put_integer(layout.xyzt_units, 0, MILLIMETRES);
    for axis in 0..3 {
        fields.put_float(layout.pixdim, axis + 1, geometry.spacing[axis]);
        fields.put_float(layout.qoffset, axis, geometry.origin[axis]);
    }
    let left_handed = determinant(&geometry.direction) < 0.0;
    fields.put_float(layout.pixdim, 0, if left_handed { -1.0 } else { 1.0 });
    let mut rotation = geometry.direction;
    if left_handed {
        rotation.iter_mut().for_each(|row| row[2] = -row[2]);
    }
    let bcd = quaternion::from_matrix(&rotation);
    // A qform is written only if it says the same as the sform; a sheared grid has none.
    let says = quaternion::to_matrix(bcd, fields.version).map(|d| Geometry { direction: d, ..*geometry });
    let meant = Geometry { direction: rotation, ..*geometry };
    if says.is_some_and(|says| says.differences(&meant, Tolerance::default()).is_none()) {
        (0..3).for_each(|i| fields.put_float(layout.quatern, i, bcd[i]));
        fields.put_integer(layout.qform_code, 0, SCANNER);
    }
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
    m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
}
