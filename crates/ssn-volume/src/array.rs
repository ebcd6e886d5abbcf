//! Arrays of numbers without a place in space, as NumPy, PyTorch and HDF5 files hold them.

use std::fmt;

use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::volume::Image;
use crate::voxels::Voxels;

/// An array of numbers in C order: the last axis runs fastest.
#[derive(Clone, PartialEq)]
pub struct Array {
    /// The values. Booleans are bytes 0 and 1; half precision is widened to single, which is exact.
    pub voxels: Voxels,
    /// Lengths of the axes; none for a single number, and an axis may have length 0.
    pub shape: Vec<usize>,
}

impl Array {
    /// The array as an image with the default geometry.
    ///
    /// # Shapes
    /// `[h, w]`, `[d, h, w]` or `[c, d, h, w]`; others are refused. An array with channels and no depth has
    /// to be given an axis of depth 1 before it is saved: `[c, h, w]` cannot be told from `[d, h, w]`.
    pub fn into_image(self, limits: &Limits) -> Result<Image, Problem> {
        let shape = match self.shape[..] {
            [h, w] => [1, 1, h, w],
            [d, h, w] => [1, d, h, w],
            [c, d, h, w] => [c, d, h, w],
            _ => {
                return Err(Problem::Field {
                    field: "the shape of the array",
                    found: format!("{:?}", self.shape),
                    allowed: "[h, w], [d, h, w] or [c, d, h, w]",
                    advice: "reshape the array before saving it",
                });
            }
        };
        Image::new(self.voxels, shape, Geometry::default(), limits)
    }
}

/// Type and shape, not the values: an array may be larger than what anybody can read.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array {:?} {:?}", self.voxels.kind(), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_three_and_four_axes_are_images() {
        let array = |shape: &[usize]| Array { voxels: Voxels::U8((0..6).collect()), shape: shape.to_vec() };
        let limits = Limits::default();
        for (shape, expected) in
            [(&[2, 3][..], [1, 1, 2, 3]), (&[1, 2, 3], [1, 1, 2, 3]), (&[3, 1, 2, 1], [3, 1, 2, 1])]
        {
            assert_eq!(array(shape).into_image(&limits).unwrap().shape, expected);
        }
        for shape in [&[6][..], &[1, 1, 1, 2, 3], &[]] {
            assert!(
                array(shape).into_image(&limits).unwrap_err().to_string().contains("reshape the array"),
                "{shape:?}"
            );
        }
        let empty = Array { voxels: Voxels::U8(vec![]), shape: vec![0, 4] };
        assert!(empty.into_image(&limits).unwrap_err().to_string().contains("positive along every axis"));
    }
}
