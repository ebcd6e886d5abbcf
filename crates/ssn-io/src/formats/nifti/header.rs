//! The numbers of a NIfTI header by field, read in either byte order and written in little-endian order.
//!
//! This module knows where numbers lie and how they are stored, not what they mean.

use crate::problem::{Problem, refused};
use crate::volume::ByteOrder;

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// NIfTI-1: a header of 348 bytes, geometry in single precision, at most 32767 voxels along an axis.
    One,
    /// NIfTI-2: a header of 540 bytes, geometry in double precision.
    Two,
}

impl Version {
    /// Bytes of the header.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::One => 348,
            Self::Two => 540,
        }
    }

    /// Where the magic starts.
    fn magic_offset(self) -> usize {
        match self {
            Self::One => 344,
            Self::Two => 4,
        }
    }

    /// The magic of a single file.
    pub(super) fn magic_single(self) -> &'static [u8] {
        match self {
            Self::One => b"n+1\0",
            Self::Two => b"n+2\0\r\n\x1a\n",
        }
    }

    /// The magic of a pair of header and data file.
    pub(super) fn magic_pair(self) -> &'static [u8] {
        match self {
            Self::One => b"ni1\0",
            Self::Two => b"ni2\0\r\n\x1a\n",
        }
    }
}

/// How a number is stored.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Byte,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Kind {
    /// Bytes of one number.
    fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// One or several numbers of the same kind in a row: their offset and kind in `nifti1.h` and in `nifti2.h`, and how
/// many there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    one: (usize, Kind),
    two: (usize, Kind),
    count: usize,
}

/// The fields that are read or written; the names are those of the standard.
impl Field {
    const SIZEOF_HDR: Self = Self::new((0, Kind::I32), (0, Kind::I32), 1);
    pub const DIM: Self = Self::new((40, Kind::I16), (16, Kind::I64), 8);
    pub const INTENT_CODE: Self = Self::new((68, Kind::I16), (504, Kind::I32), 1);
    pub const DATATYPE: Self = Self::new((70, Kind::I16), (12, Kind::I16), 1);
    pub const BITPIX: Self = Self::new((72, Kind::I16), (14, Kind::I16), 1);
    pub const PIXDIM: Self = Self::new((76, Kind::F32), (104, Kind::F64), 8);
    pub const VOX_OFFSET: Self = Self::new((108, Kind::F32), (168, Kind::I64), 1);
    pub const SCL_SLOPE: Self = Self::new((112, Kind::F32), (176, Kind::F64), 1);
    pub const SCL_INTER: Self = Self::new((116, Kind::F32), (184, Kind::F64), 1);
    pub const XYZT_UNITS: Self = Self::new((123, Kind::Byte), (500, Kind::I32), 1);
    pub const DESCRIP: Self = Self::new((148, Kind::Byte), (240, Kind::Byte), 80);
    pub const QFORM_CODE: Self = Self::new((252, Kind::I16), (344, Kind::I32), 1);
    pub const SFORM_CODE: Self = Self::new((254, Kind::I16), (348, Kind::I32), 1);
    /// `quatern_b`, `quatern_c`, `quatern_d`.
    pub const QUATERN: Self = Self::new((256, Kind::F32), (352, Kind::F64), 3);
    /// `qoffset_x`, `qoffset_y`, `qoffset_z`.
    pub const QOFFSET: Self = Self::new((268, Kind::F32), (376, Kind::F64), 3);
    /// `srow_x`, `srow_y`, `srow_z`.
    pub const SROW: Self = Self::new((280, Kind::F32), (400, Kind::F64), 12);

    const fn new(one: (usize, Kind), two: (usize, Kind), count: usize) -> Self {
        Self { one, two, count }
    }
}

/// The bytes of a header with the order of its numbers.
#[derive(Debug, Clone)]
pub(super) struct RawHeader {
    pub version: Version,
    pub order: ByteOrder,
    bytes: Vec<u8>,
}

impl RawHeader {
    /// The header at the start of a file; the size that it gives for itself tells version and byte order.
    pub fn read(file: &[u8]) -> Result<Self, Problem> {
        let truncated = |needed: usize| Problem::Truncated {
            part: "the header",
            needed: needed as u64,
            found: file.len() as u64,
        };
        let size = file.first_chunk::<4>().ok_or_else(|| truncated(Version::One.bytes()))?;
        let (version, order) = match (i32::from_le_bytes(*size), i32::from_be_bytes(*size)) {
            (348, _) => (Version::One, ByteOrder::Little),
            (_, 348) => (Version::One, ByteOrder::Big),
            (540, _) => (Version::Two, ByteOrder::Little),
            (_, 540) => (Version::Two, ByteOrder::Big),
            (little, big) => {
                let found = format!("{little}, or {big} in the other byte order");
                let advice = "this is no NIfTI header: check which file was given";
                return Err(refused("sizeof_hdr", found, "348 (NIfTI-1) or 540 (NIfTI-2)", advice));
            }
        };
        let bytes = file.get(..version.bytes()).ok_or_else(|| truncated(version.bytes()))?;
        Ok(Self { version, order, bytes: bytes.to_vec() })
    }

    /// The header of a single file, in little-endian order, with all other numbers zero.
    pub fn single(version: Version) -> Self {
        let mut header = Self { version, order: ByteOrder::Little, bytes: vec![0; version.bytes()] };
        header.put_integer(Field::SIZEOF_HDR, 0, version.bytes() as i64);
        let (start, magic) = (version.magic_offset(), version.magic_single());
        header.bytes[start..start + magic.len()].copy_from_slice(magic);
        header
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn magic(&self) -> &[u8] {
        let start = self.version.magic_offset();
        &self.bytes[start..start + self.version.magic_single().len()]
    }

    pub fn integer(&self, field: Field, index: usize) -> i64 {
        let number = self.little(field, index);
        let [a, b, c, d, ..] = number;
        match self.place(field, index).1 {
            Kind::Byte => a.into(),
            Kind::I16 => i16::from_le_bytes([a, b]).into(),
            Kind::I32 => i32::from_le_bytes([a, b, c, d]).into(),
            Kind::I64 => i64::from_le_bytes(number),
            Kind::F32 | Kind::F64 => self.float(field, index) as i64,
        }
    }

    pub fn float(&self, field: Field, index: usize) -> f64 {
        let number = self.little(field, index);
        let [a, b, c, d, ..] = number;
        match self.place(field, index).1 {
            Kind::F32 => f32::from_le_bytes([a, b, c, d]).into(),
            Kind::F64 => f64::from_le_bytes(number),
            Kind::Byte | Kind::I16 | Kind::I32 | Kind::I64 => self.integer(field, index) as f64,
        }
    }

    pub fn put_integer(&mut self, field: Field, index: usize, value: i64) {
        match self.place(field, index).1 {
            Kind::F32 | Kind::F64 => self.put_float(field, index, value as f64),
            Kind::Byte | Kind::I16 | Kind::I32 | Kind::I64 => self.put(field, index, &value.to_le_bytes()),
        }
    }

    /// Writes a number to a field of floating-point numbers.
    pub fn put_float(&mut self, field: Field, index: usize, value: f64) {
        match self.place(field, index).1 {
            Kind::F32 => self.put(field, index, &(value as f32).to_le_bytes()),
            _ => self.put(field, index, &value.to_le_bytes()),
        }
    }

    /// Takes a field over from another header of the same version, bit by bit.
    pub fn copy(&mut self, field: Field, from: &Self) {
        (0..field.count).for_each(|index| self.put(field, index, &from.little(field, index)));
    }

    /// Where a number of a field starts, and how it is stored.
    fn place(&self, field: Field, index: usize) -> (usize, Kind) {
        let (offset, kind) = match self.version {
            Version::One => field.one,
            Version::Two => field.two,
        };
        (offset + index * kind.bytes(), kind)
    }

    /// The bytes of one number, least significant first.
    fn little(&self, field: Field, index: usize) -> [u8; 8] {
        let (start, kind) = self.place(field, index);
        let width = kind.bytes();
        let mut number = [0; 8];
        number[..width].copy_from_slice(&self.bytes[start..start + width]);
        if self.order == ByteOrder::Big {
            number[..width].reverse();
        }
        number
    }

    /// Writes the first bytes of `little`, as many as the number has. Headers are written in little-endian order only.
    fn put(&mut self, field: Field, index: usize, little: &[u8]) {
        let (start, kind) = self.place(field, index);
        self.bytes[start..start + kind.bytes()].copy_from_slice(&little[..kind.bytes()]);
    }
}
