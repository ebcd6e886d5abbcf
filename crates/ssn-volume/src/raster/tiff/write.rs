//! Writing TIFF.

use super::super::png::interleave;
use super::super::{check_plain, field};
use crate::error::Problem;
use crate::volume::Image;
use crate::voxels::{VoxelType, Voxels};

/// From this size on the offsets need BigTIFF; the margin is for the directories.
const LARGE: u64 = (u32::MAX as u64) - (1 << 24);

/// The bytes of a TIFF file with a page for every slice, without compression; BigTIFF where 4 GB are not
/// enough.
///
/// # Shapes
/// `[1, d, h, w]` in any type, or `[3, d, h, w]` in `u8` or `u16`, with the default geometry; others are
/// refused.
pub fn encode_tiff(image: &Image) -> Result<Vec<u8>, Problem> {
    let [_, d, ..] = image.shape;
    let bytes = (image.voxels.len() * image.voxels.kind().bytes()) as u64;
    encode(image, bytes.saturating_add(d as u64 * 300) > LARGE)
}

fn encode(image: &Image, big: bool) -> Result<Vec<u8>, Problem> {
    check_plain(image)?;
    let [c, d, h, w] = image.shape;
    let kind = image.voxels.kind();
    if !(c == 1 || c == 3 && matches!(kind, VoxelType::U8 | VoxelType::U16)) {
        let found = format!("{c} of {kind:?}");
        return Err(field("the channels", found, "1, or 3 of u8 or u16", "write the channels one by one"));
    }
    let data = match &image.voxels {
        Voxels::U8(values) => interleave(values, c, |x| [x]),
        Voxels::U16(values) => interleave(values, c, u16::to_le_bytes),
        values => values.to_le_bytes(),
    };
    let mut out = Writer { bytes: vec![], big };
    out.bytes.extend(if big { &b"II\x2b\0\x08\0\0\0"[..] } else { b"II\x2a\0" });
    let mut link = out.bytes.len();
    out.offset(0);
    for page in data.chunks(data.len() / d.max(1)) {
        let strip = out.aligned();
        out.bytes.extend_from_slice(page);
        let bits = out.aligned();
        (0..c).for_each(|_| out.bytes.extend((8 * kind.bytes() as u16).to_le_bytes()));
        let directory = out.aligned();
        out.patch(link, directory as u64);
        link = out.directory(&[
            (256, LONG, 1, w as u64),
            (257, LONG, 1, h as u64),
            // Three numbers of two bytes fit into the field of BigTIFF alone.
            (258, SHORT, c as u64, if c > 1 && !big { bits as u64 } else { bits_field(c, kind) }),
            (259, SHORT, 1, 1),
            (262, SHORT, 1, if c == 3 { 2 } else { 1 }),
            (273, OFFSET, 1, strip as u64),
            (277, SHORT, 1, c as u64),
            (278, LONG, 1, h as u64),
            (279, OFFSET, 1, page.len() as u64),
            (339, SHORT, 1, format(kind)),
        ]);
    }
    Ok(out.bytes)
}

const SHORT: u16 = 3;
const LONG: u16 = 4;
/// `LONG` or, in BigTIFF, `LONG8`.
const OFFSET: u16 = 16;

/// The number of bits of every sample, as the numbers stand side by side in a field.
fn bits_field(channels: usize, kind: VoxelType) -> u64 {
    (0..channels).fold(0, |field, _| (field << 16) | (8 * kind.bytes() as u64))
}

/// The value of `SampleFormat`.
fn format(kind: VoxelType) -> u64 {
    match kind {
        VoxelType::U8 | VoxelType::U16 | VoxelType::U32 | VoxelType::U64 => 1,
        VoxelType::I8 | VoxelType::I16 | VoxelType::I32 | VoxelType::I64 => 2,
        VoxelType::F32 | VoxelType::F64 => 3,
    }
}

struct Writer {
    bytes: Vec<u8>,
    big: bool,
}

impl Writer {
    /// The next even place; everything in the file starts at one.
    fn aligned(&mut self) -> usize {
        if !self.bytes.len().is_multiple_of(2) {
            self.bytes.push(0);
        }
        self.bytes.len()
    }

    fn offset(&mut self, offset: u64) {
        let size = if self.big { 8 } else { 4 };
        self.bytes.extend(&offset.to_le_bytes()[..size]);
    }

    fn patch(&mut self, at: usize, offset: u64) {
        let size = if self.big { 8 } else { 4 };
        self.bytes[at..at + size].copy_from_slice(&offset.to_le_bytes()[..size]);
    }

    /// Writes a directory; returns the place of the link to the next one.
    fn directory(&mut self, entries: &[(u16, u16, u64, u64)]) -> usize {
        let count = entries.len() as u64;
        self.bytes.extend(&count.to_le_bytes()[..if self.big { 8 } else { 2 }]);
        for &(tag, kind, values, value) in entries {
            let kind = if kind == OFFSET && !self.big { LONG } else { kind };
            self.bytes.extend(tag.to_le_bytes());
            self.bytes.extend(kind.to_le_bytes());
            self.offset(values);
            self.offset(value);
        }
        let link = self.bytes.len();
        self.offset(0);
        link
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_tiff;
    use super::*;
    use crate::geometry::Geometry;
    use crate::limits::Limits;
    use crate::voxels::ByteOrder;

    #[test]
    fn all_types_go_round_in_both_formats() {
        let limits = Limits::default();
        for kind in VoxelType::ALL {
            for (c, d) in [(1, 1), (1, 3), (3, 2)] {
                let shape = [c, d, 5, 3];
                let count = c * d * 15 * kind.bytes();
                let bytes: Vec<u8> = (0..count).map(|i| ((i * 37) >> 2) as u8 & 0x7b).collect();
                let voxels = Voxels::from_bytes(kind, &bytes, ByteOrder::Little);
                let image = Image::new(voxels, shape, Geometry::default(), &limits).unwrap();
                for big in [false, true] {
                    match encode(&image, big) {
                        Ok(bytes) => {
                            assert_eq!(parse_tiff(&bytes, &limits).unwrap(), image, "{kind:?} {big}")
                        }
                        Err(problem) => {
                            assert!(
                                c == 3 && kind.bytes() > 2 || matches!(kind, VoxelType::I8 | VoxelType::I16)
                            );
                            assert!(problem.to_string().contains("one by one"));
                        }
                    }
                }
            }
        }
    }
}
