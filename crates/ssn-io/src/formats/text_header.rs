//! What NRRD and MetaImage share: a header of text lines, and data behind it or in a file beside it.
//!
//! This module knows how lines, words, numbers and names of data files are read, which geometries are usable, and how
//! a data section becomes an image. Which fields there are and what they mean is each format's own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use crate::formats::gzip;
use crate::formats::gzip::Compression;
use crate::geometry::Geometry;
use crate::limits::{Limits, within};
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// The advice for a value that only the writer of the file can correct.
pub const EXPORT_AGAIN: &str = "correct the header or export the image again";

/// A value as messages show it: quoted, with control characters escaped, and cut where it is long.
pub fn shown(text: &str) -> String {
    // Enough to find the value, not enough to flood a terminal.
    let start: String = text.chars().take(60).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}

/// A line as messages show it.
pub fn line_shown(line: &[u8]) -> String {
    // Longer lines are not shown in full anyway.
    shown(&String::from_utf8_lossy(&line[..line.len().min(256)]))
}

/// The error of a header without a field that it needs.
pub fn missing(field: &'static str, allowed: &'static str, advice: &'static str) -> Problem {
    refused(field, "missing", allowed, advice)
}

/// A field of a header with its text.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    pub name: &'static str,
    pub text: &'a str,
}

impl<'a> Field<'a> {
    /// The error of a text that is not allowed.
    pub fn refused(self, allowed: &'static str, advice: &'static str) -> Problem {
        refused(self.name, shown(self.text), allowed, advice)
    }

    /// The text as one number.
    pub fn number<T: FromStr>(self, allowed: &'static str) -> Result<T, Problem> {
        self.text.trim().parse().map_err(|_| self.refused(allowed, EXPORT_AGAIN))
    }

    /// The text as exactly `count` numbers between white space.
    pub fn numbers<T: FromStr>(self, count: usize, allowed: &'static str) -> Result<Vec<T>, Problem> {
        let words = self.words(count, allowed)?;
        words.into_iter().map(|text| Field { text, ..self }.number(allowed)).collect()
    }

    /// The text as exactly `count` words between white space.
    pub fn words(self, count: usize, allowed: &'static str) -> Result<Vec<&'a str>, Problem> {
        // One more than wanted shows that there are too many; the rest of a long line need not be looked at.
        let words: Vec<&str> = self.text.split_whitespace().take(count + 1).collect();
        if words.len() == count { Ok(words) } else { Err(self.refused(allowed, EXPORT_AGAIN)) }
    }

    /// The text as a number of bytes to skip; nothing for -1, which `end` allows: the data is the end of the file.
    pub fn skipped(self, end: bool, allowed: &'static str) -> Result<Option<u64>, Problem> {
        match self.number(allowed)? {
            -1i64 if end => Ok(None),
            bytes => bytes.try_into().map(Some).map_err(|_| self.refused(allowed, EXPORT_AGAIN)),
        }
    }

    /// The text as the name of one file beside the header.
    ///
    /// A header comes from outside and must not make the reader open files elsewhere, so only a plain name passes.
    /// Both formats can also name many files, by `LIST` or by a pattern of `printf`; these forms are refused.
    pub fn file_name(self) -> Result<String, Problem> {
        let name = self.text.trim();
        if name.split_whitespace().next() == Some("LIST") || name.contains('%') {
            let what =
                format!("{} {} (data in several files, by LIST or by a pattern)", self.name, shown(name));
            return Err(Problem::Unsupported { what, advice: "store the image in one file" });
        }
        let forbidden = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
        // `-` is the standard input in some readers.
        if matches!(name, "" | "." | ".." | "-") || name.contains(forbidden) {
            let allowed = "the plain name of one file beside the header, without `/`, `\\`, `:`, `%` or control \
                           characters";
            let advice = "put the data file into the folder of the header and name it there";
            return Err(Field { text: name, ..self }.refused(allowed, advice));
        }
        Ok(name.to_owned())
    }

    /// The value of the row of a table with a spelling that is the `same` as the text.
    pub fn among<T: Copy>(self, rows: &[Spelled<T>], same: fn(&str, &str) -> bool) -> Option<T> {
        rows.iter().find(|row| row.1.iter().any(|spelling| same(spelling, self.text))).map(|row| row.0)
    }
}

/// A row of a table of names: a value and its spellings.
pub type Spelled<T> = (T, &'static [&'static str]);

/// What is allowed, and what to do otherwise.
pub type Rule = (&'static str, &'static str);

/// The fields of a format, one row each: the name of the field, then its other spellings.
pub type FieldNames = [&'static [&'static str]];

/// The lines of a header: the text of each field, by the field's name.
#[derive(Debug)]
pub struct Fields<'a> {
    names: &'static FieldNames,
    bytes: &'a [u8],
    texts: BTreeMap<&'static str, &'a str>,
    /// Keys and values that are no fields of the format.
    pub pairs: Vec<(&'a [u8], &'a [u8])>,
    /// The first byte after the lines that were read.
    pub end: usize,
}

impl<'a> Fields<'a> {
    /// No fields yet, at the start of the bytes of a file.
    pub fn new(names: &'static FieldNames, bytes: &'a [u8]) -> Self {
        Self { names, bytes, texts: BTreeMap::new(), pairs: vec![], end: 0 }
    }

    /// The next line without its end; empty at the end of the bytes.
    pub fn next_line(&mut self, limits: &Limits) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.end..];
        let line = &rest[..rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())];
        self.end = (self.end + line.len() + 1).min(self.bytes.len());
        within("the length of the header", self.end as u64, limits.header_bytes, "header_bytes")?;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Name and spelling of the field that a line calls `name`, in whatever case; nothing for other words.
    pub fn known(&self, name: &[u8]) -> Option<(&'static str, &'static str)> {
        let mut spellings = self.names.iter().flat_map(|row| row.iter().map(|&spelling| (row[0], spelling)));
        spellings.find(|(_, spelling)| name.eq_ignore_ascii_case(spelling.as_bytes()))
    }

    /// Stores the text of a field; `line` is the whole line, for the error of a second one.
    pub fn set(&mut self, name: &'static str, text: &'a str, line: &[u8]) -> Result<(), Problem> {
        if self.texts.insert(name, text).is_none() {
            return Ok(());
        }
        let found = format!("with a second line for a field, {}", line_shown(line));
        let allowed = "with one line for each field, whatever its spelling";
        Err(refused("the header", found, allowed, "remove the wrong one"))
    }

    /// A field, where the header has it.
    pub fn get(&self, name: &'static str) -> Option<Field<'a>> {
        debug_assert!(self.names.iter().any(|row| row[0] == name), "the format has no field {name}");
        self.texts.get(name).map(|&text| Field { name, text })
    }

    /// Refuses a field with a text that is not `right`, by a rule of what is allowed and what to do otherwise.
    pub fn check(&self, name: &'static str, right: impl Fn(&str) -> bool, rule: Rule) -> Result<(), Problem> {
        match self.get(name) {
            Some(field) if !right(field.text) => Err(field.refused(rule.0, rule.1)),
            _ => Ok(()),
        }
    }

    /// A field that every header has.
    pub fn needed(&self, name: &'static str, allowed: &'static str) -> Result<Field<'a>, Problem> {
        let advice = "the header is incomplete: export the image again";
        self.get(name).ok_or_else(|| missing(name, allowed, advice))
    }
}

/// The types of values with their spellings in a format, the one that is written first.
pub type TypeNames = [Spelled<VoxelType>; VoxelType::ALL.len()];

/// The spelling of a type that is written.
pub fn type_name(names: &TypeNames, kind: VoxelType) -> &'static str {
    let row = names.iter().find(|row| row.0 == kind);
    row.expect("a format's table has a row for every type").1[0]
}

/// The geometry, if its axes span a volume and lengths and products of its numbers neither overflow nor lose digits, so
/// that an image goes round through a file; the names are those of the fields with spacing, origin and direction.
pub fn checked_geometry(geometry: Geometry, names: [&'static str; 3]) -> Result<Geometry, Problem> {
    let Geometry { spacing, origin, direction } = geometry;
    // Each condition fails for a value that is not a number.
    let (field, found, allowed) = if !spacing.iter().all(|x| (1e-9..=1e9).contains(x)) {
        (names[0], format!("{spacing:?}"), "a distance from 1e-9 to 1e9 mm along every axis")
    } else if !origin.iter().all(|x| x.abs() <= 1e12) {
        (names[1], format!("{origin:?}"), "finite, and at most 1e12 mm from zero")
    } else if !geometry.spans_volume() {
        (names[2], format!("{direction:?}"), "vectors that point in different directions")
    } else {
        return Ok(geometry);
    };
    Err(refused(field, found, allowed, EXPORT_AGAIN))
}

/// The unit vector at right angles to two others, where there is one.
pub fn normal(a: [f64; 3], b: [f64; 3]) -> Option<[f64; 3]> {
    let unit = |x: [f64; 3]| {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        (length > 0.0 && length.is_finite()).then(|| x.map(|x| x / length))
    };
    unit(cross(unit(a)?, unit(b)?))
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A header whose values are understood and agree with one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    pub(crate) kind: VoxelType,
    pub(crate) order: ByteOrder,
    /// `[c, d, h, w]`.
    pub(crate) shape: [usize; 4],
    /// Whether the channels of a voxel lie side by side, or else one whole volume after the other.
    pub(crate) interleaved: bool,
    pub(crate) geometry: Geometry,
    pub(crate) packing: Packing,
    pub(crate) skip: Skip,
    pub(crate) data_file: Option<String>,
    /// The first byte after the header in its file.
    pub(crate) end: usize,
}

/// How the data section is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Raw,
    Gzip,
    /// zlib or gzip, which their first bytes tell apart; of this many bytes where `CompressedDataSize` says so.
    Compressed(Option<u64>),
}

/// Where the data starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// After a number of lines of the file (`line skip`), then of bytes of the file (`HeaderSize`), then of bytes of
    /// the expanded data (`byte skip`).
    Start { lines: u64, stored: u64, expanded: u64 },
    /// The data is the end of the file.
    ToTheEnd,
}

/// The name of the data section in messages.
const DATA: &str = "the data";
const NOT_TOGETHER: &str = "header and data do not belong together: export the image again";

/// Bytes of all values of an image, if their number is within the limits.
pub fn bytes_of(shape: [usize; 4], kind: VoxelType, limits: &Limits) -> Result<u64, Problem> {
    let (found, limit) = (limits.check_values(&shape)? as u64, limits.values);
    let bytes = found.checked_mul(kind.bytes() as u64).filter(|&bytes| usize::try_from(bytes).is_ok());
    bytes.ok_or(Problem::Limit { what: "the number of values", found, limit, name: "values" })
}

impl Header {
    /// The name of the file with the data, beside the header; nothing where the data follows the header.
    pub fn data_file(&self) -> Option<&str> {
        self.data_file.as_deref()
    }

    /// `[c, d, h, w]` of the image.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// The image of the header's own file.
    pub(crate) fn image_in(&self, file: &[u8], limits: &Limits) -> Result<Image, Problem> {
        if let Some(name) = self.data_file() {
            let what = format!("a header alone, whose data is in the file {}", shown(name));
            return Err(Problem::Unsupported { what, advice: "open it with its data file beside it" });
        }
        self.image(file.get(self.end..).unwrap_or_default(), limits)
    }

    /// The image of the bytes of the file that [`Self::data_file`] names, or of what follows the header.
    pub fn image(&self, section: &[u8], limits: &Limits) -> Result<Image, Problem> {
        limits.check_file_bytes(section.len() as u64)?;
        let mut bytes = self.value_bytes(section, limits)?;
        let [c, d, h, w] = self.shape;
        if self.interleaved && c > 1 {
            bytes = Cow::Owned(transposed(&bytes, d * h * w, self.kind)); // [d·h·w, c] → [c, d·h·w]
        }
        Image::new(Voxels::from_bytes(self.kind, &bytes, self.order), self.shape, self.geometry, limits)
    }

    /// The bytes of the values, exactly as many as the header asks for.
    fn value_bytes<'a>(&self, section: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, Problem> {
        let needed = bytes_of(self.shape, self.kind, limits)?;
        let Skip::Start { lines, stored, expanded } = self.skip else {
            return last(section, needed).map(Cow::Borrowed);
        };
        let data = after_lines(section, lines)?;
        let (part, found) = ("what HeaderSize skips", data.len() as u64);
        let rest = usize::try_from(stored).ok().and_then(|stored| data.get(stored..));
        let data = rest.ok_or(Problem::Truncated { part, needed: stored, found })?;
        let (found, all) = (data.len() as u64, needed.saturating_add(expanded));
        let compression = match self.packing {
            Packing::Raw if found > all => {
                let allowed = "as long as sizes and type in the header say";
                return Err(refused(DATA, format!("{found} bytes long"), allowed, NOT_TOGETHER));
            }
            Packing::Raw => return last(last(data, all)?, needed).map(Cow::Borrowed),
            Packing::Compressed(Some(needed)) if needed > found => {
                return Err(Problem::Truncated { part: "the compressed data", needed, found });
            }
            Packing::Compressed(Some(size)) if size < found => {
                let allowed = "the number of bytes to the end of the file";
                return Err(refused("CompressedDataSize", size, allowed, NOT_TOGETHER));
            }
            Packing::Compressed(_) if !gzip::is_gzip(data) => Compression::Zlib,
            Packing::Compressed(_) | Packing::Gzip => Compression::Gzip,
        };
        let mut bytes = gzip::expand_exactly(data, compression, all, DATA, limits)?;
        // There are at least as many bytes as are skipped.
        bytes.drain(..expanded as usize);
        Ok(Cow::Owned(bytes))
    }
}

/// The last bytes of raw data, as many as needed.
fn last(data: &[u8], needed: u64) -> Result<&[u8], Problem> {
    let found = data.len() as u64;
    let start = found.checked_sub(needed).and_then(|start| data.get(start as usize..));
    start.ok_or(Problem::Truncated { part: DATA, needed, found })
}

/// What follows a number of lines. Each must be there, so a large number costs no more than the data is long.
fn after_lines(data: &[u8], lines: u64) -> Result<&[u8], Problem> {
    let mut rest = data;
    for line in 0..lines {
        let end = rest.iter().position(|&b| b == b'\n').ok_or_else(|| {
            let advice = match line {
                0 => "the data file has no line to skip: correct the header",
                _ => "the data file has fewer lines: correct the header",
            };
            refused("line skip", lines, "at most the number of lines before the data", advice)
        })?;
        rest = &rest[end + 1..];
    }
    Ok(rest)
}

/// The type and the bytes of an image's values for a file: little endian, channels interleaved.
/// Where the image has a slope or an intercept, the values are the scaled ones in double precision.
pub fn for_file(image: &Image) -> (VoxelType, Vec<u8>) {
    let scaled = image.slope != 1.0 || image.intercept != 0.0;
    let scaled = scaled.then(|| Voxels::F64(image.voxels.scaled_f64(image.slope, image.intercept)));
    let voxels = scaled.as_ref().unwrap_or(&image.voxels);
    let (kind, channels) = (voxels.kind(), image.shape[0]);
    let bytes = voxels.to_le_bytes();
    (kind, if channels > 1 { transposed(&bytes, channels, kind) } else { bytes })
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
