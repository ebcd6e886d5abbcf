//! NRRD, the nearly raw raster data of Teem, 3D Slicer and ITK: versions 1 to 5, inline or with a detached header.
//!
//! Read are raw and gzip data of all integer and floating types, with 2 or 3 axes in space and at most one axis of
//! channels, first or last. Geometry comes from `space directions` in the spaces LPS, RAS and LAS. A file without a
//! space has its axes along those of LPS, as ITK reads it; `spacings` give the distances. `old min`, `old max`,
//! `measurement frame`, `thicknesses` and key/value pairs do not change what is read.
//!
//! The format: <https://teem.sourceforge.net/nrrd/format.html>. This module opens no files: a caller that meets a
//! detached header opens the file that [`Header::data_file`] names.

use std::io::Read;

use flate2::read::GzEncoder;

pub use crate::formats::text_header::Header;
use crate::formats::text_header::{
    EXPORT_AGAIN, Field, Fields, Packing, Skip, Spelled, TypeNames, bytes_of, checked_geometry, for_file,
    line_shown, missing, normal, type_name,
};
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::problem::{Problem, refused};
use crate::volume::{ByteOrder, Image, VoxelType};

/// Every spelling of every field; the format does not distinguish upper and lower case.
#[rustfmt::skip]
const FIELDS: [&[&str]; 30] = [
    &["axis maxs", "axismaxs"], &["axis mins", "axismins"], &["block size", "blocksize"],
    &["byte skip", "byteskip"], &["centers", "centerings"], &["content"], &["data file", "datafile"],
    &["dimension"], &["encoding"], &["endian"], &["kinds"], &["labels"], &["line skip", "lineskip"],
    &["max"], &["measurement frame", "measurementframe"], &["min"], &["number"], &["old max", "oldmax"],
    &["old min", "oldmin"], &["sample units", "sampleunits"], &["sizes"], &["space"],
    &["space dimension", "spacedimension"], &["space directions", "spacedirections"],
    &["space origin", "spaceorigin"], &["space units", "spaceunits"], &["spacings"], &["thicknesses"],
    &["type"], &["units"],
];
const NEEDED: &str = "given in every header";

/// Every spelling that the format defines, the one that Teem writes first. Plain `char` is not among them: its sign
/// differs between machines.
#[rustfmt::skip]
const TYPES: TypeNames = [
    (VoxelType::I8, &["signed char", "int8", "int8_t"]),
    (VoxelType::U8, &["unsigned char", "uchar", "uint8", "uint8_t"]),
    (VoxelType::I16, &["short", "short int", "signed short", "signed short int", "int16", "int16_t"]),
    (VoxelType::U16, &["unsigned short", "ushort", "unsigned short int", "uint16", "uint16_t"]),
    (VoxelType::I32, &["int", "signed int", "int32", "int32_t"]),
    (VoxelType::U32, &["unsigned int", "uint", "uint32", "uint32_t"]),
    (VoxelType::I64, &["long long int", "longlong", "long long", "signed long long", "signed long long int",
                       "int64", "int64_t"]),
    (VoxelType::U64, &["unsigned long long int", "ulonglong", "unsigned long long", "uint64", "uint64_t"]),
    (VoxelType::F32, &["float"]), (VoxelType::F64, &["double"]),
];

/// Kinds of axes: whether such an axis lies in space or holds channels, if the kind says so, and the size it must have.
///
/// Complex numbers, quaternions, matrices and colors other than RGB are left out: their components are not
/// measurements side by side.
const KINDS: [Spelled<(Option<bool>, Option<usize>)>; 7] = [
    ((Some(true), None), &["domain", "space"]),
    ((None, None), &["none", "???"]),
    ((Some(false), None), &["list", "time", "vector", "point", "covariant-vector", "normal"]),
    ((Some(false), Some(1)), &["stub", "scalar"]),
    ((Some(false), Some(2)), &["2-vector"]),
    ((Some(false), Some(3)), &["3-color", "RGB-color", "3-vector", "3-gradient", "3-normal"]),
    ((Some(false), Some(4)), &["4-color", "RGBA-color", "4-vector"]),
];

/// The spaces whose axes are known in the patient, with the signs that turn their vectors into those of RAS.
const SPACES: [Spelled<&[f64]>; 3] = [
    (&[-1.0, -1.0, 1.0], &["left-posterior-superior", "LPS"]),
    (&[1.0, 1.0, 1.0], &["right-anterior-superior", "RAS"]),
    (&[-1.0, 1.0, 1.0], &["left-anterior-superior", "LAS"]),
];
/// Two axes without names, as ITK writes for 2D images; they are taken for the first two of LPS.
const PLANE: &[f64] = &[-1.0, -1.0];

/// The image of a file that holds header and data.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    parse_header(bytes, limits)?.image_in(bytes, limits)
}

/// The header of a file, inline or detached; [`Header::data_file`] says which.
pub fn parse_header(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    let fields = split(bytes, limits)?;
    let kind = fields.needed("type", NEEDED)?;
    let allowed = "an integer type of 8, 16, 32 or 64 bits such as uint8 or short, or float or double";
    let refuse = || kind.refused(allowed, "store the image as one of these");
    let kind = kind.among(&TYPES, str::eq_ignore_ascii_case).ok_or_else(refuse)?;
    let axes = Axes::parse(&fields)?;
    let (shape, interleaved) = axes.shape()?;
    let geometry = axes.geometry(&fields)?;
    axes.check_units(&fields)?;
    let packing = packing(&fields)?;
    let order = byte_order(&fields, kind)?;
    bytes_of(shape, kind, limits)?;
    let data_file = fields.get("data file").map(Field::file_name).transpose()?;
    let skip = skip(&fields, packing)?;
    Ok(Header { kind, order, shape, interleaved, geometry, packing, skip, data_file, end: fields.end })
}

/// Splits a header into its fields. It ends after the empty line, or with the bytes where there is none.
fn split<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Fields<'a>, Problem> {
    let mut fields = Fields::new(&FIELDS, bytes);
    let magic = fields.next_line(limits)?;
    if !matches!(magic.strip_prefix(b"NRRD000"), Some([b'1'..=b'5'])) {
        let text = &String::from_utf8_lossy(&magic[..magic.len().min(16)]);
        let first = Field { name: "the first line", text };
        return Err(first.refused("one of NRRD0001 to NRRD0005", "is this a NRRD file?"));
    }
    loop {
        let line = fields.next_line(limits)?;
        let refuse = || {
            let allowed = "`field: text` with a field of the format, `key:=value`, or a comment after `#`";
            refused("a line of the header", line_shown(line), allowed, EXPORT_AGAIN)
        };
        let find = |separator: &[u8; 2]| line.windows(2).position(|pair| pair == separator);
        let known = || find(b": ").and_then(|at| Some((fields.known(&line[..at])?.0, &line[at + 2..])));
        if line.is_empty() {
            return Ok(fields);
        } else if line.starts_with(b"#") {
            continue;
        } else if let Some((name, text)) = known() {
            let text = std::str::from_utf8(text).map_err(|_| refuse())?.trim();
            if name == "data file" {
                // After `LIST` come lines that are no fields: refuse here, with the right reason.
                Field { name, text }.file_name()?;
            }
            fields.set(name, text, line)?;
        } else if let Some(at) = find(b":=") {
            fields.pairs.push((&line[..at], &line[at + 2..]));
        } else {
            return Err(refuse());
        }
    }
}

/// The lines `key:=value` of a header, which say nothing about how its image is stored.
pub fn key_values(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, String)>, Problem> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // A line break is written as \n, and a backslash twice.
    let plain = |value: &[u8]| {
        let parts = text(value);
        let parts: Vec<String> = parts.split("\\\\").map(|part| part.replace("\\n", "\n")).collect();
        parts.join("\\")
    };
    Ok(split(bytes, limits)?.pairs.into_iter().map(|(key, value)| (text(key), plain(value))).collect())
}

/// One vector in RAS for each axis of the file; nothing for `none`.
type Vectors = Vec<Option<[f64; 3]>>;

/// The axes of the file, fastest first.
struct Axes {
    sizes: Vec<usize>,
    /// Whether an axis lies in space; another holds channels.
    in_space: Vec<bool>,
    /// The signs of the space in which the header gives its vectors, one for each axis; nothing where there is no space.
    signs: Option<&'static [f64]>,
    /// The vectors of `space directions`, where there are any.
    directions: Option<Vectors>,
}

impl Axes {
    fn parse(fields: &Fields<'_>) -> Result<Self, Problem> {
        let (field, allowed) = (fields.needed("dimension", NEEDED)?, "2, 3 or 4");
        let dimension = field.number(allowed)?;
        if !(2..=4).contains(&dimension) {
            return Err(field.refused(allowed, "store each part of the image in a file of its own"));
        }
        let signs = space(fields)?;
        let directions =
            fields.get("space directions").map(|x| directions(x, signs, dimension)).transpose()?;
        let sizes = fields.needed("sizes", NEEDED)?.numbers(dimension, "one whole number for each axis")?;
        let mut axes = Self { sizes, in_space: vec![], signs, directions };
        axes.in_space = axes.in_space(fields.get("kinds"))?;
        Ok(axes)
    }

    /// Whether each axis lies in space, as its kind says. An axis of which the kinds say nothing lies in space unless
    /// `space directions` have `none` for it.
    fn in_space(&self, kinds: Option<Field<'_>>) -> Result<Vec<bool>, Problem> {
        let axes = 0..self.sizes.len();
        let directed = |axis: usize| self.directions.as_ref().map(|vectors| vectors[axis].is_some());
        let mut said = vec![None; axes.len()];
        if let Some(kinds) = kinds {
            for (axis, text) in kinds.words(axes.len(), "one word for each axis")?.into_iter().enumerate() {
                said[axis] = lies_in_space(Field { text, ..kinds }, self.sizes[axis])?;
            }
            if axes.clone().any(|axis| said[axis].zip(directed(axis)).is_some_and(|(a, b)| a != b)) {
                let allowed = "such that axes in space, and no others, have a vector in space directions";
                return Err(kinds.refused(allowed, EXPORT_AGAIN));
            }
        }
        Ok(axes.map(|axis| said[axis].or(directed(axis)).unwrap_or(true)).collect())
    }

    /// `[c, d, h, w]`, and whether the axis of the channels is the first.
    fn shape(&self) -> Result<([usize; 4], bool), Problem> {
        let (c, space, interleaved) = match (&self.in_space[..], &self.sizes[..]) {
            ([false, rest @ ..], [c, space @ ..]) if !rest.contains(&false) => (*c, space, true),
            ([rest @ .., false], [space @ .., c]) if !rest.contains(&false) => (*c, space, false),
            (all, space) if !all.contains(&false) => (1, space, false),
            _ => (0, &[][..], false),
        };
        match *space {
            [w, h] => Ok(([c, 1, h, w], interleaved)),
            [w, h, d] => Ok(([c, d, h, w], interleaved)),
            _ => {
                let spatial = self.in_space.iter().filter(|&&x| x).count();
                let found = format!("{} axes of which {spatial} lie in space", self.sizes.len());
                let allowed =
                    "2 or 3 axes in space, and at most one other, which must be the first or the last";
                let advice = "name the axis of the channels by a kind such as list or vector";
                Err(refused("kinds", found, allowed, advice))
            }
        }
    }

    fn geometry(&self, fields: &Fields<'_>) -> Result<Geometry, Problem> {
        for name in ["axis mins", "axis maxs"] {
            let unsaid = |text: &str| text.split_whitespace().all(|word| word.eq_ignore_ascii_case("nan"));
            let allowed = "absent: places are read from space directions and space origin";
            fields.check(name, unsaid, (allowed, "export the image with a space"))?;
        }
        let geometry = match self.signs {
            None => self.spaced(fields)?,
            Some(signs) if self.directions.is_some() => self.directed(signs, fields)?,
            Some(_) => return Err(missing("space directions", "given where a space is", EXPORT_AGAIN)),
        };
        checked_geometry(geometry, ["the spacing", "space origin", "space directions"])
    }

    /// The geometry from directions in a space.
    fn directed(&self, signs: &[f64], fields: &Fields<'_>) -> Result<Geometry, Problem> {
        if let Some(field) = fields.get("spacings")
            && self.spacings(field)?.iter().any(|spacing| !spacing.is_nan())
        {
            let allowed = "nan for axes with a vector in space directions";
            return Err(field.refused(allowed, "remove the line: the vectors hold the spacing"));
        }
        let origin =
            fields.get("space origin").map_or(Ok([0.0; 3]), |field| match vector(field, signs)? {
                (origin, after) if after.trim().is_empty() => Ok(origin),
                _ => Err(field.refused("one vector", EXPORT_AGAIN)),
            })?;
        let refuse =
            |text: &str, allowed| Field { name: "space directions", text }.refused(allowed, EXPORT_AGAIN);
        let vectors: Vec<[f64; 3]> = self.directions.iter().flatten().flatten().copied().collect();
        let [i, j, k] = match (vectors.as_slice(), signs.len()) {
            (&[i, j, k], 3) => [i, j, k],
            // A slice in space has the direction through it at right angles to it.
            (&[i, j], 3) => {
                let flat = || refuse("flat", "vectors that point in different directions");
                [i, j, normal(i, j).ok_or_else(flat)?]
            }
            (&[i, j], 2) => [i, j, [0.0, 0.0, 1.0]],
            (vectors, axes) => {
                let found = format!("{} vectors in a space of {axes} axes", vectors.len());
                return Err(refuse(&found, "2 or 3 vectors, no more than axes"));
            }
        };
        let affine = [0, 1, 2].map(|row| [i[row], j[row], k[row], origin[row]]);
        let none = || refuse("of no finite length", "vectors of a positive length");
        Geometry::from_affine(affine).ok_or_else(none)
    }

    /// The geometry from distances alone: along the axes of LPS, as ITK takes it.
    fn spaced(&self, fields: &Fields<'_>) -> Result<Geometry, Problem> {
        let rule = ("absent where no space is given", "add space and space directions");
        fields.check("space origin", |_| false, rule)?;
        let mut geometry = Geometry::default();
        if let Some(field) = fields.get("spacings") {
            geometry.spacing.iter_mut().zip(self.spacings(field)?).for_each(|(x, found)| *x = found);
        }
        (0..2).for_each(|row| geometry.direction[row][row] = -1.0);
        Ok(geometry)
    }

    /// The numbers of `spacings` for the axes in space.
    fn spacings(&self, field: Field<'_>) -> Result<Vec<f64>, Problem> {
        let all = field.numbers(self.sizes.len(), "one number or nan for each axis")?;
        let spatial = all.into_iter().zip(&self.in_space).filter(|(_, in_space)| **in_space);
        Ok(spatial.map(|(spacing, _)| spacing).collect())
    }

    /// Refuses lengths in other units than millimeters: `units` of the axes in space, and `space units`.
    fn check_units(&self, fields: &Fields<'_>) -> Result<(), Problem> {
        // An empty unit, and `???` of early versions, say nothing; the world is then in millimeters as everywhere.
        let names = ["", "???", "mm", "millimeter", "millimeters", "millimetre", "millimetres"];
        let is_millimeter = |unit: &str| names.iter().any(|name| unit.trim().eq_ignore_ascii_case(name));
        // Units are the texts between pairs of quotation marks.
        let good =
            |text: &str| -> Vec<bool> { text.split('"').skip(1).step_by(2).map(is_millimeter).collect() };
        let right = |text: &str| {
            let (units, fits) = (good(text), |(good, in_space): (&bool, &bool)| *good || !in_space);
            units.len() == self.in_space.len() && units.iter().zip(&self.in_space).all(fits)
        };
        let rule = ("\"mm\" or \"\" for every axis in space", "export the image in millimeters");
        fields.check("units", right, rule)?;
        fields.check("space units", |text| !good(text).contains(&false), rule)
    }
}

/// Whether an axis of a kind lies in space or holds channels; nothing where the kind does not say.
fn lies_in_space(kind: Field<'_>, size: usize) -> Result<Option<bool>, Problem> {
    match kind.among(&KINDS, str::eq_ignore_ascii_case) {
        Some((_, Some(fixed))) if fixed != size => {
            let found = format!("{size} on an axis of kind {}", kind.text);
            Err(refused("sizes", found, "the number of components of that kind", EXPORT_AGAIN))
        }
        Some((in_space, _)) => Ok(in_space),
        None => Err(kind.refused(
            "domain or space for axes in space, and list, time, vector or RGB-color and the like for channels",
            "store the image with channels of real numbers",
        )),
    }
}

/// The signs of the space that a header names, if any.
fn space(fields: &Fields<'_>) -> Result<Option<&'static [f64]>, Problem> {
    if let Some(space) = fields.get("space") {
        fields.check("space dimension", |_| false, ("absent where space is given", "remove one of them"))?;
        let allowed =
            "left-posterior-superior, right-anterior-superior, left-anterior-superior or their initials";
        let advice = "other spaces do not say how the image lies in the patient: export it in one of these";
        let signs = space.among(&SPACES, str::eq_ignore_ascii_case);
        return signs.map(Some).ok_or_else(|| space.refused(allowed, advice));
    }
    let Some(plane) = fields.get("space dimension") else { return Ok(None) };
    if plane.number::<u32>("a whole number")? == 2 {
        return Ok(Some(PLANE));
    }
    let allowed = "2; an image in three dimensions needs the field space instead";
    Err(plane.refused(allowed, "name the space, such as left-posterior-superior"))
}

fn directions(field: Field<'_>, signs: Option<&[f64]>, dimension: usize) -> Result<Vectors, Problem> {
    let signs = signs.ok_or_else(|| missing("space", "given where space directions are", EXPORT_AGAIN))?;
    let mut vectors = vec![];
    let mut rest = field.text.trim_start();
    while !rest.is_empty() && vectors.len() <= dimension {
        let (vector, after) = match rest.strip_prefix("none") {
            Some(after) => (None, after),
            None => vector(Field { text: rest, ..field }, signs).map(|(x, after)| (Some(x), after))?,
        };
        vectors.push(vector);
        rest = after.trim_start();
    }
    if vectors.len() == dimension {
        return Ok(vectors);
    }
    Err(field.refused("one vector or `none` for each axis", EXPORT_AGAIN))
}

/// The vector in RAS at the start of a text such as `(1,0,0)`, and the text after it.
fn vector<'a>(field: Field<'a>, signs: &[f64]) -> Result<([f64; 3], &'a str), Problem> {
    let parse = || {
        let (inside, after) = field.text.strip_prefix('(')?.split_once(')')?;
        let mut words = inside.split(',');
        let mut vector = [0.0; 3];
        for (x, sign) in vector.iter_mut().zip(signs) {
            // Adding zero turns -0 into 0.
            *x = words.next()?.trim().parse::<f64>().ok()? * sign + 0.0;
        }
        words.next().is_none().then_some((vector, after))
    };
    let allowed = "vectors such as (1,0,0) with one number for each axis of the space";
    parse().ok_or_else(|| field.refused(allowed, EXPORT_AGAIN))
}

fn packing(fields: &Fields<'_>) -> Result<Packing, Problem> {
    let (allowed, advice) = ("raw or gzip", "store the image with one of these encodings");
    let field = fields.get("encoding").ok_or_else(|| missing("encoding", allowed, advice))?;
    let encodings = [(Packing::Raw, &["raw"][..]), (Packing::Gzip, &["gzip", "gz"])];
    field.among(&encodings, str::eq_ignore_ascii_case).ok_or_else(|| field.refused(allowed, advice))
}

/// The order of bytes; needed only where a value has several.
fn byte_order(fields: &Fields<'_>, kind: VoxelType) -> Result<ByteOrder, Problem> {
    let allowed = "little or big, for values of several bytes";
    let advice = "add the line, if you know on which machine the file was made";
    match fields.get("endian") {
        Some(field) if field.text.eq_ignore_ascii_case("little") => Ok(ByteOrder::Little),
        Some(field) if field.text.eq_ignore_ascii_case("big") => Ok(ByteOrder::Big),
        Some(field) => Err(field.refused(allowed, EXPORT_AGAIN)),
        None if kind.bytes() == 1 => Ok(ByteOrder::Little),
        None => Err(missing("endian", allowed, advice)),
    }
}

/// Where the data starts: lines are skipped before the data is expanded, bytes after.
fn skip(fields: &Fields<'_>, packing: Packing) -> Result<Skip, Problem> {
    let lines = fields.get("line skip").map_or(Ok(0), |x| x.number("a whole number, zero or more"))?;
    let allowed = "a whole number, zero or more, or -1 for raw data at the end of the file";
    let end = packing == Packing::Raw && lines == 0;
    let bytes = fields.get("byte skip").map_or(Ok(Some(0)), |field| field.skipped(end, allowed))?;
    Ok(bytes.map_or(Skip::ToTheEnd, |expanded| Skip::Start { lines, stored: 0, expanded }))
}

/// The bytes of a file with raw data.
///
/// Several channels are written interleaved as an axis of kind vector. An image with a slope or an intercept is
/// written as its scaled values in double precision, since the format has no field for them.
pub fn encode(image: &Image) -> Vec<u8> {
    let (kind, data) = for_file(image);
    [header_text(image, kind, "raw", "").into_bytes(), data].concat()
}

/// The bytes of a file with gzip data; otherwise like [`encode`].
pub fn encode_gzip(image: &Image) -> Result<Vec<u8>, Problem> {
    encode_gzip_with(image, "")
}

/// The same with lines `key:=value` in the header.
pub(crate) fn encode_gzip_with(image: &Image, pairs: &str) -> Result<Vec<u8>, Problem> {
    let (kind, data) = for_file(image);
    let mut bytes = header_text(image, kind, "gzip", pairs).into_bytes();
    GzEncoder::new(&data[..], flate2::Compression::default()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A header in the space left-posterior-superior, as ITK and 3D Slicer write it.
fn header_text(image: &Image, kind: VoxelType, encoding: &str, pairs: &str) -> String {
    let [c, d, h, w] = image.shape;
    let (dimension, sizes, none, vector) = match c {
        1 => (3, format!("{w} {h} {d}"), "", ""),
        _ => (4, format!("{c} {w} {h} {d}"), "none ", "vector "),
    };
    let affine = image.geometry.with_x_and_y_flipped().affine();
    let [i, j, k, origin] = [0, 1, 2, 3].map(|axis| {
        // Debug formatting of a number is its shortest text that reads back as the same number.
        let [x, y, z] = affine.map(|row| row[axis] + 0.0);
        format!("({x:?},{y:?},{z:?})")
    });
    format!(
        "NRRD0004\ntype: {}\ndimension: {dimension}\nspace: left-posterior-superior\nsizes: {sizes}\n\
         space directions: {none}{i} {j} {k}\nkinds: {vector}domain domain domain\nendian: little\n\
         encoding: {encoding}\nspace origin: {origin}\n{pairs}\n",
        type_name(&TYPES, kind)
    )
}
