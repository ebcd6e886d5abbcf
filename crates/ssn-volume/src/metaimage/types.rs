//! The names of value types.

use crate::error::Problem;
use crate::text_header::words::refused;
use crate::voxels::VoxelType;

/// The types that MetaIO's table of sizes defines; its `MET_LONG` has 4 bytes on every machine.
const TYPES: [(&str, VoxelType); 12] = [
    ("MET_CHAR", VoxelType::I8),
    ("MET_UCHAR", VoxelType::U8),
    ("MET_SHORT", VoxelType::I16),
    ("MET_USHORT", VoxelType::U16),
    ("MET_INT", VoxelType::I32),
    ("MET_UINT", VoxelType::U32),
    ("MET_LONG_LONG", VoxelType::I64),
    ("MET_ULONG_LONG", VoxelType::U64),
    ("MET_FLOAT", VoxelType::F32),
    ("MET_DOUBLE", VoxelType::F64),
    ("MET_LONG", VoxelType::I32),
    ("MET_ULONG", VoxelType::U32),
];

/// The type of a name.
pub(super) fn named(text: &str) -> Result<VoxelType, Problem> {
    let found = TYPES.iter().find(|(name, _)| *name == text).map(|&(_, kind)| kind);
    found.ok_or_else(|| {
        refused(
            "ElementType",
            text,
            "MET_CHAR, MET_UCHAR, MET_SHORT, MET_USHORT, MET_INT, MET_UINT, MET_LONG, MET_ULONG, MET_LONG_LONG, \
             MET_ULONG_LONG, MET_FLOAT or MET_DOUBLE",
            "store the image as one of these",
        )
    })
}

/// Whether a type is one that some writers give 8 bytes although the format says 4.
pub(super) fn has_doubtful_size(text: &str) -> bool {
    matches!(text, "MET_LONG" | "MET_ULONG")
}

/// The name of a type.
pub(super) fn name(kind: VoxelType) -> &'static str {
    match kind {
        VoxelType::I8 => "MET_CHAR",
        VoxelType::U8 => "MET_UCHAR",
        VoxelType::I16 => "MET_SHORT",
        VoxelType::U16 => "MET_USHORT",
        VoxelType::I32 => "MET_INT",
        VoxelType::U32 => "MET_UINT",
        VoxelType::I64 => "MET_LONG_LONG",
        VoxelType::U64 => "MET_ULONG_LONG",
        VoxelType::F32 => "MET_FLOAT",
        VoxelType::F64 => "MET_DOUBLE",
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
        assert_eq!(named("MET_LONG").unwrap(), VoxelType::I32);
        for bad in ["MET_ASCII_CHAR", "MET_FLOAT_ARRAY", "MET_OTHER", "float", "met_float", ""] {
            assert!(named(bad).unwrap_err().to_string().starts_with("ElementType is"));
        }
    }
}
