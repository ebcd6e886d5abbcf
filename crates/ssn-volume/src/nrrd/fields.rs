//! The lines of a header: which field has which text. Knows the names of fields, not their meaning.

use crate::error::Problem;
use crate::limits::Limits;
use crate::text_header::lines::{self, line_shown};
use crate::text_header::sibling;
use crate::text_header::words::refused;

/// A field that the format defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    AxisMaxs,
    AxisMins,
    BlockSize,
    ByteSkip,
    Centers,
    Content,
    DataFile,
    Dimension,
    Encoding,
    Endian,
    Kinds,
    Labels,
    LineSkip,
    Max,
    MeasurementFrame,
    Min,
    Number,
    OldMax,
    OldMin,
    SampleUnits,
    Sizes,
    Space,
    SpaceDimension,
    SpaceDirections,
    SpaceOrigin,
    SpaceUnits,
    Spacings,
    Thicknesses,
    Type,
    Units,
}

/// Every spelling of every field; the format does not distinguish upper and lower case.
const SPELLINGS: [(&str, Field); 45] = [
    ("axis maxs", Field::AxisMaxs),
    ("axismaxs", Field::AxisMaxs),
    ("axis mins", Field::AxisMins),
    ("axismins", Field::AxisMins),
    ("block size", Field::BlockSize),
    ("blocksize", Field::BlockSize),
    ("byte skip", Field::ByteSkip),
    ("byteskip", Field::ByteSkip),
    ("centers", Field::Centers),
    ("centerings", Field::Centers),
    ("content", Field::Content),
    ("data file", Field::DataFile),
    ("datafile", Field::DataFile),
    ("dimension", Field::Dimension),
    ("encoding", Field::Encoding),
    ("endian", Field::Endian),
    ("kinds", Field::Kinds),
    ("labels", Field::Labels),
    ("line skip", Field::LineSkip),
    ("lineskip", Field::LineSkip),
    ("max", Field::Max),
    ("measurement frame", Field::MeasurementFrame),
    ("measurementframe", Field::MeasurementFrame),
    ("min", Field::Min),
    ("number", Field::Number),
    ("old max", Field::OldMax),
    ("oldmax", Field::OldMax),
    ("old min", Field::OldMin),
    ("oldmin", Field::OldMin),
    ("sample units", Field::SampleUnits),
    ("sampleunits", Field::SampleUnits),
    ("sizes", Field::Sizes),
    ("space", Field::Space),
    ("space dimension", Field::SpaceDimension),
    ("spacedimension", Field::SpaceDimension),
    ("space directions", Field::SpaceDirections),
    ("spacedirections", Field::SpaceDirections),
    ("space origin", Field::SpaceOrigin),
    ("spaceorigin", Field::SpaceOrigin),
    ("space units", Field::SpaceUnits),
    ("spaceunits", Field::SpaceUnits),
    ("spacings", Field::Spacings),
    ("thicknesses", Field::Thicknesses),
    ("type", Field::Type),
    ("units", Field::Units),
];

/// The versions of the format, as the first line of a file states them.
const MAGICS: [&[u8]; 5] = [b"NRRD0001", b"NRRD0002", b"NRRD0003", b"NRRD0004", b"NRRD0005"];

/// The fields of a header, which ends after the empty line, or with the bytes where there is none.
pub(super) type Fields<'a> = lines::Fields<'a, Field>;

/// Splits a header into its fields.
pub(super) fn split<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Fields<'a>, Problem> {
    let mut fields = Fields::new();
    let magic = fields.next_line(bytes, limits)?;
    if !MAGICS.contains(&magic) {
        return Err(refused(
            "the first line",
            &String::from_utf8_lossy(&magic[..magic.len().min(16)]),
            "one of NRRD0001 to NRRD0005",
            "is this a NRRD file?",
        ));
    }
    loop {
        let line = fields.next_line(bytes, limits)?;
        if line.is_empty() {
            return Ok(fields);
        }
        if line.starts_with(b"#") {
            continue;
        }
        let Some((field, text)) = split_line(line)? else { continue };
        if field == Field::DataFile {
            // After `LIST` come lines that are no fields: refuse here, with the right reason.
            sibling::plain_name("data file", text)?;
        }
        fields.set(field, text, line)?;
    }
}

/// Field and text of a line; nothing for a key with its value.
fn split_line(line: &[u8]) -> Result<Option<(Field, &str)>, Problem> {
    let find = |separator: &[u8; 2]| line.windows(2).position(|pair| pair == separator);
    let known = find(b": ").and_then(|at| Some((field_named(&line[..at])?, &line[at + 2..])));
    if let Some((field, text)) = known {
        let text = std::str::from_utf8(text).map_err(|_| unknown(line))?;
        return Ok(Some((field, text.trim())));
    }
    if find(b":=").is_some() {
        return Ok(None);
    }
    Err(unknown(line))
}

fn field_named(name: &[u8]) -> Option<Field> {
    let same = |(spelling, _): &&(&str, Field)| name.eq_ignore_ascii_case(spelling.as_bytes());
    SPELLINGS.iter().find(same).map(|&(_, field)| field)
}

fn unknown(line: &[u8]) -> Problem {
    Problem::Field {
        field: "a line of the header",
        found: line_shown(line),
        allowed: "`field: text` with a field of the format, `key:=value`, or a comment after `#`",
        advice: "correct the header or export the image again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        split(text.as_bytes(), &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn lines_become_fields() {
        let text = b"NRRD0005\r\n# note\r\nType: float\r\na: b:=c: d\nspace:=x\ncontent: a:=b\n\ndata";
        let fields = split(text, &Limits::default()).unwrap();
        assert_eq!(fields.get(Field::Type), Some("float"));
        assert_eq!(fields.get(Field::Content), Some("a:=b"));
        assert_eq!(fields.get(Field::Space), None);
        assert_eq!(&text[fields.end..], b"data");
        assert_eq!(split(b"NRRD0001\ntype: float", &Limits::default()).unwrap().end, 20);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert!(refusal("NRRD0006\n").contains("NRRD0001 to NRRD0005"));
        assert!(refusal("NRRD00041\n").contains("is this a NRRD file"));
        assert!(refusal("").contains("is this a NRRD file"));
        assert!(
            refusal("NRRD0004\ntype: float\nTYPE: short\n\n")
                .contains("second line for a field, \"TYPE: short\"")
        );
        assert!(refusal("NRRD0004\nbyte skip: 1\nbyteskip: 1\n\n").contains("second line for a field"));
        assert!(refusal("NRRD0004\ntype:float\n\n").contains("`field: text`"));
        assert!(refusal("NRRD0004\ndata file: LIST\na.raw\nb.raw\n").contains("several files"));
    }

    #[test]
    fn a_long_header_meets_the_limit() {
        let limits = Limits { header_bytes: 100, ..Limits::default() };
        let text = format!("NRRD0004\n# {}\n\n", "x".repeat(200));
        let message = split(text.as_bytes(), &limits).unwrap_err().to_string();
        assert!(message.contains("header_bytes"), "{message}");
    }
}
