//! The lines of a header: which field has which text. Knows the names of fields, not their meaning.

use crate::error::Problem;
use crate::limits::Limits;
use crate::text_header::lines::{self, line_shown};
use crate::text_header::words::missing;

/// A field that bears on values or places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    AnatomicalOrientation,
    BinaryData,
    ByteOrderMsb,
    CenterOfRotation,
    CompressedData,
    CompressedDataSize,
    DimSize,
    DistanceUnits,
    ElementDataFile,
    ElementNumberOfChannels,
    ElementSize,
    ElementSpacing,
    ElementType,
    HeaderSize,
    IntensityOffset,
    IntensitySlope,
    NDims,
    ObjectType,
    Offset,
    TransformMatrix,
}

/// Every spelling of every field. MetaIO distinguishes upper and lower case.
const SPELLINGS: [(&str, Field); 25] = [
    ("AnatomicalOrientation", Field::AnatomicalOrientation),
    ("BinaryData", Field::BinaryData),
    ("BinaryDataByteOrderMSB", Field::ByteOrderMsb),
    ("CenterOfRotation", Field::CenterOfRotation),
    ("CompressedData", Field::CompressedData),
    ("CompressedDataSize", Field::CompressedDataSize),
    ("DimSize", Field::DimSize),
    ("DistanceUnits", Field::DistanceUnits),
    ("ElementByteOrderMSB", Field::ByteOrderMsb),
    ("ElementDataFile", Field::ElementDataFile),
    ("ElementNumberOfChannels", Field::ElementNumberOfChannels),
    ("ElementSize", Field::ElementSize),
    ("ElementSpacing", Field::ElementSpacing),
    ("ElementToIntensityFunctionOffset", Field::IntensityOffset),
    ("ElementToIntensityFunctionSlope", Field::IntensitySlope),
    ("ElementType", Field::ElementType),
    ("HeaderSize", Field::HeaderSize),
    ("NDims", Field::NDims),
    ("ObjectType", Field::ObjectType),
    ("Offset", Field::Offset),
    ("Origin", Field::Offset),
    ("Position", Field::Offset),
    ("TransformMatrix", Field::TransformMatrix),
    ("Rotation", Field::TransformMatrix),
    ("Orientation", Field::TransformMatrix),
];

/// The fields of a header, which ends after the line of `ElementDataFile`.
pub(super) type Fields<'a> = lines::Fields<'a, Field>;

/// The text of a field that every header has.
pub(super) fn needed<'a>(fields: &Fields<'a>, field: Field, name: &'static str) -> Result<&'a str, Problem> {
    let advice = "the header is incomplete: export the image again";
    fields.get(field).ok_or_else(|| missing(name, "given in every header, before ElementDataFile", advice))
}

/// Splits a header into its fields, up to `ElementDataFile`, which is the last.
pub(super) fn split<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Fields<'a>, Problem> {
    let mut fields = Fields::new();
    while fields.end < bytes.len() {
        let line = fields.next_line(bytes, limits)?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some((field, text)) = split_line(line)? else { continue };
        fields.set(field, text, line)?;
        if field == Field::ElementDataFile {
            return Ok(fields);
        }
    }
    Err(missing(
        "ElementDataFile",
        "LOCAL or the name of a file, in the last line of the header",
        "is this a MetaImage file, and is it whole?",
    ))
}

/// Field and text of a line; nothing for a note of the writer.
fn split_line(line: &[u8]) -> Result<Option<(Field, &str)>, Problem> {
    let refuse = |allowed| Problem::Field {
        field: "a line of the header",
        found: line_shown(line),
        allowed,
        advice: "is this a MetaImage file? Correct the header or export the image again",
    };
    let Some(at) = line.iter().position(|&b| b == b'=') else { return Err(refuse("`Field = text`")) };
    let (name, text) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
    let alike = |(spelling, _): &&(&str, Field)| name.eq_ignore_ascii_case(spelling.as_bytes());
    let Some(&(spelling, field)) = SPELLINGS.iter().find(alike) else { return Ok(None) };
    // A field that other readers would overlook must not decide here, and overlooking it here would hide a slip.
    if name != spelling.as_bytes() {
        return Err(refuse("a field in the upper and lower case of the format"));
    }
    let text = std::str::from_utf8(text).map_err(|_| refuse("text in UTF-8"))?;
    Ok(Some((field, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        split(text.as_bytes(), &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn lines_become_fields() {
        let text = b"NDims = 3\r\n\nNote = a = b\nName = \xff\nElementDataFile = LOCAL\r\ndata";
        let fields = split(text, &Limits::default()).unwrap();
        assert_eq!(fields.get(Field::NDims), Some("3"));
        assert_eq!(fields.get(Field::ElementDataFile), Some("LOCAL"));
        assert_eq!(&text[fields.end..], b"data");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert!(refusal("").contains("ElementDataFile is missing"));
        assert!(refusal("NDims = 3\n").contains("ElementDataFile is missing"));
        assert!(refusal("NDims 3\n").contains("`Field = text`"));
        assert!(refusal("Ndims = 3\n").contains("upper and lower case"));
        assert!(refusal("NDims = 3\nNDims = 3\n").contains("second line"));
        assert!(refusal("Offset = 0 0\nOrigin = 1 1\n").contains("\"Origin = 1 1\""));
        assert!(split(b"NDims = \xff\n", &Limits::default()).unwrap_err().to_string().contains("UTF-8"));
        let limits = Limits { header_bytes: 100, ..Limits::default() };
        let message = split(&[b'x'; 200], &limits).unwrap_err().to_string();
        assert!(message.contains("header_bytes"), "{message}");
    }
}
