//! DICOM: the slices of a series in a folder are one image.
//!
//! Files are known by what they hold, not by their names. Slices are put in order by their positions along the normal of
//! their plane, as ITK does it, and the distance of slices comes from these positions, never from `SliceThickness`. A
//! series that is not a straight block of equal slices at equal distances is refused: a missing slice that nobody notices
//! would move everything behind it.
//!
//! Read are gray values of 8, 16 and 32 bits, signed or not, as they are or compressed by RLE, JPEG baseline or lossless
//! JPEG. Multi-frame files, colors, `MONOCHROME1` (which ITK inverts and pydicom does not), JPEG-LS, JPEG 2000 and
//! deflated files are refused. Elements are found by the crate `dicom-parser`, and only those of a slice's first level
//! that are needed are kept.
//!
//! The standard: <https://dicom.nema.org/medical/dicom/current/output/html/part03.html>, section C.7.6.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dicom_parser::StatefulDecode;
use dicom_parser::dataset::LazyDataToken;
use dicom_parser::dataset::lazy_read::LazyDataSetReader;
use dicom_transfer_syntax_registry::entries::{
    EXPLICIT_VR_BIG_ENDIAN, EXPLICIT_VR_LITTLE_ENDIAN, IMPLICIT_VR_LITTLE_ENDIAN,
};

use crate::error::{FileError, Problem};
use crate::formats::raster::parse_jpeg;
use crate::formats::text_header::{checked_geometry, missing, normal, refused, shown};
use crate::geometry::Geometry;
use crate::limits::{Limits, memory_of};
use crate::panics::catch_panic;
use crate::volume::Image;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// One image of a folder of DICOM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// `SeriesInstanceUID`.
    pub uid: String,
    /// `SeriesDescription`; may be empty.
    pub description: String,
    /// `Modality`, such as `CT`.
    pub modality: String,
    /// `SeriesNumber`.
    pub number: Option<i64>,
    /// The files of its slices, in the order of their names.
    pub files: Vec<PathBuf>,
}

impl SeriesInfo {
    /// Whether somebody means this series: by its UID, its number, or its description in any case.
    fn is_called(&self, name: &str) -> bool {
        let number = self.number.is_some_and(|number| number.to_string() == name);
        self.uid == name || number || self.description.eq_ignore_ascii_case(name)
    }

    /// What it is, in a few words.
    pub fn describe(&self) -> String {
        let number = self.number.map_or(String::new(), |number| format!("number {number}, "));
        let (name, uid) = (shown(&self.description), &self.uid);
        format!("{name} ({number}{}, {} slices, UID {uid})", self.modality, self.files.len())
    }
}

/// The folder of a path that names a DICOM series, and the series that is chosen, if any: a folder, or
/// `FOLDER#DESCRIPTION`, `FOLDER#NUMBER` or `FOLDER#UID`. Nothing for other paths.
pub fn folder_and_series(path: &Path) -> Option<(PathBuf, Option<String>)> {
    if path.exists() {
        return path.is_dir().then(|| (path.to_owned(), None));
    }
    let (folder, series) = path.to_str()?.rsplit_once('#')?;
    Path::new(folder).is_dir().then(|| (folder.into(), Some(series.to_owned())))
}

/// Whether a folder itself holds a DICOM file.
pub fn is_series_folder(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.path().is_file() && matches!(opened(&entry.path()), Ok(Some(_))))
}

/// The series of images in a folder and the folders in it, by their numbers. Only headers are read.
///
/// # Errors
/// A file with the ending of DICOM that is none, or one whose header is damaged.
pub fn series_in(folder: &Path, limits: &Limits) -> Result<Vec<SeriesInfo>, FileError> {
    Ok(by_series(folder, limits)?.into_iter().map(|(info, _)| info).collect())
}

/// The files of a series in the order of its slices. `series` is a description, number or UID; without one, the folder
/// must hold a single series.
pub fn series_files(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Vec<PathBuf>, FileError> {
    let (slices, _) = straight_block(folder, chosen(folder, series, limits)?)?;
    Ok(slices.into_iter().map(|slice| slice.path).collect())
}

/// The image of a series, `[1, d, h, w]`; `series` as in [`series_files`].
pub fn read_series(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Image, FileError> {
    image_of(folder, chosen(folder, series, limits)?, limits)
}

/// The image of one file, of depth 1.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Image, FileError> {
    let slice = Slice::open(path, limits).and_then(|slice| slice.ok_or_else(not_dicom));
    image_of(path, vec![slice.map_err(|problem| problem.in_file(path))?], limits)
}

fn not_dicom() -> Problem {
    let found = "without the mark DICM after 128 bytes".to_owned();
    let advice = "the file is damaged or no DICOM: copy it again, or move it away";
    refused("the file", found, "a DICOM file", advice)
}

type Series = (SeriesInfo, Vec<Slice>);

fn by_series(folder: &Path, limits: &Limits) -> Result<Vec<Series>, FileError> {
    let mut found = BTreeMap::<String, Series>::new();
    for path in files_below(folder, limits).map_err(|problem| problem.in_file(folder))? {
        let Some(slice) = Slice::open(&path, limits).map_err(|problem| problem.in_file(&path))? else {
            let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if ["dcm", "ima", "dicom"].contains(&end.as_str()) {
                return Err(not_dicom().in_file(path));
            }
            continue;
        };
        // Directories, reports and structures are no images.
        if slice.elements.contains_key(&ROWS.tag) {
            let uid = slice.text(SERIES_UID);
            let (info, slices) = found.entry(uid.clone()).or_insert_with(|| {
                let number = slice.text(SERIES_NUMBER).parse().ok();
                let (description, modality) = (slice.text(SERIES_DESCRIPTION), slice.text(MODALITY));
                (SeriesInfo { uid, description, modality, number, files: vec![] }, vec![])
            });
            info.files.push(path);
            slices.push(slice);
        }
    }
    let mut found: Vec<Series> = found.into_values().collect();
    found.sort_by_key(|(info, _)| info.number);
    Ok(found)
}

/// The plain files of a folder and the folders in it, by name. Pipes, devices and hidden files are left alone.
fn files_below(folder: &Path, limits: &Limits) -> Result<Vec<PathBuf>, Problem> {
    let (mut files, mut folders) = (vec![], vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            let path = entry.path();
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match fs::metadata(&path) {
                Ok(about) if about.is_file() && !hidden => files.push(path),
                Ok(about) if about.is_dir() && !hidden && inner == folder => folders.push(path),
                _ => {}
            }
            let (found, limit) = (files.len() as u64, limits.members);
            if found > limit {
                return Err(Problem::Limit {
                    what: "the number of files in the folder",
                    found,
                    limit,
                    name: "members",
                });
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The slices of the only series, or of the one that is called so.
fn chosen(folder: &Path, series: Option<&str>, limits: &Limits) -> Result<Vec<Slice>, FileError> {
    let all = by_series(folder, limits)?;
    let names: Vec<String> = all.iter().take(MOST_LISTED).map(|(info, _)| info.describe()).collect();
    let listed = format!("{}{}", names.join(", "), if all.len() > MOST_LISTED { ", …" } else { "" });
    let is_meant = |(info, _): &Series| series.is_none_or(|series| info.is_called(series));
    let mut meant: Vec<Series> = all.into_iter().filter(is_meant).collect();
    if meant.len() == 1 {
        return Ok(meant.remove(0).1);
    }
    let choose = "name one behind the folder, as FOLDER#DESCRIPTION, FOLDER#NUMBER or FOLDER#UID";
    let problem = match (series, meant.len()) {
        _ if listed.is_empty() => {
            let advice = "give the folder with the slices of one series";
            refused("the folder", "without any".to_owned(), "one with images in DICOM files", advice)
        }
        (None, count) => refused("the number of series", format!("{count}: {listed}"), "1", choose),
        (Some(name), count) => {
            let found = format!("{}, which {count} of the series have: {listed}", shown(name));
            refused("the description, number or UID", found, "that of one series", choose)
        }
    };
    Err(problem.in_file(folder))
}

/// Series that a message lists.
const MOST_LISTED: usize = 10;

/// Group and element.
type Tag = (u16, u16);

/// An attribute of a slice: its tag, and its keyword in the standard.
#[derive(Clone, Copy)]
struct Attribute {
    tag: Tag,
    name: &'static str,
}

/// Makes a constant for each attribute, and the list of all.
macro_rules! attributes {
    ($($constant:ident $group:literal $element:literal $name:literal;)*) => {
        $(const $constant: Attribute = Attribute { tag: ($group, $element), name: $name };)*
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
}
const SYNTAX: Tag = (0x0002, 0x0010);
const PIXEL_DATA: Tag = (0x7fe0, 0x0010);

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
struct Slice {
    path: PathBuf,
    syntax: String,
    /// Where its attributes start in the file.
    data_set: u64,
    elements: BTreeMap<Tag, Vec<u8>>,
}

/// An open file behind its mark, and its length; nothing if it has no mark. What is not a plain file is not opened: a
/// pipe would wait for ever.
fn opened(path: &Path) -> Result<Option<(BufReader<File>, u64)>, Problem> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(refused("the path", "no plain file".to_owned(), "a plain file", "give another one"));
    }
    let (mut file, mut start) = (BufReader::new(File::open(path)?), [0; 132]);
    match file.read_exact(&mut start) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
        Ok(()) => Ok((start[128..] == *b"DICM").then_some((file, about.len()))),
    }
}

impl Slice {
    /// The attributes of a file before its pixel data; nothing if it is no DICOM file.
    fn open(path: &Path, limits: &Limits) -> Result<Option<Self>, Problem> {
        let Some((mut file, length)) = opened(path)? else { return Ok(None) };
        limits.check_file_bytes(length)?;
        catch_panic(PART, || {
            let mut start = [0; 12];
            file.read_exact(&mut start)?;
            let (first, [a, b, c, d]) = (&start[..8], [8, 9, 10, 11].map(|at| start[at]));
            let meta_length = u64::from(u32::from_le_bytes([a, b, c, d]));
            if first != b"\x02\0\0\0UL\x04\0" || meta_length > limits.header_bytes.min(length) {
                return Err(damaged("the length of its first group is missing"));
            }
            let (mut meta, mut syntax) = (vec![], String::new());
            (&mut file).take(meta_length).read_to_end(&mut meta)?;
            elements(Cursor::new(&meta), meta_length, EXPLICIT, (3, 0), |tag, bytes| {
                if tag == SYNTAX {
                    syntax = plain_text(&bytes);
                }
            })?;
            if syntax.is_empty() || syntax == DEFLATED {
                return Err(other_syntax(&syntax));
            }
            let (data_set, mut found) = (file.stream_position()?, BTreeMap::new());
            elements(file, length, &syntax, PIXEL_DATA, |tag, bytes| drop(found.insert(tag, bytes)))?;
            Ok(Some(Self { path: path.to_owned(), syntax, data_set, elements: found }))
        })
    }

    fn order(&self) -> ByteOrder {
        if self.syntax == BIG_ENDIAN { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// The text of an attribute; empty where there is none.
    fn text(&self, attribute: Attribute) -> String {
        self.elements.get(&attribute.tag).map_or(String::new(), |bytes| plain_text(bytes))
    }

    /// A number of 16 bits.
    fn number(&self, attribute: Attribute) -> Result<u16, Problem> {
        let bytes = self.elements.get(&attribute.tag).and_then(|bytes| bytes.first_chunk());
        let bytes = *bytes.ok_or_else(|| missing(attribute.name, "given in every image", EXPORT))?;
        Ok(match self.order() {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    /// The decimal numbers of an attribute; nothing where there is none.
    fn decimals<const N: usize>(&self, attribute: Attribute) -> Result<Option<[f64; N]>, Problem> {
        let text = self.text(attribute);
        if text.is_empty() {
            return Ok(None);
        }
        let numbers: Option<Vec<f64>> = text.split('\\').map(|word| word.trim().parse().ok()).collect();
        let finite = numbers.filter(|numbers| numbers.iter().all(|x| x.is_finite()));
        let numbers = finite.and_then(|numbers| numbers.try_into().ok());
        let refuse =
            || refused(attribute.name, shown(&text), "as many finite numbers as it has axes", EXPORT);
        numbers.map(Some).ok_or_else(refuse)
    }

    /// The plane of the slice in LPS.
    fn plane(&self) -> Result<Plane, Problem> {
        let absent = |attribute: Attribute| {
            let advice = "without it nobody knows where the slice lies: export the series as slices in space";
            move || missing(attribute.name, "given in every slice", advice)
        };
        let position = self.decimals(POSITION)?.ok_or_else(absent(POSITION))?;
        let axes: [f64; 6] = self.decimals(ORIENTATION)?.ok_or_else(absent(ORIENTATION))?;
        // The first is the distance of rows, along j.
        let [j, i] = self.decimals(PIXEL_SPACING)?.ok_or_else(absent(PIXEL_SPACING))?;
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
                Err(refused(ORIENTATION.name, shown(&self.text(ORIENTATION)), allowed, EXPORT))
            }
        }
    }

    /// What the values of the slice are.
    fn format(&self) -> Result<PixelFormat, Problem> {
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
            _ => return Err(refused(BITS_ALLOCATED.name, allocated.to_string(), "8, 16 or 32", EXPORT)),
        };
        let high = self.number(HIGH_BIT)?;
        if bits == 0 || bits > allocated || high != bits - 1 {
            let found = format!("{high}, with {bits} of {allocated} bits stored");
            return Err(refused(HIGH_BIT.name, found, "one less than the bits that are stored", EXPORT));
        }
        let slope = self.decimals(SLOPE)?.map_or(1.0, |[slope]| slope);
        let intercept = self.decimals(INTERCEPT)?.map_or(0.0, |[intercept]| intercept);
        if slope == 0.0 {
            return Err(refused(SLOPE.name, "0".to_owned(), "another number", EXPORT));
        }
        let size = [self.number(ROWS)?.into(), self.number(COLUMNS)?.into()];
        Ok(PixelFormat { size, kind, bits, rescale: [slope, intercept] })
    }

    /// The stored values as little-endian bytes.
    fn values(&self, format: &PixelFormat, limits: &Limits) -> Result<Vec<u8>, Problem> {
        let coding = SYNTAXES.iter().find(|(uid, _)| *uid == self.syntax);
        let (_, coding) = coding.ok_or_else(|| other_syntax(&self.syntax))?;
        let size = format.kind.bytes();
        let count = limits.check_values(&format.size)?;
        let needed = count as u64 * size as u64;
        let mut bytes = match coding {
            Coding::Plain => self.pixel_data()?,
            Coding::Rle => rle(&self.pixel_data()?, count, size)?,
            Coding::Jpeg => {
                let image = parse_jpeg(&self.pixel_data()?, limits)?;
                if image.shape[2..] != format.size {
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
        elements(file, length, &self.syntax, (PIXEL_DATA.0, PIXEL_DATA.1 + 1), |tag, mut bytes| {
            if tag == PIXEL_DATA {
                found = true;
                all.append(&mut bytes);
            }
        })?;
        let advice = "the file holds no image: export the series again";
        if found { Ok(all) } else { Err(missing("PixelData", "given in every image", advice)) }
    }
}

/// Hands out the elements of the first level that are wanted, and fragments of pixel data, up to a tag.
fn elements(
    file: impl Read + Seek,
    length: u64,
    syntax: &str,
    end: Tag,
    mut keep: impl FnMut(Tag, Vec<u8>),
) -> Result<(), Problem> {
    let syntax = match syntax {
        IMPLICIT => IMPLICIT_VR_LITTLE_ENDIAN.erased(),
        BIG_ENDIAN => EXPLICIT_VR_BIG_ENDIAN.erased(),
        _ => EXPLICIT_VR_LITTLE_ENDIAN.erased(),
    };
    let mut reader = LazyDataSetReader::new_with_ts(file, &syntax).map_err(damaged)?;
    // How deep in sequences, and which item of the pixel data: the first one is a table.
    let (mut depth, mut item) = (0, 0);
    while let Some(token) = reader.advance() {
        let token = token.map_err(damaged)?;
        let (tag, part, needed, at) = match &token {
            LazyDataToken::SequenceStart { tag, .. } if depth == 0 && (tag.0, tag.1) >= end => return Ok(()),
            LazyDataToken::ElementHeader(header) if depth == 0 && (header.tag.0, header.tag.1) >= end => {
                return Ok(());
            }
            LazyDataToken::PixelSequenceStart if depth == 0 && PIXEL_DATA >= end => return Ok(()),
            LazyDataToken::SequenceStart { .. } | LazyDataToken::PixelSequenceStart => {
                (depth, item) = (depth + 1, 0);
                continue;
            }
            LazyDataToken::SequenceEnd => {
                depth -= 1;
                continue;
            }
            LazyDataToken::ItemStart { .. } => {
                item += 1;
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
        let is_fragment = matches!(token, LazyDataToken::LazyItemValue { .. }) && item > 1;
        let is_wanted = tag == SYNTAX || tag == PIXEL_DATA || ATTRIBUTES.iter().any(|known| known.tag == tag);
        if is_fragment || depth == 0 && is_wanted {
            let mut bytes = vec![];
            token.read_value_into(&mut bytes).map_err(damaged)?;
            keep(tag, bytes);
        } else {
            token.skip().map_err(damaged)?;
        }
    }
    Ok(())
}

const EXPORT: &str = "export the series again";
const PART: &str = "the DICOM file";

fn damaged(reason: impl ToString) -> Problem {
    Problem::Damaged { part: PART, reason: reason.to_string() }
}

/// Text without what fills it up to an even length.
fn plain_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|row| a[row] * b[row]).sum()
}

/// Where a slice lies, in LPS.
#[derive(Clone, Copy)]
struct Plane {
    position: [f64; 3],
    /// Along rows, along columns, and through the slices.
    axes: [[f64; 3]; 3],
    /// Along rows and along columns.
    spacing: [f64; 2],
}

/// What the stored values of a slice are.
#[derive(PartialEq)]
struct PixelFormat {
    /// Rows and columns.
    size: [usize; 2],
    kind: VoxelType,
    /// The bits of a value that count.
    bits: u16,
    /// Slope and intercept.
    rescale: [f64; 2],
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

/// How far slices of one series may differ, relative to one voxel or one unit.
const CLOSE: f64 = 1e-4;
/// How far the distance of two slices may be from that of the others, and slices from a straight line, in distances.
const UNEVEN: f64 = 0.02;

/// The slices in their order, and where the block lies in LPS.
fn straight_block(place: &Path, slices: Vec<Slice>) -> Result<(Vec<Slice>, Geometry), FileError> {
    let plane = |slice: Slice| match slice.plane() {
        Ok(plane) => Ok((slice, plane)),
        Err(problem) => Err(problem.in_file(slice.path)),
    };
    let mut block = slices.into_iter().map(plane).collect::<Result<Vec<_>, _>>()?;
    let Some(&(_, first)) = block.first() else { return Err(not_dicom().in_file(place)) };
    for (slice, plane) in &block {
        check_alike(&block[0].0, &first, slice, plane).map_err(|problem| problem.in_file(&slice.path))?;
    }
    let across = first.axes[2];
    block.sort_by(|(_, a), (_, b)| dot(a.position, across).total_cmp(&dot(b.position, across)));
    let between = match &block[..] {
        [(slice, _)] => {
            let said = slice.decimals(SPACING_BETWEEN_SLICES).map_err(|problem| problem.in_file(place))?;
            said.map_or(1.0, |[distance]| distance)
        }
        _ => distance(&block, across).map_err(|(path, problem)| problem.in_file(path.unwrap_or(place)))?,
    };
    let (origin, [i, j]) = (block[0].1.position, first.spacing);
    let direction = [0, 1, 2].map(|row| first.axes.map(|axis| axis[row]));
    let geometry = Geometry { spacing: [i, j, between], origin, direction };
    let names = [PIXEL_SPACING.name, POSITION.name, ORIENTATION.name];
    let geometry = checked_geometry(geometry, names).map_err(|problem| problem.in_file(place))?;
    Ok((block.into_iter().map(|(slice, _)| slice).collect(), geometry))
}

/// Refuses a slice that does not fit onto another one.
fn check_alike(first: &Slice, plane: &Plane, other: &Slice, other_plane: &Plane) -> Result<(), Problem> {
    let far = |a: &[f64], b: &[f64], unit: f64| a.iter().zip(b).any(|(a, b)| (a - b).abs() > CLOSE * unit);
    let turned = far(plane.axes.as_flattened(), other_plane.axes.as_flattened(), 1.0);
    let differs = [
        (ROWS, first.number(ROWS)? != other.number(ROWS)?),
        (COLUMNS, first.number(COLUMNS)? != other.number(COLUMNS)?),
        (ORIENTATION, turned),
        (PIXEL_SPACING, far(&plane.spacing, &other_plane.spacing, plane.spacing[0])),
    ];
    let Some((attribute, _)) = differs.into_iter().find(|(_, differs)| *differs) else { return Ok(()) };
    let shown_of = |slice: &Slice| match attribute.tag {
        tag if tag == ROWS.tag || tag == COLUMNS.tag => slice.number(attribute).map(|x| x.to_string()),
        _ => Ok(shown(&slice.text(attribute))),
    };
    let found = format!("{}, but {} in {}", shown_of(other)?, shown_of(first)?, name(&first.path));
    let advice = "the files are of different scans: keep those of one in the folder";
    Err(refused(attribute.name, found, "the same in all slices", advice))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The distance of neighboring slices, if it is the same everywhere and straight along the normal.
fn distance<'a>(block: &'a [(Slice, Plane)], across: [f64; 3]) -> Result<f64, (Option<&'a Path>, Problem)> {
    let heights: Vec<f64> = block.iter().map(|(_, plane)| dot(plane.position, across)).collect();
    let steps: Vec<f64> = heights.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = steps.clone();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted[sorted.len() / 2];
    for (pair, &step) in block.windows(2).zip(&steps) {
        let [before, after] = [0, 1].map(|at| name(&pair[at].0.path));
        if step <= CLOSE * usual.max(1.0) {
            let found = format!("that of {before}");
            let advice = "remove one of the two, or choose one phase of the series";
            let problem = refused(POSITION.name, found, "another one in every slice", advice);
            return Err((Some(&pair[1].0.path), problem));
        }
        if (step - usual).abs() > UNEVEN * usual {
            let found = format!("{step:.4} mm between {before} and {after}, and {usual:.4} mm elsewhere");
            let advice =
                "slices are missing or are of two scans: copy the folder again, or export the series again";
            return Err((None, refused("the distance of slices", found, "the same everywhere", advice)));
        }
    }
    let (origin, length) = (block[0].1.position, heights[heights.len() - 1] - heights[0]);
    let aside = |(plane, height): (&Plane, &f64)| {
        let shift =
            [0, 1, 2].map(|row| plane.position[row] - origin[row] - (height - heights[0]) * across[row]);
        dot(shift, shift).sqrt()
    };
    let shift = block.iter().map(|(_, plane)| plane).zip(&heights).map(aside).fold(0.0, f64::max);
    if shift > UNEVEN * usual {
        let what =
            format!("a series whose slices are shifted sideways, by up to {shift:.3} mm (gantry tilt),");
        let advice = "resample it onto a straight grid, for example with 3D Slicer, and give that file";
        return Err((None, Problem::Unsupported { what, advice }));
    }
    Ok(length / steps.len() as f64)
}

/// The image of slices. `place` is what a message names that is about no single one.
fn image_of(place: &Path, slices: Vec<Slice>, limits: &Limits) -> Result<Image, FileError> {
    let (slices, geometry) = straight_block(place, slices)?;
    let format = |slice: &Slice| slice.format().map_err(|problem| problem.in_file(&slice.path));
    let formats = slices.iter().map(format).collect::<Result<Vec<_>, _>>()?;
    let (kind, [h, w]) = (formats[0].kind, formats[0].size);
    let (shape, mut stored) = ([1, slices.len(), h, w], 0);
    for (slice, format) in slices.iter().zip(&formats) {
        stored += fs::metadata(&slice.path).map_or(0, |about| about.len());
        if format.kind != kind {
            let (found, first) = (format!("{:?}, but {kind:?}", format.kind), name(&slices[0].path));
            let found = format!("{found} in {first}");
            let advice = "store all slices with the same bits and sign";
            return Err(
                refused("the type of values", found, "the same in all slices", advice).in_file(&slice.path)
            );
        }
    }
    let checked = limits.check_values(&shape);
    let memory = |count: usize| limits.check_memory(memory_of(count as u64, kind.bytes()), stored);
    checked.and_then(memory).map_err(|problem| problem.in_file(place))?;
    let same = formats.iter().all(|format| format.rescale == formats[0].rescale);
    let (mut bytes, mut scaled) = (vec![], vec![]);
    for (slice, format) in slices.iter().zip(&formats) {
        let values = catch_panic(PART, || slice.values(format, limits));
        let mut values = values.map_err(|problem| problem.in_file(&slice.path))?;
        let [slope, intercept] = format.rescale;
        match same {
            true => bytes.append(&mut values),
            false => scaled
                .extend(Voxels::from_bytes(kind, &values, ByteOrder::Little).scaled_f32(slope, intercept)),
        }
    }
    let voxels = if same { Voxels::from_bytes(kind, &bytes, ByteOrder::Little) } else { Voxels::F32(scaled) };
    let image = Image::new(voxels, shape, geometry.with_x_and_y_flipped(), limits);
    let image = image.map_err(|problem| problem.in_file(place))?;
    let [slope, intercept] = if same { formats[0].rescale } else { [1.0, 0.0] };
    Ok(Image { slope, intercept, ..image })
}
