//! MetaImage, the format of ITK's MetaIO: `.mha` with header and data, or `.mhd` with its data in another file.
//!
//! Read are raw, zlib and gzip data of all integer and floating types, with 2 or 3 axes in space, channels
//! interleaved (`ElementNumberOfChannels`) or as a fourth axis. The world is LPS, as ITK has it. Fields that the format
//! does not define are notes of the writer and are ignored; what would change values or places and is not
//! understood is refused.
//!
//! The format: <https://itk.org/Wiki/ITK/MetaIO/Documentation>. This module opens no files: a caller that meets a
//! header with its data elsewhere opens the file that [`Header::data_file`] names.

use std::io::Read;

use flate2::read::ZlibEncoder;

pub use crate::formats::text_header::Header;
use crate::formats::text_header::{
    EXPORT_AGAIN, Field, Fields, Packing, Skip, TypeNames, bytes_of, checked_geometry, for_file, line_shown,
    missing, type_name,
};
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, Image, VoxelType};

/// Every spelling of the fields that bear on values or places. MetaIO distinguishes upper and lower case.
#[rustfmt::skip]
const FIELDS: [&[&str]; 20] = [
    &["AnatomicalOrientation"], &["BinaryData"], &["BinaryDataByteOrderMSB", "ElementByteOrderMSB"],
    &["CenterOfRotation"], &["CompressedData"], &["CompressedDataSize"], &["DimSize"], &["DistanceUnits"],
    &["ElementDataFile"], &["ElementNumberOfChannels"], &["ElementSize"], &["ElementSpacing"],
    &["ElementToIntensityFunctionOffset"], &["ElementToIntensityFunctionSlope"], &["ElementType"],
    &["HeaderSize"], &["NDims"], &["ObjectType"], &["Offset", "Origin", "Position"],
    &["TransformMatrix", "Rotation", "Orientation"],
];
const NEEDED: &str = "given in every header, before ElementDataFile";

/// The types that MetaIO's table of sizes defines; its `MET_LONG` has 4 bytes on every machine.
#[rustfmt::skip]
const TYPES: TypeNames = [
    (VoxelType::I8, &["MET_CHAR"]), (VoxelType::U8, &["MET_UCHAR"]),
    (VoxelType::I16, &["MET_SHORT"]), (VoxelType::U16, &["MET_USHORT"]),
    (VoxelType::I32, &["MET_INT", "MET_LONG"]), (VoxelType::U32, &["MET_UINT", "MET_ULONG"]),
    (VoxelType::I64, &["MET_LONG_LONG"]), (VoxelType::U64, &["MET_ULONG_LONG"]),
    (VoxelType::F32, &["MET_FLOAT"]), (VoxelType::F64, &["MET_DOUBLE"]),
];
const TYPE_NAMES: &str = "MET_CHAR, MET_UCHAR, MET_SHORT, MET_USHORT, MET_INT, MET_UINT, MET_LONG, MET_ULONG, \
                          MET_LONG_LONG, MET_ULONG_LONG, MET_FLOAT or MET_DOUBLE";

/// How far the length of a direction may be from 1. Writers round to as few as four digits; what is further away is
/// a scale of its own, for which readers differ.
const LENGTH_TOLERANCE: f64 = 1e-3;
/// Directions closer to length 1 than this are left as they are, so that they go round through a file unchanged.
const LENGTH_ROUNDING: f64 = 1e-12;

/// The image of a file that holds header and data.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    parse_header(bytes, limits)?.image_in(bytes, limits)
}

/// The header of a file, with or without the data behind it; [`Header::data_file`] says which.
pub fn parse_header(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    let fields = split(bytes, limits)?;
    check_storage(&fields)?;
    let dimension = fields.needed("NDims", NEEDED)?.number("2, 3 or 4")?;
    let (shape, interleaved) = shape(&fields, dimension)?;
    let type_field = fields.needed("ElementType", NEEDED)?;
    let kind = type_field.among(&TYPES, str::eq);
    let kind = kind.ok_or_else(|| type_field.refused(TYPE_NAMES, "store the image as one of these"))?;
    let order = byte_order(&fields, kind)?;
    bytes_of(shape, kind, limits)?;
    let geometry = geometry(&fields, dimension)?;
    let packing = packing(&fields)?;
    let data_file = data_file(fields.needed("ElementDataFile", NEEDED)?, &bytes[fields.end..])?;
    let skip = skip(&fields, packing, data_file.is_none())?;
    if skip == Skip::ToTheEnd && matches!(type_field.text, "MET_LONG" | "MET_ULONG") {
        let allowed =
            "another type where HeaderSize is -1: some writers give this one 8 bytes, and nothing would show";
        return Err(type_field.refused(allowed, "write MET_INT or MET_LONG_LONG"));
    }
    Ok(Header { kind, order, shape, interleaved, geometry, packing, skip, data_file, end: fields.end })
}

/// Splits a header into its fields, up to `ElementDataFile`, which is the last.
fn split<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Fields<'a>, Problem> {
    let mut fields = Fields::new(&FIELDS, bytes);
    while fields.end < bytes.len() {
        let line = fields.next_line(limits)?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let refuse = |allowed| {
            let advice = "is this a MetaImage file? Correct the header or export the image again";
            refused("a line of the header", line_shown(line), allowed, advice)
        };
        let at = line.iter().position(|&b| b == b'=').ok_or_else(|| refuse("`Field = text`"))?;
        let (found, text) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
        let Some((name, spelling)) = fields.known(found) else { continue };
        // A field that other readers would overlook must not decide here, and overlooking it here would hide a slip.
        if found != spelling.as_bytes() {
            return Err(refuse("a field in the upper and lower case of the format"));
        }
        let text = std::str::from_utf8(text).map_err(|_| refuse("text in UTF-8"))?;
        fields.set(name, text, line)?;
        if name == "ElementDataFile" {
            return Ok(fields);
        }
    }
    let allowed = "LOCAL or the name of a file, in the last line of the header";
    Err(missing("ElementDataFile", allowed, "is this a MetaImage file, and is it whole?"))
}

/// Refuses other objects than images, and values that are not stored as they are meant.
fn check_storage(fields: &Fields<'_>) -> Result<(), Problem> {
    let rule = ("Image", "other objects of MetaIO hold no voxels");
    fields.check("ObjectType", |text| text == "Image", rule)?;
    if boolean(fields, "BinaryData")? == Some(false) {
        let text = Field { name: "BinaryData", text: "False" };
        return Err(text.refused("True", "store the image in binary form"));
    }
    let identity = [("ElementToIntensityFunctionSlope", 1.0), ("ElementToIntensityFunctionOffset", 0.0)];
    for (name, identity) in identity {
        let Some(field) = fields.get(name) else { continue };
        if field.number::<f64>("a number")? != identity {
            let allowed =
                "1 for the slope and 0 for the offset: ITK ignores other values and other readers do not";
            return Err(field.refused(allowed, "store the scaled values"));
        }
    }
    Ok(())
}

fn boolean(fields: &Fields<'_>, name: &'static str) -> Result<Option<bool>, Problem> {
    let Some(field) = fields.get(name) else { return Ok(None) };
    let rows =
        [(true, &["True", "true", "TRUE", "T", "1"][..]), (false, &["False", "false", "FALSE", "F", "0"])];
    field.among(&rows, str::eq).map(Some).ok_or_else(|| field.refused("True or False", EXPORT_AGAIN))
}

/// `[c, d, h, w]`, and whether channels are interleaved.
fn shape(fields: &Fields<'_>, dimension: usize) -> Result<([usize; 4], bool), Problem> {
    let channels = fields.get("ElementNumberOfChannels").map_or(Ok(1), |x| x.number("a whole number"))?;
    if !(2..=4).contains(&dimension) {
        let ndims = Field { name: "NDims", text: &dimension.to_string() };
        return Err(ndims.refused("2, 3 or 4", "store each part of the image in a file of its own"));
    }
    let sizes = fields.needed("DimSize", NEEDED)?;
    match *sizes.numbers(dimension, "as many whole numbers as NDims says")?.as_slice() {
        [w, h] => Ok(([channels, 1, h, w], true)),
        [w, h, d] => Ok(([channels, d, h, w], true)),
        [w, h, d, c] if channels == 1 => Ok(([c, d, h, w], false)),
        _ => {
            let channels = Field { name: "ElementNumberOfChannels", text: &channels.to_string() };
            let allowed = "1 where NDims is 4, since the fourth axis is read as the channels";
            Err(channels.refused(allowed, EXPORT_AGAIN))
        }
    }
}

/// The order of bytes; needed only where a value has several.
fn byte_order(fields: &Fields<'_>, kind: VoxelType) -> Result<ByteOrder, Problem> {
    let (name, allowed) = ("BinaryDataByteOrderMSB", "True or False, for values of several bytes");
    let advice = "add the line, if you know on which machine the file was made (False on nearly all)";
    match boolean(fields, name)? {
        Some(true) => Ok(ByteOrder::Big),
        Some(false) => Ok(ByteOrder::Little),
        None if kind.bytes() == 1 => Ok(ByteOrder::Little),
        None => Err(missing(name, allowed, advice)),
    }
}

/// The geometry of a header with `dimension` axes, of which the first three lie in space.
fn geometry(fields: &Fields<'_>, dimension: usize) -> Result<Geometry, Problem> {
    let allowed = "as many numbers as the axes ask for";
    let get = |name, count| fields.get(name).map(|x| x.numbers::<f64>(count, allowed)).transpose();
    let rule = ("mm", "export the image in millimeters");
    fields.check("DistanceUnits", |text| matches!(text, "mm" | "?"), rule)?;
    if fields.get("TransformMatrix").is_none() {
        // Without a matrix this field, else only a summary of it, must agree with the axes of the world, whose name
        // counts from where the axes come: right, anterior, inferior.
        let agrees = |text: &str| text == "RAI" || text.chars().all(|c| c == '?');
        let rule = ("RAI where there is no TransformMatrix", "export the image with a TransformMatrix");
        fields.check("AnatomicalOrientation", agrees, rule)?;
    }
    if let Some(center) = get("CenterOfRotation", dimension)?.filter(|all| all.iter().any(|&x| x != 0.0)) {
        let center = Field { name: "CenterOfRotation", text: &format!("{center:?}") };
        let allowed = "zero: readers differ in what another center means";
        return Err(center.refused(allowed, "export the image without it"));
    }
    // Without a spacing the size of the voxels stands in for it, as in ITK.
    let has_spacing = fields.get("ElementSpacing").is_some();
    let spacing = get(if has_spacing { "ElementSpacing" } else { "ElementSize" }, dimension)?;
    let origin = get("Offset", dimension)?;
    let matrix = get("TransformMatrix", dimension * dimension)?;

    let mut geometry = Geometry::default();
    let axes = dimension.min(3);
    spacing.iter().for_each(|spacing| geometry.spacing[..axes].copy_from_slice(&spacing[..axes]));
    origin.iter().for_each(|origin| geometry.origin[..axes].copy_from_slice(&origin[..axes]));
    if let Some(matrix) = matrix {
        geometry.direction = direction(&matrix, dimension)?;
    }
    checked_geometry(geometry.with_x_and_y_flipped(), ["ElementSpacing", "Offset", "TransformMatrix"])
}

/// The directions of a matrix, which lists the vector of the first axis, then that of the second, and so on.
fn direction(matrix: &[f64], dimension: usize) -> Result<[[f64; 3]; 3], Problem> {
    // A fourth axis holds channels, so it must not mix with space.
    let mixes = |(axis, row): (usize, usize)| matrix[axis * 4 + row] != f64::from(u8::from(axis == row));
    if dimension == 4 && (0..4).flat_map(|n| [(n, 3), (3, n)]).any(mixes) {
        let matrix = Field { name: "TransformMatrix", text: &format!("{matrix:?}") };
        let allowed = "such that the fourth axis, of the channels, stands apart from the others";
        return Err(matrix.refused(allowed, EXPORT_AGAIN));
    }
    let mut direction = Geometry::default().direction;
    for (axis, vector) in matrix.chunks(dimension).take(3).enumerate() {
        let vector = &vector[..dimension.min(3)];
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        let deviation = (length - 1.0).abs();
        if deviation.is_nan() || deviation > LENGTH_TOLERANCE {
            let found = format!("with a vector of length {length} along axis {axis}");
            let advice = "put the scale into ElementSpacing";
            return Err(refused("TransformMatrix", found, "of vectors of length 1", advice));
        }
        let scale = if deviation > LENGTH_ROUNDING { length } else { 1.0 };
        vector.iter().enumerate().for_each(|(row, x)| direction[row][axis] = x / scale);
    }
    Ok(direction)
}

fn packing(fields: &Fields<'_>) -> Result<Packing, Problem> {
    if boolean(fields, "CompressedData")? != Some(true) {
        return Ok(Packing::Raw);
    }
    let size = fields.get("CompressedDataSize").map(|field| field.number("a whole number of bytes"));
    size.transpose().map(Packing::Compressed)
}

/// The name of the data file, or nothing for data behind the header; `rest` is what follows the header.
fn data_file(field: Field<'_>, rest: &[u8]) -> Result<Option<String>, Problem> {
    if matches!(field.text, "LOCAL" | "Local" | "local") {
        return Ok(None);
    }
    let name = field.file_name()?;
    if rest.trim_ascii().is_empty() {
        return Ok(Some(name));
    }
    let allowed = "the last line of a header whose data is in another file";
    Err(field.refused(allowed, "is the data behind the header? Then it must be LOCAL"))
}

fn skip(fields: &Fields<'_>, packing: Packing, local: bool) -> Result<Skip, Problem> {
    let field = fields.get("HeaderSize").unwrap_or(Field { name: "HeaderSize", text: "0" });
    let allowed = "a whole number of bytes in another file, or -1 for raw data at the end of the file";
    match field.skipped(packing == Packing::Raw, allowed)? {
        None => Ok(Skip::ToTheEnd),
        Some(stored) if stored == 0 || !local => Ok(Skip::Start { lines: 0, stored, expanded: 0 }),
        Some(_) => Err(field.refused(allowed, EXPORT_AGAIN)),
    }
}

/// The bytes of a `.mha` file with raw data.
///
/// Several channels are written interleaved. An image with a slope or an intercept is written as its scaled values in
/// double precision, since readers differ in whether they apply the format's fields for them.
pub fn encode(image: &Image) -> Vec<u8> {
    let (kind, data) = for_file(image);
    [header_text(image, kind, "False").into_bytes(), data].concat()
}

/// The bytes of a `.mha` file with zlib data; otherwise like [`encode`].
pub fn encode_zlib(image: &Image) -> Result<Vec<u8>, Problem> {
    let (kind, data) = for_file(image);
    let mut packed = vec![];
    ZlibEncoder::new(&data[..], flate2::Compression::default()).read_to_end(&mut packed)?;
    let compression = format!("True\nCompressedDataSize = {}", packed.len());
    Ok([header_text(image, kind, &compression).into_bytes(), packed].concat())
}

/// A header with the fields that ITK writes.
fn header_text(image: &Image, kind: VoxelType, compression: &str) -> String {
    let [c, d, h, w] = image.shape;
    let Geometry { spacing, origin, direction } = image.geometry.with_x_and_y_flipped();
    // Debug formatting gives the shortest text that reads back as the same number; adding zero turns -0 into 0.
    let list = |numbers: [f64; 3]| {
        let [x, y, z] = numbers.map(|x| x + 0.0);
        format!("{x:?} {y:?} {z:?}")
    };
    let matrix = [0, 1, 2].map(|axis| list(direction.map(|row| row[axis]))).join(" ");
    let channels = if c == 1 { String::new() } else { format!("ElementNumberOfChannels = {c}\n") };
    format!(
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n\
         CompressedData = {compression}\nTransformMatrix = {matrix}\nOffset = {}\nCenterOfRotation = 0 0 0\n\
         ElementSpacing = {}\nDimSize = {w} {h} {d}\n{channels}ElementType = {}\nElementDataFile = LOCAL\n",
        list(origin),
        list(spacing),
        type_name(&TYPES, kind)
    )
}
