//! One DICOM file: its attributes, the plane in which it lies, and its values.
//!
//! Elements are found by the crate `dicom-parser` one by one. Only those of the first level that are needed are kept, and a
//! value gets memory as its bytes arrive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dicom_parser::StatefulDecode;
use dicom_parser::dataset::LazyDataToken;
use dicom_parser::dataset::lazy_read::LazyDataSetReader;
use dicom_transfer_syntax_registry::entries::{
    EXPLICIT_VR_BIG_ENDIAN, EXPLICIT_VR_LITTLE_ENDIAN, IMPLICIT_VR_LITTLE_ENDIAN,
};

use crate::formats::raster::parse_jpeg_of;
use crate::formats::text_header::{missing, normal, shown};
use crate::limits::Limits;
use crate::open::open_file;
use crate::problem::{Problem, catch_panic, refused};
use crate::volume::{ByteOrder, VoxelType, Voxels};

/// Group and element.
pub(super) type Tag = (u16, u16);

/// An attribute of a slice: its tag, and its keyword in the standard.
#[derive(Clone, Copy)]
pub(super) struct Attribute {
    pub tag: Tag,
    pub name: &'static str,
}

/// Makes a constant for each attribute, and the list of all.
macro_rules! attributes {
    ($($constant:ident $group:literal $element:literal $name:literal;)*) => {
        $(pub(super) const $constant: Attribute = Attribute { tag: ($group, $element), name: $name };)*
        const ATTRIBUTES: &[Attribute] = &[$($constant),*];
    };
}
attributes! {
    MODALITY 0x0008 0x0060 "Modality";
    SERIES_DESCRIPTION 0x0008 0x103e "SeriesDescription";
    SPACING_BETWEEN_SLICES 0x0018 0x0088 "SpacingBetweenSlices";
    SERIES_UID 0x0020 0x000e "SeriesInstanceUID";
    SERIES_NUMBER 0x0020 0x0011 "SeriesNumber";
    POSITION 0x0020 0x0032 "ImagePositionPatient";
    ORIENTATION 0x0020 0x0037 "ImageOrientationPatient";
    SAMPLES_PER_PIXEL 0x0028 0x0002 "SamplesPerPixel";
    PHOTOMETRIC 0x0028 0x0004 "PhotometricInterpretation";
    FRAMES 0x0028 0x0008 "NumberOfFrames";
    ROWS 0x0028 0x0010 "Rows";
    COLUMNS 0x0028 0x0011 "Columns";
    PIXEL_SPACING 0x0028 0x0030 "PixelSpacing";
    BITS_ALLOCATED 0x0028 0x0100 "BitsAllocated";
    BITS_STORED 0x0028 0x0101 "BitsStored";
    HIGH_BIT 0x0028 0x0102 "HighBit";
    PIXEL_REPRESENTATION 0x0028 0x0103 "PixelRepresentation";
    INTERCEPT 0x0028 0x1052 "RescaleIntercept";
    SLOPE 0x0028 0x1053 "RescaleSlope";
    SEGMENTATION_TYPE 0x0062 0x0001 "SegmentationType";
    LARGEST_FRACTION 0x0062 0x000e "MaximumFractionalValue";
}
const SYNTAX: Tag = (0x0002, 0x0010);
const PIXEL_DATA: Tag = (0x7fe0, 0x0010);
const AFTER_PIXEL_DATA: Tag = (PIXEL_DATA.0, PIXEL_DATA.1 + 1);

/// How the pixel data of a transfer syntax is stored.
#[derive(Clone, Copy)]
enum Coding {
    Plain,
    Rle,
    Jpeg,
}

/// The transfer syntaxes that are read.
const SYNTAXES: [(&str, Coding); 7] = [
    (IMPLICIT, Coding::Plain),
    (EXPLICIT, Coding::Plain),
    (BIG_ENDIAN, Coding::Plain),
    ("1.2.840.10008.1.2.5", Coding::Rle),
    ("1.2.840.10008.1.2.4.50", Coding::Jpeg),
    ("1.2.840.10008.1.2.4.57", Coding::Jpeg),
    ("1.2.840.10008.1.2.4.70", Coding::Jpeg),
];
const IMPLICIT: &str = "1.2.840.10008.1.2";
const EXPLICIT: &str = "1.2.840.10008.1.2.1";
const BIG_ENDIAN: &str = "1.2.840.10008.1.2.2";
const DEFLATED: &str = "1.2.840.10008.1.2.1.99";

/// Names of others, for messages.
const OTHER_SYNTAXES: [(&str, &str); 8] = [
    (DEFLATED, "deflated"),
    ("1.2.840.10008.1.2.4.51", "JPEG of 12 bit"),
    ("1.2.840.10008.1.2.4.80", "JPEG-LS"),
    ("1.2.840.10008.1.2.4.81", "JPEG-LS, lossy"),
    ("1.2.840.10008.1.2.4.90", "JPEG 2000"),
    ("1.2.840.10008.1.2.4.91", "JPEG 2000, lossy"),
    ("1.2.840.10008.1.2.4.201", "HTJ2K"),
    ("1.2.840.10008.1.2.4.203", "HTJ2K, lossy"),
];

fn other_syntax(uid: &str) -> Problem {
    let name = OTHER_SYNTAXES.iter().find(|(other, _)| *other == uid).map_or("", |(_, name)| name);
    let what = format!("the transfer syntax {uid} {name}");
    let advice = "store the files without compression, for example with `gdcmconv --raw`";
    Problem::Unsupported { what: what.trim_end().to_owned(), advice }
}

/// A file of a slice with the attributes that it has, as bytes.
pub(super) struct Slice {
    pub path: PathBuf,
    syntax: String,
    /// Where its attributes start in the file.
    data_set: u64,
    elements: BTreeMap<Tag, Vec<u8>>,
}

pub(super) fn not_dicom() -> Problem {
    let found = "without the mark DICM after 128 bytes";
    let advice = "the file is damaged or no DICOM: copy it again, or move it away";
    refused("the file", found, "a DICOM file", advice)
}

/// An open file behind its mark, and its length; nothing if it has no mark.
pub(super) fn opened(path: &Path) -> Result<Option<(BufReader<File>, u64)>, Problem> {
    let file = open_file(path)?;
    let length = file.metadata()?.len();
    let (mut file, mut start) = (BufReader::new(file), [0; 132]);
    match file.read_exact(&mut start) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
        Ok(()) => Ok((start[128..] == *b"DICM").then_some((file, length))),
    }
}

impl Slice {
    /// The attributes of a file before its pixel data; nothing if it is no DICOM file.
    pub fn open(path: &Path, limits: &Limits) -> Result<Option<Self>, Problem> {
        let Some((mut file, length)) = opened(path)? else { return Ok(None) };
        limits.check_file_bytes(length)?;
        catch_panic(PART, || {
            let mut start = vec![];
            (&mut file).take(12).read_to_end(&mut start)?;
            let meta_length = start.strip_prefix(b"\x02\0\0\0UL\x04\0").and_then(|rest| rest.try_into().ok());
            let meta_length = meta_length.map_or(u64::MAX, |bytes| u32::from_le_bytes(bytes).into());
            if meta_length > limits.header_bytes.min(length) {
                return Err(damaged("the length of its first group is missing or wrong"));
            }
            let (mut meta, mut syntax) = (vec![], String::new());
            (&mut file).take(meta_length).read_to_end(&mut meta)?;
            elements(Cursor::new(&meta), meta_length, EXPLICIT, (3, 0), is_needed, |_, tag, bytes| {
                if tag == SYNTAX {
                    syntax = plain_text(&bytes);
                }
                Ok(())
            })?;
            if syntax.is_empty() || syntax == DEFLATED {
                return Err(other_syntax(&syntax));
            }
            let (data_set, mut found) = (file.stream_position()?, BTreeMap::new());
            elements(file, length, &syntax, PIXEL_DATA, is_needed, |_, tag, bytes| {
                found.insert(tag, bytes);
                Ok(())
            })?;
            Ok(Some(Self { path: path.to_owned(), syntax, data_set, elements: found }))
        })
    }

    fn order(&self) -> ByteOrder {
        if self.syntax == BIG_ENDIAN { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// Whether it is an image: directories, reports and structures are none.
    pub fn is_image(&self) -> bool {
        self.elements.contains_key(&ROWS.tag)
    }

    /// The text of an attribute; empty where there is none.
    pub fn text(&self, attribute: Attribute) -> String {
        self.elements.get(&attribute.tag).map_or(String::new(), |bytes| plain_text(bytes))
    }

    /// A number of 16 bits.
    pub fn number(&self, attribute: Attribute) -> Result<u16, Problem> {
        let bytes = self.elements.get(&attribute.tag).and_then(|bytes| bytes.first_chunk());
        let bytes = *bytes.ok_or_else(|| missing(attribute.name, "given in every image", EXPORT))?;
        Ok(match self.order() {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    /// The decimal numbers of an attribute; nothing where there is none.
    pub fn decimals<const N: usize>(&self, attribute: Attribute) -> Result<Option<[f64; N]>, Problem> {
        let text = self.text(attribute);
        if text.is_empty() { Ok(None) } else { decimals(attribute, &text).map(Some) }
    }

    /// Hands out wanted elements inside sequences before the pixel data.
    pub fn nested(
        &self,
        is_wanted: impl Fn(&Place, Tag) -> bool,
        keep: impl FnMut(&Place, Tag, Vec<u8>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let Some((mut file, length)) = opened(&self.path)? else { return Err(not_dicom()) };
        file.seek(SeekFrom::Start(self.data_set))?;
        catch_panic(PART, || elements(file, length, &self.syntax, PIXEL_DATA, is_wanted, keep))
    }

    /// Returns the bytes of pixel data without compression, in little-endian order.
    pub fn plain_pixel_data(&self) -> Result<Vec<u8>, Problem> {
        match self.syntax.as_str() {
            IMPLICIT | EXPLICIT => catch_panic(PART, || self.pixel_data()),
            other => Err(other_syntax(other)),
        }
    }

    /// The plane of the slice in LPS.
    pub fn plane(&self) -> Result<Plane, Problem> {
        let absent = |attribute: Attribute| {
            let advice = "without it nobody knows where the slice lies: export the series as slices in space";
            move || missing(attribute.name, "given in every slice", advice)
        };
        let position = self.decimals(POSITION)?.ok_or_else(absent(POSITION))?;
        let axes: [f64; 6] = self.decimals(ORIENTATION)?.ok_or_else(absent(ORIENTATION))?;
        Plane::new(position, axes, self.decimals(PIXEL_SPACING)?.ok_or_else(absent(PIXEL_SPACING))?)
    }

    /// What the values of the slice are.
    pub fn format(&self) -> Result<PixelFormat, Problem> {
        let photometric = self.text(PHOTOMETRIC);
        if photometric != "MONOCHROME2" || self.number(SAMPLES_PER_PIXEL).unwrap_or(1) != 1 {
            let what = format!("an image of {} ({})", shown(&photometric), PHOTOMETRIC.name);
            let advice = "gray values (MONOCHROME2) are: convert it, or choose another series";
            return Err(Problem::Unsupported { what, advice });
        }
        if !["", "1"].contains(&self.text(FRAMES).as_str()) {
            let what = format!("a file of several images ({} {})", FRAMES.name, shown(&self.text(FRAMES)));
            let advice = "convert it to a NIfTI file, for example with dcm2niix, or export a file per slice";
            return Err(Problem::Unsupported { what, advice });
        }
        let signed = self.number(PIXEL_REPRESENTATION)? == 1;
        let (allocated, bits) = (self.number(BITS_ALLOCATED)?, self.number(BITS_STORED)?);
        if self.syntax == BIG_ENDIAN && allocated != 16 {
            return Err(other_syntax(&self.syntax));
        }
        let kind = match (allocated, signed) {
            (8, false) => VoxelType::U8,
            (8, true) => VoxelType::I8,
            (16, false) => VoxelType::U16,
            (16, true) => VoxelType::I16,
            (32, false) => VoxelType::U32,
            (32, true) => VoxelType::I32,
            _ => return Err(refused(BITS_ALLOCATED.name, allocated, "8, 16 or 32", EXPORT)),
        };
        let high = self.number(HIGH_BIT)?;
        if bits == 0 || bits > allocated || high != bits - 1 {
            let found = format!("{high}, with {bits} of {allocated} bits stored");
            return Err(refused(HIGH_BIT.name, found, "one less than the bits that are stored", EXPORT));
        }
        let slope = self.decimals(SLOPE)?.map_or(1.0, |[slope]| slope);
        let intercept = self.decimals(INTERCEPT)?.map_or(0.0, |[intercept]| intercept);
        if slope == 0.0 {
            return Err(refused(SLOPE.name, "0", "another number", EXPORT));
        }
        let size = [self.number(ROWS)?.into(), self.number(COLUMNS)?.into()];
        Ok(PixelFormat { size, kind, bits, rescale: [slope, intercept] })
    }

    /// The stored values as little-endian bytes.
    pub fn values(&self, format: &PixelFormat, limits: &Limits) -> Result<Vec<u8>, Problem> {
        catch_panic(PART, || self.decoded(format, limits))
    }

    fn decoded(&self, format: &PixelFormat, limits: &Limits) -> Result<Vec<u8>, Problem> {
        let coding = SYNTAXES.iter().find(|(uid, _)| *uid == self.syntax);
        let (_, coding) = coding.ok_or_else(|| other_syntax(&self.syntax))?;
        let size = format.kind.bytes();
        let count = limits.check_values(&format.size)?;
        let needed = count as u64 * size as u64;
        let mut bytes = match coding {
            Coding::Plain => self.pixel_data()?,
            Coding::Rle => rle(&self.pixel_data()?, count, size)?,
            Coding::Jpeg => {
                let image = parse_jpeg_of(&self.pixel_data()?, true, limits)?;
                if image.shape != [1, 1, format.size[0], format.size[1]] {
                    return Err(damaged("its JPEG picture has another size than it says"));
                }
                match image.voxels {
                    Voxels::U8(values) if size == 2 => values.iter().flat_map(|&x| [x, 0]).collect(),
                    voxels => voxels.to_le_bytes(),
                }
            }
        };
        let found = bytes.len() as u64;
        if found < needed {
            return Err(Problem::Truncated { part: "the pixel data", needed, found });
        }
        // A byte of padding makes lengths even.
        if found > needed + 1 {
            let found =
                format!("{found} bytes long, for {} × {} values of {size}", format.size[0], format.size[1]);
            return Err(refused("the pixel data", found, "as long as the header says", EXPORT));
        }
        bytes.truncate(needed as usize);
        if self.order() == ByteOrder::Big {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        format.clean(&mut bytes);
        Ok(bytes)
    }

    /// The bytes of the pixel data; all fragments of encapsulated data.
    fn pixel_data(&self) -> Result<Vec<u8>, Problem> {
        let Some((mut file, length)) = opened(&self.path)? else { return Err(not_dicom()) };
        file.seek(SeekFrom::Start(self.data_set))?;
        let (mut found, mut all) = (false, vec![]);
        elements(file, length, &self.syntax, AFTER_PIXEL_DATA, is_needed, |_, tag, mut bytes| {
            if tag == PIXEL_DATA {
                found = true;
                all.append(&mut bytes);
            }
            Ok(())
        })?;
        let advice = "the file holds no image: export the series again";
        if found { Ok(all) } else { Err(missing("PixelData", "given in every image", advice)) }
    }
}

/// Sequences around an element, each with the number of its item, from 1.
pub(super) type Place = [(Tag, usize)];

/// Returns `true` for the elements of the first level that a slice needs.
fn is_needed(place: &Place, tag: Tag) -> bool {
    let known = || tag == SYNTAX || tag == PIXEL_DATA || ATTRIBUTES.iter().any(|known| known.tag == tag);
    place.is_empty() && known()
}

/// Hands out the wanted elements, and fragments of pixel data, up to a tag of the first level.
fn elements(
    file: impl Read + Seek,
    length: u64,
    syntax: &str,
    end: Tag,
    is_wanted: impl Fn(&Place, Tag) -> bool,
    mut keep: impl FnMut(&Place, Tag, Vec<u8>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let syntax = match syntax {
        IMPLICIT => IMPLICIT_VR_LITTLE_ENDIAN.erased(),
        BIG_ENDIAN => EXPLICIT_VR_BIG_ENDIAN.erased(),
        _ => EXPLICIT_VR_LITTLE_ENDIAN.erased(),
    };
    let mut reader = LazyDataSetReader::new_with_ts(file, &syntax).map_err(damaged)?;
    let mut place: Vec<(Tag, usize)> = vec![];
    while let Some(token) = reader.advance() {
        let token = token.map_err(damaged)?;
        let (tag, part, needed, at) = match &token {
            LazyDataToken::SequenceStart { tag, .. } if place.is_empty() && (tag.0, tag.1) >= end => {
                return Ok(());
            }
            LazyDataToken::ElementHeader(header)
                if place.is_empty() && (header.tag.0, header.tag.1) >= end =>
            {
                return Ok(());
            }
            LazyDataToken::PixelSequenceStart if place.is_empty() && PIXEL_DATA >= end => return Ok(()),
            LazyDataToken::SequenceStart { tag, .. } => {
                place.push(((tag.0, tag.1), 0));
                continue;
            }
            LazyDataToken::PixelSequenceStart => {
                place.push((PIXEL_DATA, 0));
                continue;
            }
            LazyDataToken::SequenceEnd => {
                place.pop();
                continue;
            }
            LazyDataToken::ItemStart { .. } => {
                place.last_mut().into_iter().for_each(|(_, item)| *item += 1);
                continue;
            }
            LazyDataToken::LazyValue { header, decoder } => {
                let tag = (header.tag.0, header.tag.1);
                let part = if tag == PIXEL_DATA { "the pixel data" } else { "an element of the header" };
                (tag, part, header.len.0, decoder.position())
            }
            LazyDataToken::LazyItemValue { len, decoder } => {
                (PIXEL_DATA, "the pixel data", *len, decoder.position())
            }
            _ => continue,
        };
        let (needed, found) = (u64::from(needed), length.saturating_sub(at));
        if needed > found {
            return Err(Problem::Truncated { part, needed, found });
        }
        // The first item of encapsulated pixel data is a table.
        let is_fragment = matches!(token, LazyDataToken::LazyItemValue { .. })
            && place.last().is_some_and(|(_, item)| *item > 1);
        if is_fragment || is_wanted(&place, tag) {
            let mut bytes = vec![];
            token.read_value_into(&mut bytes).map_err(damaged)?;
            keep(&place, tag, bytes)?;
        } else {
            token.skip().map_err(damaged)?;
        }
    }
    Ok(())
}

pub(super) const EXPORT: &str = "export the series again";
const PART: &str = "the DICOM file";

pub(super) fn damaged(reason: impl ToString) -> Problem {
    Problem::Damaged { part: PART, reason: reason.to_string() }
}

/// Parses the decimal numbers of an attribute.
pub(super) fn decimals<const N: usize>(attribute: Attribute, text: &str) -> Result<[f64; N], Problem> {
    let numbers: Option<Vec<f64>> = text.split('\\').map(|word| word.trim().parse().ok()).collect();
    let finite = numbers.filter(|numbers| numbers.iter().all(|x| x.is_finite()));
    let numbers = finite.and_then(|numbers| numbers.try_into().ok());
    let refuse = || refused(attribute.name, shown(text), "as many finite numbers as it has axes", EXPORT);
    numbers.ok_or_else(refuse)
}

/// Text without what fills it up to an even length.
pub(super) fn plain_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned()
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|row| a[row] * b[row]).sum()
}

/// Where a slice lies, in LPS.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub position: [f64; 3],
    /// Along rows, along columns, and through the slices.
    pub axes: [[f64; 3]; 3],
    /// Along rows and along columns.
    pub spacing: [f64; 2],
}

impl Plane {
    /// Returns a plane from its first voxel, the directions of rows and columns, and the spacing `[j, i]`.
    pub fn new(position: [f64; 3], axes: [f64; 6], [j, i]: [f64; 2]) -> Result<Self, Problem> {
        let [row, column] = [0, 3].map(|at| [axes[at], axes[at + 1], axes[at + 2]]);
        let near = |x: f64, wanted: f64| (x - wanted).abs() < 1e-3;
        let right = near(dot(row, row), 1.0) && near(dot(column, column), 1.0) && near(dot(row, column), 0.0);
        match normal(row, column) {
            // As ITK: what is left of digits in the columns is given up.
            Some(across) if right => Ok(Plane {
                position,
                axes: [normal(column, across).unwrap_or(row), normal(across, row).unwrap_or(column), across],
                spacing: [i, j],
            }),
            _ => {
                let allowed = "two unit vectors at right angles";
                {
                    let text = axes.map(|x| x.to_string()).join("\\");
                    Err(refused(ORIENTATION.name, shown(&text), allowed, EXPORT))
                }
            }
        }
    }
}

/// What the stored values of a slice are.
#[derive(PartialEq)]
pub(super) struct PixelFormat {
    /// Rows and columns.
    pub size: [usize; 2],
    pub kind: VoxelType,
    /// The bits of a value that count.
    bits: u16,
    /// Slope and intercept.
    pub rescale: [f64; 2],
}

impl PixelFormat {
    /// Clears the bits that are not stored, which old files use for overlays; those of a negative number are its sign.
    fn clean(&self, bytes: &mut [u8]) {
        let (size, shift) = (self.kind.bytes(), 32 - u32::from(self.bits));
        let signed = matches!(self.kind, VoxelType::I8 | VoxelType::I16 | VoxelType::I32);
        if usize::from(self.bits) == 8 * size {
            return;
        }
        for value in bytes.chunks_exact_mut(size) {
            let high = value.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)) << shift;
            let clean = if signed { ((high as i32) >> shift) as u32 } else { high >> shift };
            value.copy_from_slice(&clean.to_le_bytes()[..size]);
        }
    }
}

/// The values of run-length encoded data (PS3.5, annex G): a segment for each byte of a value, the highest first.
fn rle(data: &[u8], count: usize, size: usize) -> Result<Vec<u8>, Problem> {
    let broken = || damaged("its run lengths do not fit its size");
    let number =
        |at: usize| data.get(4 * at..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes) as usize);
    // Two bytes hold at most 128, so that a small file cannot ask for much.
    if number(0) != Some(size) || data.len().saturating_mul(64) < count * size {
        return Err(broken());
    }
    let mut out = vec![0; count * size];
    for segment in 0..size {
        let end = if segment + 1 < size { number(segment + 2) } else { Some(data.len()) };
        let range = number(segment + 1).zip(end).and_then(|(start, end)| data.get(start..end));
        let (mut rest, mut at) = (range.ok_or_else(broken)?, 0);
        while at < count {
            let (&run, after) = rest.split_first().ok_or_else(broken)?;
            let (taken, copies) = match run {
                0..=127 => (usize::from(run) + 1, 1),
                128 => (0, 0),
                _ => (1, 257 - usize::from(run)),
            };
            let values = after.get(..taken).ok_or_else(broken)?;
            for &value in values.iter().flat_map(|value| std::iter::repeat_n(value, copies)) {
                *out.get_mut(at * size + size - 1 - segment).ok_or_else(broken)? = value;
                at += 1;
            }
            rest = &after[taken..];
        }
    }
    Ok(out)
}
