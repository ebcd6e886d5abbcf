//! Where the axes of a file point: `ElementSpacing`, `Offset` and `TransformMatrix`.

use super::fields::{Field, Fields};
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::text_header::place::{self, Names};
use crate::text_header::words::{numbers, refused};

const NAMES: Names = Names { spacing: "ElementSpacing", origin: "Offset", direction: "TransformMatrix" };
const ADVICE: &str = "correct the header or export the image again";

/// How far the length of a direction may be from 1. Writers round to as few as four digits; what is further away is
/// a scale of its own, for which readers differ.
const LENGTH_TOLERANCE: f64 = 1e-3;
/// Directions closer to length 1 than this are left as they are, so that they go round through a file unchanged.
const LENGTH_ROUNDING: f64 = 1e-12;

/// The geometry of a header with `dimension` axes, of which the first three lie in space.
pub(super) fn geometry(fields: &Fields<'_>, dimension: usize) -> Result<Geometry, Problem> {
    let get = |field, name, count| match fields.get(field) {
        Some(text) => numbers::<f64>(name, text, count, "as many numbers as the axes ask for").map(Some),
        None => Ok(None),
    };
    check_notes(fields)?;
    if let Some(centre) = get(Field::CenterOfRotation, "CenterOfRotation", dimension)?
        && centre.iter().any(|&x| x != 0.0)
    {
        let (found, allowed) = (format!("{centre:?}"), "zero: readers differ in what another centre means");
        return Err(refused("CenterOfRotation", &found, allowed, "export the image without it"));
    }
    // Without a spacing the size of the voxels stands in for it, as in ITK.
    let spacing = match get(Field::ElementSpacing, "ElementSpacing", dimension)? {
        Some(spacing) => Some(spacing),
        None => get(Field::ElementSize, "ElementSize", dimension)?,
    };
    let origin = get(Field::Offset, "Offset", dimension)?;
    let matrix = get(Field::TransformMatrix, "TransformMatrix", dimension * dimension)?;

    let mut geometry = Geometry::default();
    let axes = dimension.min(3);
    for axis in 0..axes {
        geometry.spacing[axis] = spacing.as_ref().map_or(1.0, |spacing| spacing[axis]);
        geometry.origin[axis] = origin.as_ref().map_or(0.0, |origin| origin[axis]);
    }
    if let Some(matrix) = matrix {
        // The matrix lists the vector of the first axis, then that of the second, and so on.
        for axis in 0..axes {
            for row in 0..axes {
                geometry.direction[row][axis] = matrix[axis * dimension + row];
            }
        }
        check_fourth_axis(&matrix, dimension)?;
        normalise(&mut geometry.direction)?;
    }
    place::checked(geometry.with_x_and_y_flipped(), &NAMES)
}

/// Fields that say something about places in words.
fn check_notes(fields: &Fields<'_>) -> Result<(), Problem> {
    if let Some(text) = fields.get(Field::DistanceUnits)
        && !matches!(text, "mm" | "?")
    {
        return Err(refused("DistanceUnits", text, "mm", "export the image in millimetres"));
    }
    // With a matrix this field is only a summary of it. Without one it must agree with the axes of the world, whose
    // name counts from where the axes come: right, anterior, inferior.
    let (orientation, matrix) =
        (fields.get(Field::AnatomicalOrientation), fields.get(Field::TransformMatrix));
    match (orientation, matrix) {
        (Some(text), None) if text != "RAI" && !text.chars().all(|c| c == '?') => Err(refused(
            "AnatomicalOrientation",
            text,
            "RAI where there is no TransformMatrix",
            "export the image with a TransformMatrix",
        )),
        _ => Ok(()),
    }
}

/// A fourth axis holds channels, so it must not mix with space.
fn check_fourth_axis(matrix: &[f64], dimension: usize) -> Result<(), Problem> {
    let apart = |index: usize, x: f64| {
        let (axis, row) = (index / 4, index % 4);
        (axis < 3 && row < 3) || x == f64::from(u8::from(axis == row))
    };
    if dimension < 4 || matrix.iter().enumerate().all(|(index, &x)| apart(index, x)) {
        return Ok(());
    }
    let allowed = "such that the fourth axis, of the channels, stands apart from the others";
    Err(refused("TransformMatrix", &format!("{matrix:?}"), allowed, ADVICE))
}

/// Makes directions that are rounded in the file exactly of length 1.
fn normalise(direction: &mut [[f64; 3]; 3]) -> Result<(), Problem> {
    for axis in 0..3 {
        let length = direction.iter().map(|row| row[axis] * row[axis]).sum::<f64>().sqrt();
        let deviation = (length - 1.0).abs();
        if deviation.is_nan() || deviation > LENGTH_TOLERANCE {
            return Err(Problem::Field {
                field: "TransformMatrix",
                found: format!("with a vector of length {length} along axis {axis}"),
                allowed: "of vectors of length 1",
                advice: "put the scale into ElementSpacing",
            });
        }
        if deviation > LENGTH_ROUNDING {
            direction.iter_mut().for_each(|row| row[axis] /= length);
        }
    }
    Ok(())
}
