//! The numbers and texts of a header by field, read in either byte order and written in little-endian order.

use super::layout::{Field, Kind, Layout, Version};
use crate::error::Problem;
use crate::voxels::ByteOrder;

/// The bytes of a header with the order of its numbers.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub version: Version,
    pub order: ByteOrder,
    bytes: Vec<u8>,
}

impl Fields {
    /// The header at the start of a file; the size that it gives for itself tells version and byte order.
    pub fn read(file: &[u8]) -> Result<Self, Problem> {
        let Some(&[a, b, c, d]) = file.first_chunk::<4>() else {
            return Err(Problem::Truncated { part: "the header", needed: 348, found: file.len() as u64 });
        };
        let (little, big) = (i32::from_le_bytes([a, b, c, d]), i32::from_be_bytes([a, b, c, d]));
        let (version, order) = match (little, big) {
            (348, _) => (Version::One, ByteOrder::Little),
            (_, 348) => (Version::One, ByteOrder::Big),
            (540, _) => (Version::Two, ByteOrder::Little),
            (_, 540) => (Version::Two, ByteOrder::Big),
            _ => {
                return Err(Problem::Field {
                    field: "sizeof_hdr",
                    found: format!("{little}, or {big} in the other byte order"),
                    allowed: "348 (NIfTI-1) or 540 (NIfTI-2)",
                    advice: "this is no NIfTI header: check which file was given",
                });
            }
        };
        let needed = version.layout().bytes;
        let Some(bytes) = file.get(..needed) else {
            let found = file.len() as u64;
            return Err(Problem::Truncated { part: "the header", needed: needed as u64, found });
        };
        Ok(Self { version, order, bytes: bytes.to_vec() })
    }

    /// An empty header in little-endian order.
    pub fn empty(version: Version) -> Self {
        let layout = version.layout();
        let mut fields = Self { version, order: ByteOrder::Little, bytes: vec![0; layout.bytes] };
        fields.put_integer(layout.sizeof_hdr, 0, layout.bytes as i64);
        fields
    }

    pub fn layout(&self) -> &'static Layout {
        self.version.layout()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes of a text.
    pub fn text(&self, field: Field) -> &[u8] {
        &self.bytes[field.offset..field.offset + field.count * field.kind.bytes()]
    }

    pub fn integer(&self, field: Field, index: usize) -> i64 {
        let [a, b, c, d, ..] = self.little(field, index);
        match field.kind {
            Kind::Byte => a.into(),
            Kind::I16 => i16::from_le_bytes([a, b]).into(),
            Kind::I32 => i32::from_le_bytes([a, b, c, d]).into(),
            Kind::I64 => i64::from_le_bytes(self.little(field, index)),
            Kind::F32 | Kind::F64 => self.float(field, index) as i64,
        }
    }

    pub fn float(&self, field: Field, index: usize) -> f64 {
        let [a, b, c, d, ..] = self.little(field, index);
        match field.kind {
            Kind::F32 => f32::from_le_bytes([a, b, c, d]).into(),
            Kind::F64 => f64::from_le_bytes(self.little(field, index)),
            Kind::Byte | Kind::I16 | Kind::I32 | Kind::I64 => self.integer(field, index) as f64,
        }
    }

    pub fn put_integer(&mut self, field: Field, index: usize, value: i64) {
        match field.kind {
            Kind::F32 | Kind::F64 => self.put_float(field, index, value as f64),
            Kind::Byte | Kind::I16 | Kind::I32 | Kind::I64 => self.put(field, index, value.to_le_bytes()),
        }
    }

    pub fn put_float(&mut self, field: Field, index: usize, value: f64) {
        match field.kind {
            Kind::F32 => {
                let [a, b, c, d] = (value as f32).to_le_bytes();
                self.put(field, index, [a, b, c, d, 0, 0, 0, 0]);
            }
            _ => self.put(field, index, value.to_le_bytes()),
        }
    }

    pub fn put_text(&mut self, field: Field, text: &[u8]) {
        text.iter().enumerate().take(field.count).for_each(|(i, &byte)| self.bytes[field.offset + i] = byte);
    }

    /// Takes a field over from another header of the same version, bit by bit.
    pub fn copy(&mut self, field: Field, from: &Self) {
        (0..field.count).for_each(|index| self.put(field, index, from.little(field, index)));
    }

    /// The bytes of one number, least significant first.
    fn little(&self, field: Field, index: usize) -> [u8; 8] {
        let width = field.kind.bytes();
        let start = field.offset + index * width;
        let mut number = [0; 8];
        number[..width].copy_from_slice(&self.bytes[start..start + width]);
        if self.order == ByteOrder::Big {
            number[..width].reverse();
        }
        number
    }

    /// Headers are written in little-endian order only.
    fn put(&mut self, field: Field, index: usize, little: [u8; 8]) {
        let width = field.kind.bytes();
        let start = field.offset + index * width;
        self.bytes[start..start + width].copy_from_slice(&little[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round() {
        for version in [Version::One, Version::Two] {
            let mut fields = Fields::empty(version);
            let layout = fields.layout();
            fields.put_integer(layout.dim, 7, -3);
            fields.put_float(layout.srow, 11, 0.25);
            fields.put_integer(layout.vox_offset, 0, 544);
            let back = Fields::read(&fields.bytes).unwrap();
            assert_eq!((back.version, back.order), (version, ByteOrder::Little));
            assert_eq!((back.integer(layout.dim, 7), back.float(layout.srow, 11)), (-3, 0.25));
            assert_eq!(back.float(layout.vox_offset, 0), 544.0);
        }
    }

    #[test]
    fn other_files_are_named() {
        let message = Fields::read(b"\x89PNG....").unwrap_err().to_string();
        assert!(
            message.contains("sizeof_hdr is 1196314761, or -1991225785") && message.contains("348"),
            "{message}"
        );
        let message = Fields::read(&[0, 0, 1, 0x5c, 0, 0]).unwrap_err().to_string();
        assert!(message.contains("the header needs 348 bytes, but only 6"), "{message}");
        assert!(Fields::read(&[]).is_err());
    }
}
