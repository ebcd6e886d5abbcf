//! Values of an image in the type in which the file stores them, and their conversion.

use crate::error::Problem;

/// The stored values of an image.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is named after the type of its values")]
pub enum Voxels {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// The type of stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is named after the type of its values")]
pub enum VoxelType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl VoxelType {
    /// Every type.
    pub const ALL: [Self; 10] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Calls a macro-free closure per variant: binds `$values` to the vector of whichever variant it is.
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

/// Reads numbers of `$type` from bytes in either order.
macro_rules! read_numbers {
    ($type:ty, $bytes:expr, $order:expr) => {{
        let chunks = $bytes.chunks_exact(size_of::<$type>());
        match $order {
            ByteOrder::Little => {
                chunks.map(|b| <$type>::from_le_bytes(b.try_into().unwrap_or_default())).collect()
            }
            ByteOrder::Big => {
                chunks.map(|b| <$type>::from_be_bytes(b.try_into().unwrap_or_default())).collect()
            }
        }
    }};
}

impl Voxels {
    /// Numbers from their bytes; a rest that is too short for a number is ignored.
    pub fn from_bytes(kind: VoxelType, bytes: &[u8], order: ByteOrder) -> Self {
        match kind {
            VoxelType::U8 => Self::U8(bytes.to_vec()),
            VoxelType::I8 => Self::I8(bytes.iter().map(|&b| b as i8).collect()),
            VoxelType::U16 => Self::U16(read_numbers!(u16, bytes, order)),
            VoxelType::I16 => Self::I16(read_numbers!(i16, bytes, order)),
            VoxelType::U32 => Self::U32(read_numbers!(u32, bytes, order)),
            VoxelType::I32 => Self::I32(read_numbers!(i32, bytes, order)),
            VoxelType::U64 => Self::U64(read_numbers!(u64, bytes, order)),
            VoxelType::I64 => Self::I64(read_numbers!(i64, bytes, order)),
            VoxelType::F32 => Self::F32(read_numbers!(f32, bytes, order)),
            VoxelType::F64 => Self::F64(read_numbers!(f64, bytes, order)),
        }
    }

    /// The bytes of all numbers, least significant byte first.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        for_each_type!(self, values => values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// The type of the values.
    pub fn kind(&self) -> VoxelType {
        match self {
            Self::U8(_) => VoxelType::U8,
            Self::I8(_) => VoxelType::I8,
            Self::U16(_) => VoxelType::U16,
            Self::I16(_) => VoxelType::I16,
            Self::U32(_) => VoxelType::U32,
            Self::I32(_) => VoxelType::I32,
            Self::U64(_) => VoxelType::U64,
            Self::I64(_) => VoxelType::I64,
            Self::F32(_) => VoxelType::F32,
            Self::F64(_) => VoxelType::F64,
        }
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

    /// The scaled values as labels 0 … 255; refuses the first that is not a whole number in that range.
    #[allow(clippy::unnecessary_cast, reason = "one of the ten types is the target already")]
    pub fn scaled_labels(&self, slope: f64, intercept: f64) -> Result<Vec<u8>, Problem> {
        if let (true, Self::U8(values)) = (slope == 1.0 && intercept == 0.0, self) {
            return Ok(values.clone());
        }
        let scale = scaling(slope, intercept);
        let mut labels = Vec::with_capacity(self.len());
        for_each_type!(self, values => for &value in values {
            let x = scale(value as f64);
            if x.fract() != 0.0 || !(0.0..=255.0).contains(&x) {
                return Err(Problem::Field {
                    field: "a label",
                    found: format!("{x} at voxel {}", labels.len()),
                    allowed: "a whole number from 0 to 255",
                    advice: "is this an image rather than a label map?",
                });
            }
            labels.push(x as u8);
        });
        Ok(labels)
    }
}

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
        for bad in [
            Voxels::F32(vec![0.5]),
            Voxels::I16(vec![-1]),
            Voxels::U16(vec![256]),
            Voxels::F64(vec![f64::NAN]),
        ] {
            let message = bad.scaled_labels(1.0, 0.0).unwrap_err().to_string();
            assert!(message.contains("at voxel 0") && message.contains("0 to 255"), "{message}");
        }
    }
}
