//! NIfTI-1 and NIfTI-2: single files, plain or gzipped, and pairs of a header and a data file.
//!
//! [`parse`] and [`parse_pair`] go from bytes to an [`Image`], [`encode`] and [`encode_gz`] back. The module knows
//! nothing of paths and names: whether bytes are compressed is seen from the bytes. The rules are those of the public
//! headers `nifti1.h` and `nifti2.h`; where these leave a choice, the choice is nibabel's, and where nibabel repairs a
//! header or another reader would understand it differently, the file is refused.
//!
//! Decided here:
//! - The affine is the sform if its code is positive, else the qform if its code is positive, else the voxel sizes
//!   with the origin at the middle of the image and x pointing left, as nibabel's `get_best_affine` has it.
//! - `xyzt_units` is kept for writing but not applied, as in nibabel: lengths are taken to be millimeters.
//! - Data must end where the header says, to the byte: a longer file is a header of another image.
//! - Slope 0, infinite or not a number means that values are as stored; a valid slope needs a finite intercept.

mod header;

use std::borrow::Cow;
use std::io::Write;
use std::ops::RangeInclusive;

use flate2::write::GzEncoder;

pub use self::header::Version;
use self::header::{Field, RawHeader};
use crate::formats::gzip;
use crate::formats::gzip::Compression;
use crate::geometry::{Geometry, Tolerance};
use crate::limits::{Limits, within};
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// The level of compression: label maps become small at any.
const GZIP_LEVEL: u32 = 1;

/// The bytes after the header that say whether extensions follow.
const EXTENSION_FLAG: usize = 4;
/// Bytes of the size and the code at the start of an extension.
const EXTENSION_START: usize = 8;
/// Fewer bytes than this hold no extension; they fill up to the data.
const SMALLEST_EXTENSION: usize = 16;

/// The name of the data in messages.
const DATA: &str = "the voxel data";

/// The codes of the field `datatype`.
const DATATYPES: [(i64, VoxelType); VoxelType::ALL.len()] = [
    (2, VoxelType::U8),
    (4, VoxelType::I16),
    (8, VoxelType::I32),
    (16, VoxelType::F32),
    (64, VoxelType::F64),
    (256, VoxelType::I8),
    (512, VoxelType::U16),
    (768, VoxelType::U32),
    (1024, VoxelType::I64),
    (1280, VoxelType::U64),
];

/// `NIFTI_INTENT_VECTOR`: the fifth axis runs over the components of a vector.
const INTENT_VECTOR: i64 = 1007;
/// The dimensions under which FreeSurfer hides a surface of 163842 points.
const FREESURFER_SURFACE: [usize; 3] = [27307, 1, 6];

/// The codes of the forms in the standard, `NIFTI_XFORM_UNKNOWN` to `NIFTI_XFORM_TEMPLATE_OTHER`.
const FORM_CODES: RangeInclusive<i64> = 0..=5;
/// `NIFTI_XFORM_SCANNER_ANAT`: the code of geometry from other formats.
const SCANNER: i64 = 1;
/// `NIFTI_UNITS_MM`.
const MILLIMETERS: i64 = 2;
/// The volume that the three unit vectors along the axes span at least; 1 when they are perpendicular.
const SMALLEST_VOLUME: f64 = 1e-6;

/// Reads a single file (`.nii`), plain or gzipped.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let header = if gzip::is_gzip(bytes) {
        let start = gzip::expand_start(bytes, Compression::Gzip, Version::Two.bytes())?;
        Header::read(&start, Container::Single)?
    } else {
        Header::read(bytes, Container::Single)?
    };
    check_header_bytes(header.data_offset, limits)?;
    let size = data_bytes(&header, limits)?;
    let file = whole(bytes, header.data_offset, size, limits)?;
    let (start, data) = file.split_at(header.data_offset as usize);
    check_extensions(&start[header.raw.version.bytes()..], header.raw.order)?;
    Ok(image(header, data))
}

/// Reads a pair (`.hdr` and `.img`), each plain or gzipped.
pub fn parse_pair(header: &[u8], data: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(header.len() as u64)?;
    limits.check_file_bytes(data.len() as u64)?;
    let bytes = if gzip::is_gzip(header) {
        // One byte more than allowed, so that a header that is read in full is one whose checksum was verified.
        let most = usize::try_from(limits.header_bytes).unwrap_or(usize::MAX).saturating_add(1);
        Cow::Owned(gzip::expand_start(header, Compression::Gzip, most)?)
    } else {
        Cow::Borrowed(header)
    };
    check_header_bytes(bytes.len() as u64, limits)?;
    let header = Header::read(&bytes, Container::Pair)?;
    check_extensions(&bytes[header.raw.version.bytes()..], header.raw.order)?;
    let size = data_bytes(&header, limits)?;
    let file = whole(data, header.data_offset, size, limits)?;
    let data = &file[header.data_offset as usize..];
    Ok(image(header, data))
}

/// Returns `false` if the header of an image, its [`source`](Image::source), has neither sform nor qform.
pub fn has_geometry(header: &[u8]) -> bool {
    RawHeader::read(header)
        .is_ok_and(|raw| [Field::SFORM_CODE, Field::QFORM_CODE].iter().any(|code| raw.integer(*code, 0) > 0))
}

/// Everything before the data counts as header.
fn check_header_bytes(found: u64, limits: &Limits) -> Result<(), Problem> {
    within("the size of the header with extensions", found, limits.header_bytes, "header_bytes")
}

/// Returns the bytes of all values.
fn data_bytes(header: &Header, limits: &Limits) -> Result<u64, Problem> {
    let values = limits.check_values(&header.shape.values)? as u64;
    Ok(values.saturating_mul(header.kind.bytes() as u64))
}

/// The whole expanded file, which must hold `size` bytes from `offset` on and nothing after them.
fn whole<'a>(bytes: &'a [u8], offset: u64, size: u64, limits: &Limits) -> Result<Cow<'a, [u8]>, Problem> {
    let expected = offset.saturating_add(size);
    if gzip::is_gzip(bytes) {
        let file = gzip::expand_exactly(bytes, Compression::Gzip, expected, DATA, limits)?;
        return Ok(Cow::Owned(file));
    }
    let found = bytes.len() as u64;
    if found < expected {
        let found = found.saturating_sub(offset);
        return Err(Problem::Truncated { part: DATA, needed: size, found });
    }
    if found > expected {
        let found = format!("{} bytes longer than {size} bytes", found - expected);
        let advice = "header and data do not belong together: export the image again";
        return Err(refused(DATA, found, "as long as the header says", advice));
    }
    Ok(Cow::Borrowed(bytes))
}

/// Steps over the extensions, sections of other programs that are not read, in the bytes that follow the header.
///
/// A size that leads out of these bytes is refused: then the header is damaged or the data starts elsewhere.
fn check_extensions(after_header: &[u8], order: ByteOrder) -> Result<(), Problem> {
    let mut rest = match after_header.split_at_checked(EXTENSION_FLAG) {
        Some((flag, rest)) if flag[0] != 0 => rest,
        _ => return Ok(()),
    };
    while let Some(start) = rest.first_chunk::<4>().filter(|_| rest.len() >= SMALLEST_EXTENSION) {
        let size = match order {
            ByteOrder::Little => i32::from_le_bytes(*start),
            ByteOrder::Big => i32::from_be_bytes(*start),
        };
        let after = usize::try_from(size).ok().filter(|&size| size >= EXTENSION_START);
        rest = after.and_then(|size| rest.get(size..)).ok_or_else(|| {
            let allowed = "at least 8 and at most what is left before the data";
            let advice = "the header is damaged: copy the file again, or remove the extensions";
            refused("esize of a header extension", size, allowed, advice)
        })?;
    }
    Ok(())
}

fn image(header: Header, data: &[u8]) -> Image {
    Image {
        voxels: Voxels::from_bytes(header.kind, data, header.raw.order),
        shape: header.shape.values,
        geometry: header.geometry,
        slope: header.slope,
        intercept: header.intercept,
        source: Some(header.raw.into_bytes()),
    }
}

/// Whether header and data share a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Single,
    Pair,
}

/// A header in which everything that matters for the values and their place is allowed.
#[derive(Debug, Clone)]
struct Header {
    raw: RawHeader,
    shape: Shape,
    kind: VoxelType,
    /// Where the data starts in its file.
    data_offset: u64,
    slope: f64,
    intercept: f64,
    geometry: Geometry,
}

impl Header {
    /// The header at the start of bytes.
    fn read(bytes: &[u8], container: Container) -> Result<Self, Problem> {
        let raw = RawHeader::read(bytes)?;
        check_magic(&raw, container)?;
        let shape = Shape::read(&raw)?;
        let kind = kind(&raw)?;
        let data_offset = data_offset(&raw, container)?;
        let (slope, intercept) = scaling(&raw)?;
        let geometry = geometry(&raw, &shape)?;
        Ok(Self { raw, shape, kind, data_offset, slope, intercept, geometry })
    }

    /// A header kept with an image, whichever kind of file it came from.
    fn of_source(bytes: &[u8]) -> Result<Self, Problem> {
        let single = Self::read(bytes, Container::Single);
        single.or_else(|problem| Self::read(bytes, Container::Pair).map_err(|_| problem))
    }
}

fn check_magic(raw: &RawHeader, container: Container) -> Result<(), Problem> {
    let (expected, allowed) = match container {
        Container::Single => {
            (raw.version.magic_single(), "that of a single file: `n+1` or, intact to the end, `n+2`")
        }
        Container::Pair => (raw.version.magic_pair(), "that of a pair: `ni1` or, intact to the end, `ni2`"),
    };
    let found = raw.magic();
    if found == expected {
        return Ok(());
    }
    if found.iter().all(|&byte| byte == 0) {
        return Err(Problem::Unsupported {
            what: "a header without the magic of NIfTI, such as that of Analyze 7.5,".into(),
            advice: "convert the image to NIfTI: Analyze does not say which side is left",
        });
    }
    let advice = "give the file or files that belong to this header, or export the image again";
    let found = format!("\"{}\"", found.escape_ascii());
    Err(refused("magic", found, allowed, advice))
}

fn kind(raw: &RawHeader) -> Result<VoxelType, Problem> {
    let code = raw.integer(Field::DATATYPE, 0);
    let Some(&(_, kind)) = DATATYPES.iter().find(|row| row.0 == code) else {
        let name = match code {
            1 => "single bits",
            32 | 1792 | 2048 => "complex numbers",
            128 | 2304 => "colors",
            1536 => "numbers of 128 bits",
            _ => "an unknown type",
        };
        return Err(Problem::Unsupported {
            what: format!("datatype {code} ({name})"),
            advice: "convert the image to whole or real numbers of 8 to 64 bits",
        });
    };
    let bits = raw.integer(Field::BITPIX, 0);
    if bits == 8 * kind.bytes() as i64 {
        return Ok(kind);
    }
    let found = format!("{bits} with datatype {code} ({kind:?})");
    let advice = "one of the two is wrong and the values cannot be told: export the image again";
    Err(refused("bitpix", found, "the number of bits of the datatype", advice))
}

fn data_offset(raw: &RawHeader, container: Container) -> Result<u64, Problem> {
    let found = raw.float(Field::VOX_OFFSET, 0);
    let first = raw.version.bytes() + EXTENSION_FLAG;
    let (least, allowed) = match (container, raw.version) {
        (Container::Pair, _) => (0, "a whole number from 0"),
        (Container::Single, Version::One) => (first, "a whole number from 352"),
        (Container::Single, Version::Two) => (first, "a whole number from 544"),
    };
    let exact = raw.integer(Field::VOX_OFFSET, 0);
    let whole = found.is_finite() && found.fract() == 0.0 && exact >= least as i64;
    let advice = "where the data starts cannot be told: export the image again";
    whole.then_some(exact as u64).ok_or_else(|| refused("vox_offset", found, allowed, advice))
}

fn scaling(raw: &RawHeader) -> Result<(f64, f64), Problem> {
    let (slope, intercept) = (raw.float(Field::SCL_SLOPE, 0), raw.float(Field::SCL_INTER, 0));
    if slope == 0.0 || !slope.is_finite() {
        return Ok((1.0, 0.0));
    }
    if intercept.is_finite() {
        return Ok((slope, intercept));
    }
    let found = format!("{intercept} with scl_slope {slope}");
    let advice = "what the values mean cannot be told: export the image again";
    Err(refused("scl_inter", found, "finite, or scl_slope 0 for values as stored", advice))
}

/// Dimensions of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// `[c, d, h, w]`.
    values: [usize; 4],
    /// How many axes the header counts, 1 to 7.
    axes: usize,
    /// Whether channels are the components of a vector rather than points in time.
    vector: bool,
}

impl Shape {
    /// The dimensions that a header gives.
    fn read(raw: &RawHeader) -> Result<Self, Problem> {
        let axes = raw.integer(Field::DIM, 0);
        if !(1..=7).contains(&axes) {
            let advice = "the header is damaged: export the image again";
            return Err(refused("dim[0]", axes, "a number of axes from 1 to 7", advice));
        }
        let axes = axes as usize;
        let mut dims = [1; 7];
        for axis in 0..axes {
            let extent = raw.integer(Field::DIM, axis + 1);
            dims[axis] = usize::try_from(extent).ok().filter(|&n| n > 0).ok_or_else(|| {
                let found = format!("{extent} along axis {}", axis + 1);
                let advice = "the image holds no values: export it again";
                refused("a dimension (dim[1] to dim[7])", found, "positive", advice)
            })?;
        }
        let [i, j, k, t, u, v, w] = dims;
        if raw.version == Version::One && [i, j, k] == FREESURFER_SURFACE {
            return Err(Problem::Unsupported {
                what: "a FreeSurfer surface in the place of an image".into(),
                advice: "convert it to a volume",
            });
        }
        let intent = raw.integer(Field::INTENT_CODE, 0);
        let unknown = if v > 1 || w > 1 {
            Some(format!("an image of {axes} axes ({:?})", &dims[..axes]))
        } else if t > 1 && u > 1 {
            Some(format!("an image with {t} points in time and {u} components"))
        } else if u > 1 && intent != INTENT_VECTOR {
            Some(format!("a fifth axis of {u} with intent_code {intent} (only {INTENT_VECTOR}, vector, is)"))
        } else {
            None
        };
        if let Some(what) = unknown {
            return Err(Problem::Unsupported { what, advice: "split it into images of three or four axes" });
        }
        // One of the two is 1.
        let channels = t.max(u);
        Ok(Self { values: [channels, k, j, i], axes, vector: u > 1 })
    }

    /// Extents along i, j, k.
    fn extents(&self) -> [usize; 3] {
        let [_, d, h, w] = self.values;
        [w, h, d]
    }

    /// Writes the dimensions, with as many axes as the values need and at least `axes` of the first three.
    fn write(&self, raw: &mut RawHeader) -> Result<(), Problem> {
        let [c, d, h, w] = self.values;
        let (t, u) = if self.vector { (1, c) } else { (c, 1) };
        let dims = [w, h, d, t, u, 1, 1];
        let needed = dims.iter().rposition(|&n| n > 1).map_or(1, |last| last + 1);
        raw.put_integer(Field::DIM, 0, needed.max(self.axes.min(3)) as i64);
        let largest = if raw.version == Version::One { i16::MAX.into() } else { i64::MAX };
        for (axis, &extent) in dims.iter().enumerate() {
            let allowed = i64::try_from(extent).ok().filter(|&n| n > 0 && n <= largest);
            let extent = allowed.ok_or_else(|| {
                let found = format!("{extent} along axis {}", axis + 1);
                let allowed = "positive, and at most 32767 in NIfTI-1";
                refused("an extent of the image", found, allowed, "write it as NIfTI-2")
            })?;
            raw.put_integer(Field::DIM, axis + 1, extent);
        }
        raw.put_integer(Field::INTENT_CODE, 0, if self.vector { INTENT_VECTOR } else { 0 });
        Ok(())
    }
}

/// The geometry that a header gives the image.
fn geometry(raw: &RawHeader, shape: &Shape) -> Result<Geometry, Problem> {
    if form_code(raw.integer(Field::SFORM_CODE, 0), "sform_code")? > 0 {
        return from_sform(raw);
    }
    if form_code(raw.integer(Field::QFORM_CODE, 0), "qform_code")? > 0 {
        return from_qform(raw, shape);
    }
    from_sizes(raw, shape)
}

/// Readers disagree about other codes: some take them for none, some for a geometry.
fn form_code(found: i64, field: &'static str) -> Result<i64, Problem> {
    if FORM_CODES.contains(&found) {
        return Ok(found);
    }
    let advice = "set the geometry of the file again with the tool that wrote it";
    Err(refused(field, found, "a code from 0 to 5", advice))
}

fn from_sform(raw: &RawHeader) -> Result<Geometry, Problem> {
    let affine = [0, 1, 2].map(|row| [0, 1, 2, 3].map(|column| raw.float(Field::SROW, 4 * row + column)));
    let geometry = Geometry::from_affine(affine);
    geometry.filter(|found| determinant(&found.direction).abs() >= SMALLEST_VOLUME).ok_or_else(|| {
        let allowed = "finite, with three axes that span a volume";
        let advice = "set sform_code to 0 to use the qform instead, or set the geometry again";
        refused("the sform (srow_x, srow_y, srow_z)", format!("{affine:?}"), allowed, advice)
    })
}

fn from_qform(raw: &RawHeader, shape: &Shape) -> Result<Geometry, Problem> {
    let again = "set the geometry of the file again";
    let bcd = [0, 1, 2].map(|i| raw.float(Field::QUATERN, i));
    let Some(mut direction) = rotation(bcd, raw.version) else {
        let allowed = "finite, with squares that sum to at most 1";
        let field = "the quaternion (quatern_b, quatern_c, quatern_d)";
        return Err(refused(field, format!("{bcd:?}"), allowed, again));
    };
    // 0 means 1 by the standard; readers disagree about negative values other than -1.
    let handedness = raw.float(Field::PIXDIM, 0);
    if !(handedness == -1.0 || handedness.is_finite() && handedness >= 0.0) {
        return Err(refused("pixdim[0] (qfac)", handedness, "1 or -1", again));
    }
    if handedness < 0.0 {
        direction.iter_mut().for_each(|row| row[2] = -row[2]);
    }
    let origin = [0, 1, 2].map(|i| raw.float(Field::QOFFSET, i));
    if !origin.iter().all(|x| x.is_finite()) {
        return Err(refused("qoffset_x, qoffset_y, qoffset_z", format!("{origin:?}"), "finite", again));
    }
    Ok(Geometry { spacing: sizes(raw, shape, 3)?, origin, direction })
}

/// Without a form the origin is the middle of the image and x points left, as in nibabel and the older Analyze.
fn from_sizes(raw: &RawHeader, shape: &Shape) -> Result<Geometry, Problem> {
    let spacing = sizes(raw, shape, shape.axes)?;
    let mut geometry = Geometry { spacing, ..Geometry::default() };
    geometry.direction[0][0] = -1.0;
    for axis in 0..3 {
        let middle = (shape.extents()[axis] - 1) as f64 / 2.0;
        geometry.origin[axis] = -middle * spacing[axis] * geometry.direction[axis][axis];
    }
    Ok(geometry)
}

/// The voxel sizes along i, j, k; axes from `stored` on have none in the header and get 1.
fn sizes(raw: &RawHeader, shape: &Shape, stored: usize) -> Result<[f64; 3], Problem> {
    let mut sizes = [1.0; 3];
    for axis in 0..stored.min(3) {
        match raw.float(Field::PIXDIM, axis + 1) {
            size if size.is_finite() && size > 0.0 => sizes[axis] = size,
            // Writers leave the size along an axis of one voxel empty; it moves nothing.
            0.0 if shape.extents()[axis] == 1 => {}
            size => {
                let (field, found) =
                    ("a voxel size (pixdim[1] to pixdim[3])", format!("{size} along axis {}", axis + 1));
                let advice = "set the voxel sizes of the file again";
                return Err(refused(field, found, "positive and finite", advice));
            }
        }
    }
    Ok(sizes)
}

/// Writes a geometry: as sform, and as qform too where it is a rotation.
fn write_geometry(raw: &mut RawHeader, geometry: &Geometry) {
    for (row, numbers) in geometry.affine().iter().enumerate() {
        (0..4).for_each(|column| raw.put_float(Field::SROW, 4 * row + column, numbers[column]));
    }
    raw.put_integer(Field::SFORM_CODE, 0, SCANNER);
    raw.put_integer(Field::XYZT_UNITS, 0, MILLIMETERS);
    for axis in 0..3 {
        raw.put_float(Field::PIXDIM, axis + 1, geometry.spacing[axis]);
        raw.put_float(Field::QOFFSET, axis, geometry.origin[axis]);
    }
    let left_handed = determinant(&geometry.direction) < 0.0;
    raw.put_float(Field::PIXDIM, 0, if left_handed { -1.0 } else { 1.0 });
    let mut direction = geometry.direction;
    if left_handed {
        direction.iter_mut().for_each(|row| row[2] = -row[2]);
    }
    let bcd = quaternion(&direction);
    // A qform is written only if it says the same as the sform; a sheared grid has none.
    let says = rotation(bcd, raw.version).map(|direction| Geometry { direction, ..*geometry });
    let meant = Geometry { direction, ..*geometry };
    if says.is_some_and(|says| says.differences(&meant, Tolerance::default()).is_none()) {
        (0..3).for_each(|i| raw.put_float(Field::QUATERN, i, bcd[i]));
        raw.put_integer(Field::QFORM_CODE, 0, SCANNER);
    }
}

type Matrix = [[f64; 3]; 3];

fn determinant(m: &Matrix) -> f64 {
    let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
    m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
}

/// The rotation of (b, c, d), the three last components of a unit quaternion, the way the qform stores them. Nothing
/// if they are too long for a rotation or not numbers.
fn rotation([b, c, d]: [f64; 3], version: Version) -> Option<Matrix> {
    // How far the squared length of the three components may be from 1 and still mean a half turn: three times the
    // precision of the stored numbers, as in nibabel.
    let margin = match version {
        Version::One => 3.0 * f64::from(f32::EPSILON),
        Version::Two => 3.0 * f64::EPSILON,
    };
    let rest = 1.0 - (b * b + c * c + d * d);
    let a = match rest {
        rest if rest.abs() < margin => 0.0,
        rest if rest > 0.0 => rest.sqrt(),
        _ => return None,
    };
    // Components slightly too long are shortened here.
    let s = 2.0 / (a * a + b * b + c * c + d * d);
    Some([
        [1.0 - s * (c * c + d * d), s * (b * c - a * d), s * (b * d + a * c)],
        [s * (b * c + a * d), 1.0 - s * (b * b + d * d), s * (c * d - a * b)],
        [s * (b * d - a * c), s * (c * d + a * b), 1.0 - s * (b * b + c * c)],
    ])
}

/// The (b, c, d) of a rotation; see [`rotation`].
fn quaternion(m: &Matrix) -> [f64; 3] {
    // Each line is four times the square of a, b, c, d; the largest is divided by, so that nothing is lost.
    let squares = [
        1.0 + m[0][0] + m[1][1] + m[2][2],
        1.0 + m[0][0] - m[1][1] - m[2][2],
        1.0 - m[0][0] + m[1][1] - m[2][2],
        1.0 - m[0][0] - m[1][1] + m[2][2],
    ];
    let largest = (0..4).max_by(|&i, &j| squares[i].total_cmp(&squares[j])).unwrap_or(0);
    let (x, y, z) = (m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]);
    let (xy, xz, yz) = (m[1][0] + m[0][1], m[0][2] + m[2][0], m[2][1] + m[1][2]);
    let row = match largest {
        0 => [squares[0], x, y, z],
        1 => [x, squares[1], xy, xz],
        2 => [y, xy, squares[2], yz],
        _ => [z, xz, yz, squares[3]],
    };
    let length = row.iter().map(|q| q * q).sum::<f64>().sqrt();
    // The first component is not stored and taken to be positive.
    let sign = if row[0] < 0.0 { -1.0 } else { 1.0 };
    [row[1], row[2], row[3]].map(|q| sign * q / length)
}

impl Version {
    /// The version to write an image in: that of the file it came from, else NIfTI-1 where it fits.
    pub fn for_image(image: &Image) -> Self {
        let largest = i16::MAX as usize;
        match &image.source {
            Some(bytes) if bytes.len() == Self::Two.bytes() => Self::Two,
            _ if image.shape.iter().any(|&n| n > largest) => Self::Two,
            _ => Self::One,
        }
    }
}

/// The bytes of a single file (`.nii`), in little-endian order and without extensions.
///
/// An image that came from a file of the same version keeps the bits of its geometry, units and description, as
/// long as these still say what `image.geometry` says; otherwise the geometry is written afresh. Channels are
/// written as points in time, and as components of a vector if the source had them so.
pub fn encode(image: &Image, version: Version) -> Result<Vec<u8>, Problem> {
    let needed = image.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    if needed != Some(image.voxels.len()) {
        let (found, advice) = (image.voxels.len(), "give the image the shape of its values");
        return Err(refused("the number of values", found, "what the shape asks for", advice));
    }
    let mut bytes = header_of(image, version)?.into_bytes();
    bytes.extend_from_slice(&[0; EXTENSION_FLAG]);
    bytes.extend_from_slice(&image.voxels.to_le_bytes());
    Ok(bytes)
}

/// The bytes of a gzipped single file (`.nii.gz`).
pub fn encode_gz(image: &Image, version: Version) -> Result<Vec<u8>, Problem> {
    let mut encoder = GzEncoder::new(vec![], flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(&encode(image, version)?)?;
    Ok(encoder.finish()?)
}

fn header_of(image: &Image, version: Version) -> Result<RawHeader, Problem> {
    let source = image.source.as_deref().map(Header::of_source).transpose()?;
    let source = source.as_ref();
    let shape = Shape {
        values: image.shape,
        axes: source.map_or(3, |source| source.shape.axes),
        vector: image.shape[0] > 1 && source.is_some_and(|source| source.shape.vector),
    };
    let mut raw = RawHeader::single(version);
    shape.write(&mut raw)?;
    let kind = image.voxels.kind();
    let datatype = DATATYPES.iter().find(|row| row.1 == kind).expect("the table has a row for every type").0;
    raw.put_integer(Field::VOX_OFFSET, 0, (version.bytes() + EXTENSION_FLAG) as i64);
    raw.put_integer(Field::DATATYPE, 0, datatype);
    raw.put_integer(Field::BITPIX, 0, 8 * kind.bytes() as i64);
    raw.put_float(Field::SCL_SLOPE, 0, image.slope);
    raw.put_float(Field::SCL_INTER, 0, image.intercept);

    if let Some(source) = source.filter(|source| source.raw.version == version) {
        let mut same = raw.clone();
        let kept = [Field::PIXDIM, Field::XYZT_UNITS, Field::DESCRIP, Field::QFORM_CODE, Field::SFORM_CODE];
        let forms = [Field::QUATERN, Field::QOFFSET, Field::SROW];
        kept.into_iter().chain(forms).for_each(|field| same.copy(field, &source.raw));
        if written(&same).is_ok_and(|header| header.geometry == image.geometry) {
            return check_scaling(same, image);
        }
    }
    write_geometry(&mut raw, &image.geometry);
    if let Some(differences) = image.geometry.differences(&written(&raw)?.geometry, Tolerance::default()) {
        let found = format!("rounded in the header:\n{differences}");
        let allowed = "what the header's precision can hold";
        return Err(refused("the geometry", found, allowed, "write the image as NIfTI-2"));
    }
    check_scaling(raw, image)
}

/// What a reader makes of the header.
fn written(raw: &RawHeader) -> Result<Header, Problem> {
    Header::read(&raw.clone().into_bytes(), Container::Single)
}

fn check_scaling(raw: RawHeader, image: &Image) -> Result<RawHeader, Problem> {
    let back = written(&raw)?;
    if (back.slope, back.intercept) == (image.slope, image.intercept) {
        return Ok(raw);
    }
    let found = format!("{} and {}", image.slope, image.intercept);
    let allowed = "finite, not 0, and in single precision for NIfTI-1";
    let advice = "write the image as NIfTI-2, or apply the scaling first";
    Err(refused("slope and intercept", found, allowed, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_go_round() {
        let all = [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.6, 0.0, 0.8],
            [0.1, -0.2, 0.3],
            [0.5, 0.5, 0.5],
            [-0.7, 0.7, 0.1],
        ];
        for bcd in all {
            let matrix = rotation(bcd, Version::Two).unwrap();
            let again = rotation(quaternion(&matrix), Version::Two).unwrap();
            for (x, y) in matrix.iter().flatten().zip(again.iter().flatten()) {
                assert!((x - y).abs() < 1e-12, "{bcd:?}: {matrix:?}, {again:?}");
            }
        }
        let quarter = std::f64::consts::FRAC_1_SQRT_2;
        let matrix = rotation([0.0, 0.0, quarter], Version::Two).unwrap();
        assert!((matrix[1][0] - 1.0).abs() < 1e-12, "a quarter turn about z takes x to y: {matrix:?}");
    }

    #[test]
    fn too_long_is_no_rotation() {
        assert!(rotation([1.0 + 1e-7, 0.0, 0.0], Version::One).is_some());
        for version in [Version::One, Version::Two] {
            for bcd in [[1.001, 0.0, 0.0], [f64::NAN, 0.0, 0.0], [f64::INFINITY, 0.0, 0.0], [1e200; 3]] {
                assert_eq!(rotation(bcd, version), None, "{bcd:?}");
            }
        }
    }

    #[test]
    fn extensions_lead_to_the_data_or_are_refused() {
        let extension = |size: i32| [&size.to_le_bytes()[..], &[6, 0, 0, 0], &[b'x'; 8]].concat();
        let check =
            |flag: u8, rest: &[u8], order| check_extensions(&[&[flag, 0, 0, 0], rest].concat(), order);
        let two = [extension(16), extension(16)].concat();
        assert!(check(1, &two, ByteOrder::Little).is_ok());
        assert!(check(1, &two, ByteOrder::Big).is_err());
        assert!(check(0, &two, ByteOrder::Big).is_ok(), "no extensions are announced");
        assert!(check(1, &[0xff; 15], ByteOrder::Little).is_ok(), "too short for an extension");
        for bad in [0, 7, -16, 17, 33, i32::MAX, i32::MIN] {
            let message = check(1, &extension(bad), ByteOrder::Little).unwrap_err().to_string();
            assert!(message.contains(&format!("extension is {bad}")), "{message}");
        }
    }
}
