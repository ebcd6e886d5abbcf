//! How the data section is stored: encoding, order of bytes, units and what comes before the data.

use super::fields::{Field, Fields};
use crate::error::Problem;
use crate::text_header::words::{missing, number, refused};
use crate::voxels::{ByteOrder, VoxelType};

/// The encoding of the data section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Raw,
    Gzip,
}

/// Where the data starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// After this many lines of the file, and then this many bytes of the expanded data.
    Lines(u64, u64),
    /// The data is the end of the file.
    ToTheEnd,
}

/// The encoding that a header states.
pub(super) fn encoding(fields: &Fields<'_>) -> Result<Encoding, Problem> {
    let (allowed, advice) = ("raw or gzip", "store the image with one of these encodings");
    let text = fields.get(Field::Encoding).ok_or_else(|| missing("encoding", allowed, advice))?;
    match text.to_ascii_lowercase().as_str() {
        "raw" => Ok(Encoding::Raw),
        "gzip" | "gz" => Ok(Encoding::Gzip),
        _ => Err(refused("encoding", text, allowed, advice)),
    }
}

/// The order of bytes that a header states; needed only where a value has several bytes.
pub(super) fn byte_order(fields: &Fields<'_>, kind: VoxelType) -> Result<ByteOrder, Problem> {
    let allowed = "little or big, for values of several bytes";
    match fields.get(Field::Endian) {
        Some(text) if text.eq_ignore_ascii_case("little") => Ok(ByteOrder::Little),
        Some(text) if text.eq_ignore_ascii_case("big") => Ok(ByteOrder::Big),
        Some(text) => Err(refused("endian", text, allowed, "correct the header or export the image again")),
        None if kind.bytes() == 1 => Ok(ByteOrder::Little),
        None => {
            Err(missing("endian", allowed, "add the line, if you know on which machine the file was made"))
        }
    }
}

/// Where the data of a header starts.
pub(super) fn skip(fields: &Fields<'_>, encoding: Encoding) -> Result<Skip, Problem> {
    let lines = match fields.get(Field::LineSkip) {
        None => 0,
        Some(text) => number("line skip", text, "a whole number, zero or more")?,
    };
    let Some(text) = fields.get(Field::ByteSkip) else { return Ok(Skip::Lines(lines, 0)) };
    let allowed = "a whole number, zero or more, or -1 for raw data at the end of the file";
    match number::<i64>("byte skip", text, allowed)? {
        -1 if encoding == Encoding::Raw && lines == 0 => Ok(Skip::ToTheEnd),
        bytes => {
            let bytes = u64::try_from(bytes);
            bytes.map(|bytes| Skip::Lines(lines, bytes)).map_err(|_| {
                refused("byte skip", text, allowed, "correct the header or export the image again")
            })
        }
    }
}

/// Refuses lengths in other units than millimetres: `units` of the axes in space, and `space units`.
pub(super) fn check_units(fields: &Fields<'_>, in_space: &[bool]) -> Result<(), Problem> {
    if let Some(text) = fields.get(Field::Units) {
        let units = quoted(text);
        let wrong = |(unit, &in_space): (&&str, &bool)| in_space && !is_millimetre(unit);
        if units.len() != in_space.len() || units.iter().zip(in_space).any(wrong) {
            return Err(wrong_units("units", text));
        }
    }
    match fields.get(Field::SpaceUnits) {
        Some(text) if !quoted(text).into_iter().all(is_millimetre) => Err(wrong_units("space units", text)),
        _ => Ok(()),
    }
}

fn wrong_units(field: &'static str, text: &str) -> Problem {
    refused(field, text, "\"mm\" or \"\" for every axis in space", "export the image in millimetres")
}

/// The texts between pairs of quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// An empty unit, and `???` of early versions, say nothing; the world is then in millimetres as everywhere.
fn is_millimetre(unit: &str) -> bool {
    let names = ["", "???", "mm", "millimeter", "millimeters", "millimetre", "millimetres"];
    names.iter().any(|name| unit.trim().eq_ignore_ascii_case(name))
}
