//! Writing: one file with header and data, in the space left-posterior-superior as ITK and 3D Slicer write it.

use super::types;
use crate::error::Problem;
use crate::text_header::stored::{for_file, gzipped};
use crate::volume::Image;
use crate::voxels::VoxelType;

/// The bytes of a file with raw data.
///
/// Several channels are written interleaved as an axis of kind vector. An image with a slope or an intercept is
/// written as its scaled values in double precision, since the format has no field for them.
pub fn encode(image: &Image) -> Vec<u8> {
    let (kind, mut data) = for_file(image);
    let mut bytes = header(image, kind, "raw").into_bytes();
    bytes.append(&mut data);
    bytes
}

/// The bytes of a file with gzip data; otherwise like [`encode`].
pub fn encode_gzip(image: &Image) -> Result<Vec<u8>, Problem> {
    let (kind, data) = for_file(image);
    let mut bytes = header(image, kind, "gzip").into_bytes();
    bytes.append(&mut gzipped(&data)?);
    Ok(bytes)
}

fn header(image: &Image, kind: VoxelType, encoding: &str) -> String {
    let [c, d, h, w] = image.shape;
    let (dimension, sizes, none, vector) = match c {
        1 => (3, format!("{w} {h} {d}"), "", ""),
        _ => (4, format!("{c} {w} {h} {d}"), "none ", "vector "),
    };
    // Debug formatting of a number is its shortest text that reads back as the same number.
    let affine = image.geometry.with_x_and_y_flipped().affine();
    let column = |axis: usize| {
        let [x, y, z] = affine.map(|row| row[axis] + 0.0);
        format!("({x:?},{y:?},{z:?})")
    };
    [
        "NRRD0004".to_owned(),
        format!("type: {}", types::name(kind)),
        format!("dimension: {dimension}"),
        "space: left-posterior-superior".to_owned(),
        format!("sizes: {sizes}"),
        format!("space directions: {none}{} {} {}", column(0), column(1), column(2)),
        format!("kinds: {vector}domain domain domain"),
        "endian: little".to_owned(),
        format!("encoding: {encoding}"),
        format!("space origin: {}", column(3)),
        "\n".to_owned(),
    ]
    .join("\n")
}
