//! Writing: one file with header and data, with the fields that ITK writes.

use super::types;
use crate::error::Problem;
use crate::text_header::stored::{for_file, zlibbed};
use crate::volume::Image;
use crate::voxels::VoxelType;

/// The bytes of a `.mha` file with raw data.
///
/// Several channels are written interleaved. An image with a slope or an intercept is written as its scaled values in
/// double precision, since readers differ in whether they apply the format's fields for them.
pub fn encode(image: &Image) -> Vec<u8> {
    let (kind, mut data) = for_file(image);
    let mut bytes = header(image, kind, None).into_bytes();
    bytes.append(&mut data);
    bytes
}

/// The bytes of a `.mha` file with zlib data; otherwise like [`encode`].
pub fn encode_zlib(image: &Image) -> Result<Vec<u8>, Problem> {
    let (kind, data) = for_file(image);
    let mut data = zlibbed(&data)?;
    let mut bytes = header(image, kind, Some(data.len())).into_bytes();
    bytes.append(&mut data);
    Ok(bytes)
}

fn header(image: &Image, kind: VoxelType, compressed_size: Option<usize>) -> String {
    let [c, d, h, w] = image.shape;
    let geometry = image.geometry.with_x_and_y_flipped();
    // Debug formatting of a number is its shortest text that reads back as the same number; adding zero turns -0
    // into 0.
    let list = |numbers: [f64; 3]| {
        let [x, y, z] = numbers.map(|x| x + 0.0);
        format!("{x:?} {y:?} {z:?}")
    };
    let vectors = [0, 1, 2].map(|axis| list(geometry.direction.map(|row| row[axis])));
    let compression = match compressed_size {
        Some(size) => format!("True\nCompressedDataSize = {size}"),
        None => "False".to_owned(),
    };
    let channels = if c == 1 { String::new() } else { format!("ElementNumberOfChannels = {c}\n") };
    [
        "ObjectType = Image".to_owned(),
        "NDims = 3".to_owned(),
        "BinaryData = True".to_owned(),
        "BinaryDataByteOrderMSB = False".to_owned(),
        format!("CompressedData = {compression}"),
        format!("TransformMatrix = {}", vectors.join(" ")),
        format!("Offset = {}", list(geometry.origin)),
        "CenterOfRotation = 0 0 0".to_owned(),
        format!("ElementSpacing = {}", list(geometry.spacing)),
        format!("DimSize = {w} {h} {d}"),
        format!("{channels}ElementType = {}", types::name(kind)),
        "ElementDataFile = LOCAL\n".to_owned(),
    ]
    .join("\n")
}
