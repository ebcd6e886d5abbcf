//! Where the numbers of a header lie. Knows nothing of what they mean.

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// NIfTI-1: a header of 348 bytes, geometry in single precision, at most 32767 voxels along an axis.
    One,
    /// NIfTI-2: a header of 540 bytes, geometry in double precision.
    Two,
}

/// How a number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Byte,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Kind {
    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// One or several numbers of the same kind in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Where the first number starts.
    pub offset: usize,
    /// How each is stored.
    pub kind: Kind,
    /// How many there are.
    pub count: usize,
}

const fn field(offset: usize, kind: Kind, count: usize) -> Field {
    Field { offset, kind, count }
}

/// The fields that are read or written; the names are those of the standard.
#[derive(Debug)]
pub(super) struct Layout {
    pub bytes: usize,
    pub magic_single: &'static [u8],
    pub magic_pair: &'static [u8],
    pub magic: Field,
    pub sizeof_hdr: Field,
    pub dim: Field,
    pub intent_code: Field,
    pub datatype: Field,
    pub bitpix: Field,
    pub pixdim: Field,
    pub vox_offset: Field,
    pub scl_slope: Field,
    pub scl_inter: Field,
    pub xyzt_units: Field,
    pub descrip: Field,
    pub qform_code: Field,
    pub sform_code: Field,
    /// `quatern_b`, `quatern_c`, `quatern_d`.
    pub quatern: Field,
    /// `qoffset_x`, `qoffset_y`, `qoffset_z`.
    pub qoffset: Field,
    /// `srow_x`, `srow_y`, `srow_z`.
    pub srow: Field,
}

/// Offsets of `nifti1.h`.
static ONE: Layout = Layout {
    bytes: 348,
    magic_single: b"n+1\0",
    magic_pair: b"ni1\0",
    magic: field(344, Kind::Byte, 4),
    sizeof_hdr: field(0, Kind::I32, 1),
    dim: field(40, Kind::I16, 8),
    intent_code: field(68, Kind::I16, 1),
    datatype: field(70, Kind::I16, 1),
    bitpix: field(72, Kind::I16, 1),
    pixdim: field(76, Kind::F32, 8),
    vox_offset: field(108, Kind::F32, 1),
    scl_slope: field(112, Kind::F32, 1),
    scl_inter: field(116, Kind::F32, 1),
    xyzt_units: field(123, Kind::Byte, 1),
    descrip: field(148, Kind::Byte, 80),
    qform_code: field(252, Kind::I16, 1),
    sform_code: field(254, Kind::I16, 1),
    quatern: field(256, Kind::F32, 3),
    qoffset: field(268, Kind::F32, 3),
    srow: field(280, Kind::F32, 12),
};

/// Offsets of `nifti2.h`.
static TWO: Layout = Layout {
    bytes: 540,
    magic_single: b"n+2\0\r\n\x1a\n",
    magic_pair: b"ni2\0\r\n\x1a\n",
    magic: field(4, Kind::Byte, 8),
    sizeof_hdr: field(0, Kind::I32, 1),
    dim: field(16, Kind::I64, 8),
    intent_code: field(504, Kind::I32, 1),
    datatype: field(12, Kind::I16, 1),
    bitpix: field(14, Kind::I16, 1),
    pixdim: field(104, Kind::F64, 8),
    vox_offset: field(168, Kind::I64, 1),
    scl_slope: field(176, Kind::F64, 1),
    scl_inter: field(184, Kind::F64, 1),
    xyzt_units: field(500, Kind::I32, 1),
    descrip: field(240, Kind::Byte, 80),
    qform_code: field(344, Kind::I32, 1),
    sform_code: field(348, Kind::I32, 1),
    quatern: field(352, Kind::F64, 3),
    qoffset: field(376, Kind::F64, 3),
    srow: field(400, Kind::F64, 12),
};

impl Version {
    pub(super) fn layout(self) -> &'static Layout {
        match self {
            Self::One => &ONE,
            Self::Two => &TWO,
        }
    }
}
