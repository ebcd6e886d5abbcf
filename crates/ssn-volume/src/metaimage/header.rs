//! A header as checked values.

use super::fields::{self, Field, Fields, needed};
use super::{space, types};
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::text_header::sibling;
use crate::text_header::stored::{Channels, Stored};
use crate::text_header::words::{missing, number, numbers, refused};
use crate::voxels::{ByteOrder, VoxelType};

const ADVICE: &str = "correct the header or export the image again";

/// A header whose values are understood and agree with one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    pub(super) stored: Stored,
    pub(super) packing: Packing,
    pub(super) skip: Skip,
    pub(super) geometry: Geometry,
    data_file: Option<String>,
    end: usize,
}

/// How the data section is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Raw,
    /// zlib or gzip, of this many bytes where the header says so.
    Compressed(Option<u64>),
}

/// Where the data starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// After this many bytes of the data file.
    Bytes(u64),
    /// The data is the end of the file.
    ToTheEnd,
}

impl Header {
    /// The name of the file with the data, beside the header; nothing where the data follows the header.
    pub fn data_file(&self) -> Option<&str> {
        self.data_file.as_deref()
    }

    /// `[c, d, h, w]` of the image.
    pub fn shape(&self) -> [usize; 4] {
        self.stored.shape
    }

    /// What follows the header in its own file.
    pub(super) fn inline_data<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.end..).unwrap_or_default()
    }
}

/// Reads a header.
pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    let fields = fields::split(bytes, limits)?;
    if let Some(text) = fields.get(Field::ObjectType).filter(|&text| text != "Image") {
        return Err(refused("ObjectType", text, "Image", "other objects of MetaIO hold no voxels"));
    }
    check_values(&fields)?;
    let dimension = number("NDims", needed(&fields, Field::NDims, "NDims")?, "2, 3 or 4")?;
    let (shape, channels) = shape(&fields, dimension)?;
    let type_name = needed(&fields, Field::ElementType, "ElementType")?;
    let kind = types::named(type_name)?;
    let stored = Stored { kind, order: byte_order(&fields, kind)?, shape, channels };
    stored.bytes(limits)?;
    let geometry = space::geometry(&fields, dimension)?;
    let packing = packing(&fields)?;
    let data_file = data_file(&fields, &bytes[fields.end..])?;
    let skip = skip(&fields, packing, data_file.is_none())?;
    if skip == Skip::ToTheEnd && types::has_doubtful_size(type_name) {
        let allowed =
            "another type where HeaderSize is -1: some writers give this one 8 bytes, and nothing would show";
        return Err(refused("ElementType", type_name, allowed, "write MET_INT or MET_LONG_LONG"));
    }
    Ok(Header { stored, packing, skip, geometry, data_file, end: fields.end })
}

/// Refuses values that are not stored as they are meant.
fn check_values(fields: &Fields<'_>) -> Result<(), Problem> {
    if !boolean(fields, Field::BinaryData, "BinaryData")?.unwrap_or(true) {
        return Err(refused("BinaryData", "False", "True", "store the image in binary form"));
    }
    let intensity = [
        (Field::IntensitySlope, "ElementToIntensityFunctionSlope", 1.0),
        (Field::IntensityOffset, "ElementToIntensityFunctionOffset", 0.0),
    ];
    for (field, name, identity) in intensity {
        let Some(text) = fields.get(field) else { continue };
        if number::<f64>(name, text, "a number")? != identity {
            let allowed =
                "1 for the slope and 0 for the offset: ITK ignores other values and other readers do not";
            return Err(refused(name, text, allowed, "store the scaled values"));
        }
    }
    Ok(())
}

/// `[c, d, h, w]` and the place of the channels.
fn shape(fields: &Fields<'_>, dimension: usize) -> Result<([usize; 4], Channels), Problem> {
    let count = match fields.get(Field::ElementNumberOfChannels) {
        Some(text) => number("ElementNumberOfChannels", text, "a whole number")?,
        None => 1,
    };
    if !(2..=4).contains(&dimension) {
        let advice = "store each part of the image in a file of its own";
        return Err(refused("NDims", &dimension.to_string(), "2, 3 or 4", advice));
    }
    let text = needed(fields, Field::DimSize, "DimSize")?;
    let sizes: Vec<usize> = numbers("DimSize", text, dimension, "as many whole numbers as NDims says")?;
    match *sizes.as_slice() {
        [w, h] => Ok(([count, 1, h, w], Channels::Interleaved)),
        [w, h, d] => Ok(([count, d, h, w], Channels::Interleaved)),
        [w, h, d, c] if count == 1 => Ok(([c, d, h, w], Channels::Planar)),
        _ => {
            let allowed = "1 where NDims is 4, since the fourth axis is read as the channels";
            Err(refused("ElementNumberOfChannels", &count.to_string(), allowed, ADVICE))
        }
    }
}

fn byte_order(fields: &Fields<'_>, kind: VoxelType) -> Result<ByteOrder, Problem> {
    match boolean(fields, Field::ByteOrderMsb, "BinaryDataByteOrderMSB")? {
        Some(true) => Ok(ByteOrder::Big),
        Some(false) => Ok(ByteOrder::Little),
        None if kind.bytes() == 1 => Ok(ByteOrder::Little),
        None => Err(missing(
            "BinaryDataByteOrderMSB",
            "True or False, for values of several bytes",
            "add the line, if you know on which machine the file was made (False on nearly all)",
        )),
    }
}

fn packing(fields: &Fields<'_>) -> Result<Packing, Problem> {
    if !boolean(fields, Field::CompressedData, "CompressedData")?.unwrap_or(false) {
        return Ok(Packing::Raw);
    }
    let size = fields.get(Field::CompressedDataSize);
    let size = size.map(|text| number("CompressedDataSize", text, "a whole number of bytes")).transpose()?;
    Ok(Packing::Compressed(size))
}

/// The name of the data file, or nothing for data behind the header.
fn data_file(fields: &Fields<'_>, rest: &[u8]) -> Result<Option<String>, Problem> {
    let text = needed(fields, Field::ElementDataFile, "ElementDataFile")?;
    if matches!(text, "LOCAL" | "Local" | "local") {
        return Ok(None);
    }
    let name = sibling::plain_name("ElementDataFile", text)?;
    if rest.trim_ascii().is_empty() {
        return Ok(Some(name));
    }
    let allowed = "the last line of a header whose data is in another file";
    Err(refused("ElementDataFile", text, allowed, "is the data behind the header? Then it must be LOCAL"))
}

fn skip(fields: &Fields<'_>, packing: Packing, local: bool) -> Result<Skip, Problem> {
    let Some(text) = fields.get(Field::HeaderSize) else { return Ok(Skip::Bytes(0)) };
    let allowed = "a whole number of bytes in another file, or -1 for raw data at the end of the file";
    let size: i64 = number("HeaderSize", text, allowed)?;
    match (size, u64::try_from(size)) {
        (-1, _) if packing == Packing::Raw => Ok(Skip::ToTheEnd),
        (_, Ok(size)) if size == 0 || !local => Ok(Skip::Bytes(size)),
        _ => Err(refused("HeaderSize", text, allowed, ADVICE)),
    }
}

fn boolean(fields: &Fields<'_>, field: Field, name: &'static str) -> Result<Option<bool>, Problem> {
    match fields.get(field) {
        None => Ok(None),
        Some("True" | "true" | "TRUE" | "T" | "1") => Ok(Some(true)),
        Some("False" | "false" | "FALSE" | "F" | "0") => Ok(Some(false)),
        Some(text) => Err(refused(name, text, "True or False", ADVICE)),
    }
}
