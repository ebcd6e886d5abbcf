//! Arrays of numbers without a place in space, as NumPy, PyTorch and HDF5 files hold them.

use std::fmt;

use half::{bf16, f16};

use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// Axes of an array (`NPY_MAXDIMS` of NumPy 2).
pub(crate) const MOST_AXES: usize = 64;

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
                let (found, allowed) = (format!("{:?}", self.shape), "[h, w], [d, h, w] or [c, d, h, w]");
                let advice = "reshape the array before saving it";
                return Err(refused("the shape of the array", found, allowed, advice));
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

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Element {
    /// A truth value of one byte.
    Bool,
    /// IEEE half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// A type of [`Voxels`].
    Plain(VoxelType),
}

impl Element {
    /// From NumPy's short name, such as `f8`.
    pub(crate) fn named(name: &str) -> Result<Self, Problem> {
        Ok(Self::Plain(match name {
            "b1" => return Ok(Self::Bool),
            "f2" => return Ok(Self::F16),
            "u1" => VoxelType::U8,
            "i1" => VoxelType::I8,
            "u2" => VoxelType::U16,
            "i2" => VoxelType::I16,
            "u4" => VoxelType::U32,
            "i4" => VoxelType::I32,
            "u8" => VoxelType::U64,
            "i8" => VoxelType::I64,
            "f4" => VoxelType::F32,
            "f8" => VoxelType::F64,
            _ => {
                return Err(Problem::Unsupported {
                    what: format!("the NumPy dtype {:?}", name.chars().take(40).collect::<String>()),
                    advice: "save arrays of bool, whole numbers of 8 to 64 bits, or floats of 16 to 64 bits",
                });
            }
        }))
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::Plain(kind) => kind.bytes(),
        }
    }

    /// The values of bytes. Half precision becomes single precision.
    pub(crate) fn read(self, bytes: &[u8], order: ByteOrder) -> Result<Voxels, Problem> {
        let halves = |widen: fn(u16) -> f32| match Voxels::from_bytes(VoxelType::U16, bytes, order) {
            Voxels::U16(bits) => Voxels::F32(bits.into_iter().map(widen).collect()),
            other => other,
        };
        match self {
            Self::Plain(kind) => Ok(Voxels::from_bytes(kind, bytes, order)),
            Self::F16 => Ok(halves(|bits| f16::from_bits(bits).to_f32())),
            Self::Bf16 => Ok(halves(|bits| bf16::from_bits(bits).to_f32())),
            Self::Bool => match bytes.iter().position(|&b| b > 1) {
                None => Ok(Voxels::U8(bytes.to_vec())),
                Some(place) => {
                    let found = format!("{} at value {place}", bytes[place]);
                    let advice = "the file is damaged: save the array again";
                    Err(refused("a value of type bool", found, "0 or 1", advice))
                }
            },
        }
    }
}

/// The number of values of a shape. That of an array without values may be claimed to overflow along other axes.
fn count(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product, &n| product.saturating_mul(n))
}

/// The distances between neighbors along each axis of an array whose last axis runs fastest.
pub(crate) fn row_major(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| count(&shape[axis + 1..])).collect()
}

/// A row-major copy of the values at `offset + Σ index · stride`, or the values where they are that already. All of them
/// must exist.
pub(crate) fn strided(values: Voxels, shape: &[usize], strides: &[usize], offset: usize) -> Array {
    fn copy<T: Copy>(values: &[T], shape: &[usize], strides: &[usize], offset: usize, out: &mut Vec<T>) {
        match (shape, strides) {
            (shape, _) if shape.contains(&0) => {}
            (&[n, ref shape @ ..], &[stride, ref strides @ ..]) => {
                (0..n).for_each(|i| copy(values, shape, strides, offset + i * stride, out));
            }
            _ => out.extend(values.get(offset)),
        }
    }
    let count = count(shape);
    let in_place = offset == 0 && values.len() == count && strides == row_major(shape);
    let voxels = if in_place {
        values
    } else {
        macro_rules! each {
            ($($kind:ident),*) => {
                match &values {
                    $(Voxels::$kind(values) => {
                        let mut out = Vec::with_capacity(count);
                        copy(values, shape, strides, offset, &mut out);
                        Voxels::$kind(out)
                    })*
                }
            };
        }
        each!(U8, I8, U16, I16, U32, I32, U64, I64, F32, F64)
    };
    Array { voxels, shape: shape.to_vec() }
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

    #[test]
    fn strides_are_followed() {
        let values = || Voxels::U8((0..12).collect());
        let copy =
            |shape: &[usize], strides: &[usize], offset| strided(values(), shape, strides, offset).voxels;
        // [2, 3] seen transposed, from the second value on.
        assert_eq!(copy(&[3, 2], &[1, 3], 1), Voxels::U8(vec![1, 4, 2, 5, 3, 6]));
        assert_eq!(copy(&[], &[], 7), Voxels::U8(vec![7]));
        assert_eq!(copy(&[2, 2, 2], &[6, 0, 1], 0), Voxels::U8(vec![0, 1, 0, 1, 6, 7, 6, 7]));
        assert_eq!(copy(&[2, 0], &[1, 1], 0), Voxels::U8(vec![]));
        assert_eq!(row_major(&[0, usize::MAX, 2]), [usize::MAX, 2, 1]);
        assert_eq!(copy(&[3, 4], &[4, 1], 0), values());
    }

    #[test]
    fn dtypes_that_are_no_numbers_are_named() {
        for name in ["O8", "U5", "S3", "c16", "V8", "M8", "f16", "", "é"] {
            let message = Element::named(name).unwrap_err().to_string();
            assert!(message.contains(&format!("{name:?}")), "{message}");
        }
    }
}
