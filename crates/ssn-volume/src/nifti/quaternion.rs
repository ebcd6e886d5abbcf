//! Rotations as the three last components of a unit quaternion, the way the qform stores them.

use super::layout::Version;

type Matrix = [[f64; 3]; 3];

/// How far the squared length of the three components may be from 1 and still mean a half turn: three times the
/// precision of the stored numbers, as in nibabel.
fn half_turn_margin(version: Version) -> f64 {
    match version {
        Version::One => 3.0 * f64::from(f32::EPSILON),
        Version::Two => 3.0 * f64::EPSILON,
    }
}

/// The rotation of (b, c, d). Nothing if they are too long for a rotation or not numbers.
pub(super) fn to_matrix([b, c, d]: [f64; 3], version: Version) -> Option<Matrix> {
    let rest = 1.0 - (b * b + c * c + d * d);
    let a = match rest {
        rest if rest.abs() < half_turn_margin(version) => 0.0,
        rest if rest > 0.0 => rest.sqrt(),
        _ => return None,
    };
    // Components slightly too long are shortened here.
    let s = 2.0 / (a * a + b * b + c * c + d * d);
    Some([
        [1.0 - s * (c * c + d * d), s * (b * c - a * d), s * (b * d + a * c)],
        [s * (b * c + a * d), 1.0 - s * (b * b + d * d), s * (c * d - a * b)],
        [s * (b * d - a * c), s * (c * d + a * b), 1.0 - s * (b * b + c * c)],
    ])
}

/// The (b, c, d) of a rotation.
pub(super) fn from_matrix(m: &Matrix) -> [f64; 3] {
    // Each line is four times the square of a, b, c, d; the largest is divided by, so that nothing is lost.
    let squares = [
        1.0 + m[0][0] + m[1][1] + m[2][2],
        1.0 + m[0][0] - m[1][1] - m[2][2],
        1.0 - m[0][0] + m[1][1] - m[2][2],
        1.0 - m[0][0] - m[1][1] + m[2][2],
    ];
    let largest = (0..4).max_by(|&i, &j| squares[i].total_cmp(&squares[j])).unwrap_or(0);
    let (x, y, z) = (m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]);
    let (xy, xz, yz) = (m[1][0] + m[0][1], m[0][2] + m[2][0], m[2][1] + m[1][2]);
    let row = match largest {
        0 => [squares[0], x, y, z],
        1 => [x, squares[1], xy, xz],
        2 => [y, xy, squares[2], yz],
        _ => [z, xz, yz, squares[3]],
    };
    let length = row.iter().map(|q| q * q).sum::<f64>().sqrt();
    // The first component is not stored and taken to be positive.
    let sign = if row[0] < 0.0 { -1.0 } else { 1.0 };
    [row[1], row[2], row[3]].map(|q| sign * q / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_go_round() {
        let all = [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.6, 0.0, 0.8],
            [0.1, -0.2, 0.3],
            [0.5, 0.5, 0.5],
            [-0.7, 0.7, 0.1],
        ];
        for bcd in all {
            let matrix = to_matrix(bcd, Version::Two).unwrap();
            let again = to_matrix(from_matrix(&matrix), Version::Two).unwrap();
            for (x, y) in matrix.iter().flatten().zip(again.iter().flatten()) {
                assert!((x - y).abs() < 1e-12, "{bcd:?}: {matrix:?}, {again:?}");
            }
        }
        let quarter = std::f64::consts::FRAC_1_SQRT_2;
        let matrix = to_matrix([0.0, 0.0, quarter], Version::Two).unwrap();
        assert!((matrix[1][0] - 1.0).abs() < 1e-12, "a quarter turn about z takes x to y: {matrix:?}");
    }

    #[test]
    fn too_long_is_no_rotation() {
        assert!(to_matrix([1.0 + 1e-7, 0.0, 0.0], Version::One).is_some());
        for version in [Version::One, Version::Two] {
            for bcd in [[1.001, 0.0, 0.0], [f64::NAN, 0.0, 0.0], [f64::INFINITY, 0.0, 0.0], [1e200; 3]] {
                assert_eq!(to_matrix(bcd, version), None, "{bcd:?}");
            }
        }
    }
}
