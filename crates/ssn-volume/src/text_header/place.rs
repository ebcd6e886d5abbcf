//! Checks of a geometry from a text header.
//!
//! Within these bounds lengths and products neither overflow nor lose digits, so an image goes round through a file.

use crate::error::Problem;
use crate::geometry::Geometry;

/// Spacings in millimetres: from a picometre to a thousand kilometres.
const SPACING: std::ops::RangeInclusive<f64> = 1e-9..=1e9;
/// The largest distance of an origin from zero, in millimetres.
const MAX_ORIGIN: f64 = 1e12;
/// The smallest volume that the three direction vectors may span. A cuboid spans 1, a gantry tilt of 30° 0.87; axes
/// that fall together span 0.
const MIN_VOLUME: f64 = 1e-3;

/// The names of a format's fields, for refusals.
pub(crate) struct Names {
    /// Of the field with the spacings.
    pub(crate) spacing: &'static str,
    /// Of the field with the origin.
    pub(crate) origin: &'static str,
    /// Of the field with the directions.
    pub(crate) direction: &'static str,
}

/// A geometry whose spacings, origin and directions can be worked with, or a refusal.
pub(crate) fn checked(geometry: Geometry, names: &Names) -> Result<Geometry, Problem> {
    let advice = "correct the header or export the image again";
    if !geometry.spacing.iter().all(|x| SPACING.contains(x)) {
        return Err(Problem::Field {
            field: names.spacing,
            found: format!("{:?}", geometry.spacing),
            allowed: "a distance from 1e-9 to 1e9 mm along every axis",
            advice,
        });
    }
    // Written so that a value that is not a number fails.
    if !geometry.origin.iter().all(|x| x.abs() <= MAX_ORIGIN) {
        return Err(Problem::Field {
            field: names.origin,
            found: format!("{:?}", geometry.origin),
            allowed: "finite, and at most 1e12 mm from zero",
            advice,
        });
    }
    let volume = dot(column(&geometry, 0), cross(column(&geometry, 1), column(&geometry, 2))).abs();
    if !(volume >= MIN_VOLUME && volume.is_finite()) {
        return Err(Problem::Field {
            field: names.direction,
            found: format!("{:?}", geometry.direction),
            allowed: "vectors that point in different directions",
            advice,
        });
    }
    Ok(geometry)
}

/// The vector at right angles to two others, of length 1 where there is one.
pub(crate) fn normal(a: [f64; 3], b: [f64; 3]) -> Option<[f64; 3]> {
    let unit = |x: [f64; 3]| {
        let length = dot(x, x).sqrt();
        (length > 0.0 && length.is_finite()).then(|| x.map(|x| x / length))
    };
    unit(cross(unit(a)?, unit(b)?))
}

fn column(geometry: &Geometry, axis: usize) -> [f64; 3] {
    geometry.direction.map(|row| row[axis])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names { spacing: "spacing", origin: "origin", direction: "direction" };

    #[test]
    fn a_geometry_that_cannot_be_worked_with_is_refused() {
        assert!(checked(Geometry::default(), &NAMES).is_ok());
        for spacing in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            let bad = Geometry { spacing: [1.0, spacing, 1.0], ..Geometry::default() };
            assert!(checked(bad, &NAMES).unwrap_err().to_string().starts_with("spacing is"));
        }
        let bad = Geometry { origin: [f64::NAN, 0.0, 0.0], ..Geometry::default() };
        assert!(checked(bad, &NAMES).unwrap_err().to_string().starts_with("origin is"));
        let flat = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let bad = Geometry { direction: flat, ..Geometry::default() };
        assert!(checked(bad, &NAMES).unwrap_err().to_string().starts_with("direction is"));
    }

    #[test]
    fn a_plane_has_a_normal() {
        assert_eq!(normal([2.0, 0.0, 0.0], [0.0, 3.0, 0.0]), Some([0.0, 0.0, 1.0]));
        assert_eq!(normal([2.0, 0.0, 0.0], [4.0, 0.0, 0.0]), None);
        assert_eq!(normal([0.0; 3], [4.0, 0.0, 0.0]), None);
    }
}
