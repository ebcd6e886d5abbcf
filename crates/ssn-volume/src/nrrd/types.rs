//! The names of value types.

use crate::error::Problem;
use crate::text_header::words::refused;
use crate::voxels::VoxelType;

/// Every spelling that the format defines. Plain `char` is not among them: its sign differs between machines.
const SPELLINGS: [(VoxelType, &[&str]); 10] = [
    (VoxelType::I8, &["signed char", "int8", "int8_t"]),
    (VoxelType::U8, &["uchar", "unsigned char", "uint8", "uint8_t"]),
    (VoxelType::I16, &["short", "short int", "signed short", "signed short int", "int16", "int16_t"]),
    (VoxelType::U16, &["ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"]),
    (VoxelType::I32, &["int", "signed int", "int32", "int32_t"]),
    (VoxelType::U32, &["uint", "unsigned int", "uint32", "uint32_t"]),
    (
        VoxelType::I64,
        &[
            "longlong",
            "long long",
            "long long int",
            "signed long long",
            "signed long long int",
            "int64",
            "int64_t",
        ],
    ),
    (VoxelType::U64, &["ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"]),
    (VoxelType::F32, &["float"]),
    (VoxelType::F64, &["double"]),
];

/// The type of a name.
pub(super) fn named(text: &str) -> Result<VoxelType, Problem> {
    let same = |(_, names): &&(VoxelType, &[&str])| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    let found = SPELLINGS.iter().find(same).map(|&(kind, _)| kind);
    found.ok_or_else(|| {
        refused(
            "type",
            text,
            "an integer type of 8, 16, 32 or 64 bits such as uint8 or short, or float or double",
            "store the image as one of these",
        )
    })
}

/// The name that is written: the first that Teem itself writes.
pub(super) fn name(kind: VoxelType) -> &'static str {
    match kind {
        VoxelType::I8 => "signed char",
        VoxelType::U8 => "unsigned char",
        VoxelType::I16 => "short",
        VoxelType::U16 => "unsigned short",
        VoxelType::I32 => "int",
        VoxelType::U32 => "unsigned int",
        VoxelType::I64 => "long long int",
        VoxelType::U64 => "unsigned long long int",
        VoxelType::F32 => "float",
        VoxelType::F64 => "double",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_round() {
        for kind in VoxelType::ALL {
            assert_eq!(named(name(kind)).unwrap(), kind);
        }
        assert_eq!(named("Unsigned Short Int").unwrap(), VoxelType::U16);
        for bad in ["char", "block", "long", "half", ""] {
            assert!(named(bad).unwrap_err().to_string().starts_with("type is"));
        }
    }
}
