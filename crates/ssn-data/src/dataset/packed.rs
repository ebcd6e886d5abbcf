//! Packed cases of files that hold many: the whole of LIDC takes 1.1 GB as floats and bits.

use std::path::PathBuf;

/// The cases of one file, read once and shared by all who load from them.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedCases {
    pub path: PathBuf,
    /// Its cases: content, or why one cannot be used.
    pub items: Vec<Result<PackedCase, String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PackedCase {
    pub channels: usize,
    pub shape: [usize; 3],
    /// The image `[c, d, h, w]`.
    pub pixels: PackedImage,
    /// The stored label map `[d, h, w]` of each rater.
    pub raters: Vec<PackedLabels>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PackedImage {
    /// Every value is k / 255: a byte holds k.
    Bytes(Vec<u8>),
    Floats(Vec<f32>),
}

impl PackedImage {
    /// The smallest form that loses nothing.
    pub fn pack(values: Vec<f32>) -> Self {
        let byte = |&x: &f32| -> Option<u8> {
            let k = (x * 255.0).round();
            // Exactly, and with the sign of zero: what comes out is what went in, bit for bit.
            let exact = (0.0..=255.0).contains(&k) && (f32::from(k as u8) / 255.0).to_bits() == x.to_bits();
            exact.then_some(k as u8)
        };
        values.iter().map(byte).collect::<Option<Vec<u8>>>().map_or(Self::Floats(values), Self::Bytes)
    }

    pub fn unpack(&self) -> Vec<f32> {
        match self {
            Self::Bytes(bytes) => bytes.iter().map(|&k| f32::from(k) / 255.0).collect(),
            Self::Floats(values) => values.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackedLabels {
    /// All labels are 0 or 1: bit i % 8 of byte i / 8 is voxel i.
    Bits(Vec<u8>),
    Bytes(Vec<u8>),
}

impl PackedLabels {
    pub fn pack(labels: Vec<u8>) -> Self {
        if labels.iter().any(|&label| label > 1) {
            return Self::Bytes(labels);
        }
        let byte = |eight: &[u8]| eight.iter().enumerate().fold(0, |byte, (i, &label)| byte | label << i);
        Self::Bits(labels.chunks(8).map(byte).collect())
    }

    pub fn unpack(&self, voxels: usize) -> Vec<u8> {
        match self {
            Self::Bits(bytes) => {
                (0..voxels).map(|i| bytes.get(i / 8).map_or(0, |b| b >> (i % 8) & 1)).collect()
            }
            Self::Bytes(labels) => labels.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_nothing() {
        let bytes: Vec<f32> = (0..=255u8).map(|k| (f64::from(k) / 255.0) as f32).collect();
        assert!(matches!(PackedImage::pack(bytes.clone()), PackedImage::Bytes(_)));
        assert_eq!(PackedImage::pack(bytes.clone()).unpack(), bytes);
        for other in [vec![0.5, 1.0], vec![-0.0], vec![f32::NAN], vec![2.0]] {
            assert!(matches!(PackedImage::pack(other), PackedImage::Floats(_)));
        }
        let labels: Vec<u8> = (0..77).map(|i| u8::from(i % 3 == 0)).collect();
        let packed = PackedLabels::pack(labels.clone());
        assert!(matches!(&packed, PackedLabels::Bits(bytes) if bytes.len() == 10));
        assert_eq!(packed.unpack(77), labels);
        assert_eq!(PackedLabels::pack(vec![0, 2]), PackedLabels::Bytes(vec![0, 2]));
    }
}
