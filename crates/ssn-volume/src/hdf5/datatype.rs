//! The datatype of numbers, from the bytes of its message (HDF5 file format specification, IV.A.2.d).
//!
//! Class and size alone do not decide: a number with unused bits, or a float with other fields than IEEE's, would be
//! read wrongly. So the whole message is compared.

use crate::voxels::VoxelType;

const WHOLE: u8 = 0;
const FLOAT: u8 = 1;
const SIGNED: u8 = 0b1000;
/// The first bit of a mantissa is implied, as IEEE has it.
const IMPLIED_BIT: u8 = 0b10_0000;
/// Exponent's place and length, mantissa's place and length, and the bias, of single precision.
const SINGLE: [u8; 8] = [23, 8, 0, 23, 127, 0, 0, 0];
/// The same of double precision; the bias is 1023.
const DOUBLE: [u8; 8] = [52, 11, 0, 52, 0xff, 3, 0, 0];

/// The type that a datatype message describes, where it is a plain one.
pub(super) fn of_numbers(message: &[u8]) -> Option<VoxelType> {
    let [class, flags, sign, 0, size, 0, 0, 0, 0, 0, precision, 0, fields @ ..] = message else {
        return None;
    };
    // Unused bits are refused: the precision is all of the size, and starts at bit 0.
    if size.checked_mul(8)? != *precision {
        return None;
    }
    // The lowest flag is the byte order.
    Some(match (class & 0xf, flags & !1, *sign, *size) {
        (WHOLE, 0, 0, 1) => VoxelType::U8,
        (WHOLE, 0, 0, 2) => VoxelType::U16,
        (WHOLE, 0, 0, 4) => VoxelType::U32,
        (WHOLE, 0, 0, 8) => VoxelType::U64,
        (WHOLE, SIGNED, 0, 1) => VoxelType::I8,
        (WHOLE, SIGNED, 0, 2) => VoxelType::I16,
        (WHOLE, SIGNED, 0, 4) => VoxelType::I32,
        (WHOLE, SIGNED, 0, 8) => VoxelType::I64,
        (FLOAT, IMPLIED_BIT, 31, 4) if fields.starts_with(&SINGLE) => VoxelType::F32,
        (FLOAT, IMPLIED_BIT, 63, 8) if fields.starts_with(&DOUBLE) => VoxelType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_numbers_are_known() {
        let single = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
        assert_eq!(of_numbers(&single), Some(VoxelType::F32));
        // Everything but the version and the byte order decides about the type.
        for (at, bit) in (0..single.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut other = single;
            other[at] ^= 1 << bit;
            let known = of_numbers(&other);
            match (at, bit) {
                (0, 4..) | (1, 0) => assert_eq!(known, Some(VoxelType::F32)),
                _ => assert_eq!(known, None, "byte {at}, bit {bit}"),
            }
        }
        let short = [0x10, 9, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];
        assert_eq!(of_numbers(&short), Some(VoxelType::I16));
        assert_eq!(of_numbers(&short[..11]), None);
    }
}
