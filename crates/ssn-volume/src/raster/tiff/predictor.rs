//! Undoing the differences that writers take to compress better (TIFF 6.0, section 14; Technical Note 3).

use super::super::{field, unsupported};
use super::page::Kind;
use crate::error::Problem;
use crate::voxels::{ByteOrder, VoxelType};

/// How rows were changed before they were compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predictor {
    /// Not at all.
    None,
    /// Each sample is the difference to the one of the pixel to the left.
    Horizontal,
    /// The bytes of numbers are sorted by significance, and each byte is the difference to the one before.
    FloatingPoint,
}

impl Predictor {
    /// From the value of the tag, if it fits the samples.
    pub fn new(value: u64, kind: &Kind) -> Result<Self, Problem> {
        let float = kind.half || matches!(kind.sample, VoxelType::F32 | VoxelType::F64);
        match value {
            1 => Ok(Self::None),
            2 if !float => Ok(Self::Horizontal),
            3 if float => Ok(Self::FloatingPoint),
            2 | 3 => Err(unsupported(
                format!("the predictor {value} with this type of samples"),
                "save the picture without a predictor",
            )),
            _ => Err(field("Predictor", value, "1, 2 or 3", "save the picture without a predictor")),
        }
    }

    /// Restores a row of pixels with `samples` samples of `size` bytes; `scratch` is memory to work in.
    pub fn undo(self, row: &mut [u8], samples: usize, size: usize, order: ByteOrder, scratch: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Horizontal => add_neighbours(row, samples, size, order),
            Self::FloatingPoint => {
                for i in samples..row.len() {
                    row[i] = row[i].wrapping_add(row[i - samples]);
                }
                scratch.clear();
                scratch.extend_from_slice(row);
                let count = row.len() / size;
                for (i, number) in row.chunks_exact_mut(size).enumerate() {
                    for (significance, byte) in number.iter_mut().enumerate() {
                        let plane = match order {
                            ByteOrder::Big => significance,
                            ByteOrder::Little => size - 1 - significance,
                        };
                        *byte = scratch[plane * count + i];
                    }
                }
            }
        }
    }
}

/// Adds to every sample the one of the pixel to the left, in the numbers' own width.
fn add_neighbours(row: &mut [u8], samples: usize, size: usize, order: ByteOrder) {
    let step = samples * size;
    for start in (step..row.len()).step_by(size) {
        let mut carry = 0;
        for i in 0..size.min(row.len() - start) {
            let at = start
                + match order {
                    ByteOrder::Little => i,
                    ByteOrder::Big => size - 1 - i,
                };
            let sum = u16::from(row[at]) + u16::from(row[at - step]) + carry;
            row[at] = sum as u8;
            carry = sum >> 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_with_carry() {
        let mut row = [0xff, 0x00, 0x01, 0x01, 0xff, 0xff];
        Predictor::Horizontal.undo(&mut row, 1, 2, ByteOrder::Little, &mut vec![]);
        assert_eq!(row, [0xff, 0x00, 0x00, 0x02, 0xff, 0x01]);
        let mut row = [0x00, 0xff, 0x01, 0x01];
        Predictor::Horizontal.undo(&mut row, 1, 2, ByteOrder::Big, &mut vec![]);
        assert_eq!(row, [0x00, 0xff, 0x02, 0x00]);
        let mut row = [1, 2, 3, 1, 1, 1];
        Predictor::Horizontal.undo(&mut row, 3, 1, ByteOrder::Little, &mut vec![]);
        assert_eq!(row, [1, 2, 3, 2, 3, 4]);
    }

    #[test]
    fn bytes_of_numbers_come_together() {
        // 1.0 and 2.0: 3f800000 and 40000000, sorted by significance, then differences.
        let planes = [0x3fu8, 0x40, 0x80, 0, 0, 0, 0, 0];
        let mut row = planes;
        (1..8).rev().for_each(|i| row[i] = row[i].wrapping_sub(planes[i - 1]));
        Predictor::FloatingPoint.undo(&mut row, 1, 4, ByteOrder::Little, &mut vec![]);
        assert_eq!(row, [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
    }
}
