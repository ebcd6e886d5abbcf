//! From the bytes of a data section to an image and back.
//!
//! Knows the order of values and the length of the data; not where the bytes lie or what a header looks like.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::Compression;
use flate2::read::{GzEncoder, ZlibEncoder};

use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::{Limits, memory_of};
use crate::volume::Image;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// The name of the data section in refusals.
pub(crate) const DATA: &str = "the data";

/// Where the channels of a voxel lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Side by side: the channel runs fastest.
    Interleaved,
    /// One whole volume after the other: the channel runs slowest.
    Planar,
}

/// What a header says about the values in the data section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) kind: VoxelType,
    pub(crate) order: ByteOrder,
    /// `[c, d, h, w]`.
    pub(crate) shape: [usize; 4],
    pub(crate) channels: Channels,
}

impl Stored {
    /// Bytes of all values, if their number is within the limits.
    pub(crate) fn bytes(&self, limits: &Limits) -> Result<u64, Problem> {
        let values = limits.check_values(&self.shape)? as u64;
        let bytes = values.checked_mul(self.kind.bytes() as u64);
        bytes.filter(|&bytes| usize::try_from(bytes).is_ok()).ok_or(Problem::Limit {
            what: "the number of values",
            found: values,
            limit: limits.values,
            name: "values",
        })
    }

    /// Refuses values that would cost more memory than a data section of a size may, with `skipped` bytes before
    /// them in the expanded data.
    pub(crate) fn check_memory(&self, skipped: u64, section: &[u8], limits: &Limits) -> Result<(), Problem> {
        let values = limits.check_values(&self.shape)? as u64;
        let memory = memory_of(values, self.kind.bytes()).saturating_add(skipped);
        limits.check_memory(memory, section.len() as u64)
    }

    /// The image of exactly as many bytes as [`bytes`](Self::bytes) says.
    pub(crate) fn image(
        &self,
        bytes: Cow<'_, [u8]>,
        geometry: Geometry,
        limits: &Limits,
    ) -> Result<Image, Problem> {
        let [c, d, h, w] = self.shape;
        let planar = match self.channels {
            Channels::Interleaved if c > 1 => {
                let planar = transposed(&bytes, d * h * w, self.kind); // [d·h·w, c] → [c, d·h·w]
                // Of the three copies of the values only two are ever there at once.
                drop(bytes);
                Cow::Owned(planar)
            }
            _ => bytes,
        };
        Image::new(Voxels::from_bytes(self.kind, &planar, self.order), self.shape, geometry, limits)
    }
}

/// The bytes of raw data, which must be as many as needed.
pub(crate) fn exactly(data: &[u8], needed: u64) -> Result<&[u8], Problem> {
    let found = data.len() as u64;
    if found > needed {
        return Err(Problem::Field {
            field: DATA,
            found: format!("{found} bytes long"),
            allowed: "as long as sizes and type in the header say",
            advice: "header and data do not belong together: export the image again",
        });
    }
    last(data, needed)
}

/// The last bytes of raw data, as many as needed.
pub(crate) fn last(data: &[u8], needed: u64) -> Result<&[u8], Problem> {
    let found = data.len() as u64;
    let start = found.checked_sub(needed).and_then(|start| data.get(start as usize..));
    start.ok_or(Problem::Truncated { part: DATA, needed, found })
}

/// The type and the bytes of an image's values for a file: little endian, channels interleaved.
///
/// Neither format can state a slope and an intercept that all readers apply; an image that has them is stored as
/// its scaled values in double precision.
pub(crate) fn for_file(image: &Image) -> (VoxelType, Vec<u8>) {
    let scaled = image.slope != 1.0 || image.intercept != 0.0;
    let voxels = if scaled {
        Cow::Owned(Voxels::F64(image.voxels.scaled_f64(image.slope, image.intercept)))
    } else {
        Cow::Borrowed(&image.voxels)
    };
    let (kind, channels) = (voxels.kind(), image.shape[0]);
    let bytes = voxels.to_le_bytes();
    let bytes = if channels > 1 { transposed(&bytes, channels, kind) } else { bytes };
    (kind, bytes)
}

/// Bytes as gzip.
pub(crate) fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = vec![];
    GzEncoder::new(bytes, Compression::default()).read_to_end(&mut out)?;
    Ok(out)
}

/// Bytes as zlib.
pub(crate) fn zlibbed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = vec![];
    ZlibEncoder::new(bytes, Compression::default()).read_to_end(&mut out)?;
    Ok(out)
}

/// The transpose of a matrix of values with `rows` rows, row-major before and after.
fn transposed(bytes: &[u8], rows: usize, kind: VoxelType) -> Vec<u8> {
    match kind.bytes() {
        1 => transposed_values::<1>(bytes, rows),
        2 => transposed_values::<2>(bytes, rows),
        4 => transposed_values::<4>(bytes, rows),
        _ => transposed_values::<8>(bytes, rows),
    }
}

fn transposed_values<const N: usize>(bytes: &[u8], rows: usize) -> Vec<u8> {
    let (values, _) = bytes.as_chunks::<N>();
    let columns = values.len().checked_div(rows).unwrap_or(0);
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend(values[column..].iter().step_by(columns).take(rows));
    }
    out.into_flattened()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_changes_nothing() {
        let bytes: Vec<u8> = (0..48).collect();
        assert_eq!(transposed(&bytes[..6], 2, VoxelType::U8), [0, 3, 1, 4, 2, 5]);
        for kind in VoxelType::ALL {
            let columns = 48 / 3 / kind.bytes();
            assert_eq!(transposed(&transposed(&bytes, 3, kind), columns, kind), bytes);
        }
        assert_eq!(transposed(&bytes, 0, VoxelType::U8), [0; 0]);
    }

    #[test]
    fn the_length_of_the_data_is_exact() {
        assert_eq!(exactly(b"abc", 3).unwrap(), b"abc");
        assert_eq!(last(b"abc", 2).unwrap(), b"bc");
        assert!(exactly(b"abcd", 3).unwrap_err().to_string().contains("do not belong together"));
        assert!(exactly(b"ab", 3).unwrap_err().to_string().contains("cut off"));
        assert!(last(b"ab", u64::MAX).unwrap_err().to_string().contains("cut off"));
    }
}
