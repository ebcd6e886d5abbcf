//! Images in memory: their values in the type in which the file stores them, and where these lie.

use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::problem::{Problem, refused};

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

    /// Returns the scaled values as labels, like [`Voxels::scaled_labels`].
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

/// Makes [`Voxels`] and [`VoxelType`] from the one list of types.
macro_rules! voxel_types {
    ($($kind:ident $number:ty),*) => {
        /// The stored values of an image.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is named after the type of its values")]
        pub enum Voxels {
            $($kind(Vec<$number>)),*
        }

        /// The type of stored values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant is named after the type of its values")]
        pub enum VoxelType {
            $($kind),*
        }

        impl VoxelType {
            /// Every type.
            pub const ALL: [Self; 10] = [$(Self::$kind),*];

            /// Bytes of one value.
            pub fn bytes(self) -> usize {
                match self {
                    $(Self::$kind => size_of::<$number>()),*
                }
            }
        }

        impl Voxels {
            /// Numbers from their bytes; a rest that is too short for a number is ignored.
            pub fn from_bytes(kind: VoxelType, bytes: &[u8], order: ByteOrder) -> Self {
                match kind {
                    $(VoxelType::$kind => {
                        let numbers = bytes.as_chunks().0.iter().copied();
                        Self::$kind(match order {
                            ByteOrder::Little => numbers.map(<$number>::from_le_bytes).collect(),
                            ByteOrder::Big => numbers.map(<$number>::from_be_bytes).collect(),
                        })
                    })*
                }
            }

            /// The type of the values.
            pub fn kind(&self) -> VoxelType {
                match self {
                    $(Self::$kind(_) => VoxelType::$kind),*
                }
            }
        }
    };
}
voxel_types!(U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Evaluates an expression with `$values` bound to the vector of whichever variant it is.
macro_rules! for_each_type {
    ($voxels:expr, $values:ident => $body:expr) => {
        match $voxels {
            Voxels::U8($values) => $body,
            Voxels::I8($values) => $body,
            Voxels::U16($values) => $body,
            Voxels::I16($values) => $body,
            Voxels::U32($values) => $body,
            Voxels::I32($values) => $body,
            Voxels::U64($values) => $body,
            Voxels::I64($values) => $body,
            Voxels::F32($values) => $body,
            Voxels::F64($values) => $body,
        }
    };
}

impl Voxels {
    /// The bytes of all numbers, least significant byte first.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        for_each_type!(self, values => values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        for_each_type!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `slope · x + intercept` for every value, computed in double precision and rounded once.
    #[allow(clippy::unnecessary_cast, reason = "one of the ten types is the target already")]
    pub fn scaled_f32(&self, slope: f64, intercept: f64) -> Vec<f32> {
        let identity = slope == 1.0 && intercept == 0.0;
        if let (true, Self::F32(values)) = (identity, self) {
            return values.clone();
        }
        let scale = scaling(slope, intercept);
        for_each_type!(self, values => values.iter().map(|&x| scale(x as f64) as f32).collect())
    }

    /// `slope · x + intercept` for every value, in double precision.
    #[allow(clippy::unnecessary_cast, reason = "one of the ten types is the target already")]
    pub fn scaled_f64(&self, slope: f64, intercept: f64) -> Vec<f64> {
        let scale = scaling(slope, intercept);
        for_each_type!(self, values => values.iter().map(|&x| scale(x as f64)).collect())
    }

    /// Returns the scaled values as labels 0 … 255, rounded if they are within 0.001 of a whole number, as single precision and slopes
    /// such as 0.00392157 for 1/255 leave them.
    ///
    /// # Errors
    /// The first other value.
    #[allow(clippy::unnecessary_cast, reason = "one of the ten types is the target already")]
    pub fn scaled_labels(&self, slope: f64, intercept: f64) -> Result<Vec<u8>, Problem> {
        let is_identity = slope == 1.0 && intercept == 0.0;
        if let (true, Self::U8(values)) = (is_identity, self) {
            return Ok(values.clone());
        }
        let scale = scaling(slope, intercept);
        let mut labels = Vec::with_capacity(self.len());
        for_each_type!(self, values => for &value in values {
            let x = scale(value as f64);
            let label = x.round();
            if (x - label).abs() <= ROUNDING && (0.0..=255.0).contains(&label) {
                labels.push(label as u8);
                continue;
            }
            let found = format!("{x} at voxel {}", labels.len());
            let allowed = "a whole number from 0 to 255";
            return Err(refused("a label", found, allowed, "is this an image rather than a label map?"));
        });
        Ok(labels)
    }
}

/// Distance of a label from a whole number.
const ROUNDING: f64 = 1e-3;

/// `slope · x + intercept`; without an intercept nothing is added, which keeps the sign of zero.
fn scaling(slope: f64, intercept: f64) -> impl Fn(f64) -> f64 {
    move |x| if intercept == 0.0 { x * slope } else { x * slope + intercept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_round_in_both_orders() {
        for kind in VoxelType::ALL {
            let bytes: Vec<u8> = (0..48).map(|i| i * 5 + 1).collect();
            let little = Voxels::from_bytes(kind, &bytes, ByteOrder::Little);
            assert_eq!((little.kind(), little.len()), (kind, 48 / kind.bytes()));
            assert_eq!(little.to_le_bytes(), bytes);
            let reversed: Vec<u8> =
                bytes.chunks(kind.bytes()).flat_map(|n| n.iter().rev().copied()).collect();
            assert_eq!(Voxels::from_bytes(kind, &reversed, ByteOrder::Big), little);
        }
    }

    #[test]
    fn labels_are_whole_numbers_in_a_byte() {
        assert_eq!(Voxels::F32(vec![0.0, 3.0]).scaled_labels(1.0, 0.0).unwrap(), [0, 3]);
        assert_eq!(Voxels::I16(vec![0, 4]).scaled_labels(0.5, 1.0).unwrap(), [1, 3]);
        let of_255 = f64::from(0.003_921_57_f32);
        assert_eq!(Voxels::U8(vec![0, 255]).scaled_labels(of_255, 0.0).unwrap(), [0, 1]);
        let of_255 = f64::from(1.0_f32 / 255.0);
        assert_eq!(Voxels::U16(vec![255, 510, 65025]).scaled_labels(of_255, 0.0).unwrap(), [1, 2, 255]);
        assert!(Voxels::U8(vec![254]).scaled_labels(of_255, 0.0).is_err());
        for (bad, found) in [
            (Voxels::F32(vec![0.5]), "0.5"),
            (Voxels::F64(vec![1.002]), "1.002"),
            (Voxels::I16(vec![-1]), "-1"),
            (Voxels::U16(vec![256]), "256"),
            (Voxels::F64(vec![f64::NAN]), "NaN"),
            (Voxels::F64(vec![f64::INFINITY]), "inf"),
        ] {
            let message = bad.scaled_labels(1.0, 0.0).unwrap_err().to_string();
            assert!(message.contains(&format!("a label is {found} at voxel 0")), "{message}");
        }
    }

    #[test]
    fn nearly_whole_labels_are_rounded() {
        let values = Voxels::F32(vec![-0.000_5, 0.999_999_9, 2.000_9, 254.999_9, 255.000_5]);
        assert_eq!(values.scaled_labels(1.0, 0.0).unwrap(), [0, 1, 2, 255, 255]);
    }
}
