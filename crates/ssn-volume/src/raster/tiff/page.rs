//! What a directory says about its page, checked.

use super::super::exif::{ORIENTATION, check_orientation};
use super::super::{MAX_SIDE, check_sides, field, unsupported};
use super::chunk::Compression;
use super::directory::{Directory, Tiff};
use super::predictor::Predictor;
use crate::error::Problem;
use crate::voxels::VoxelType;

/// Tags, as TIFF 6.0 and its supplements number them.
mod tag {
    pub const SUBFILE_TYPE: u16 = 254;
    pub const WIDTH: u16 = 256;
    pub const HEIGHT: u16 = 257;
    pub const BITS: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const SAMPLES: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTES: u16 = 279;
    pub const PLANAR: u16 = 284;
    pub const PREDICTOR: u16 = 317;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_HEIGHT: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTES: u16 = 325;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
}

const AGAIN: &str = "export the picture again";
/// Samples of a pixel: three colours and opacity.
const MOST_SAMPLES: u64 = 4;

/// What has to be the same on all pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub height: usize,
    pub width: usize,
    /// 1 for grey and palettes, 3 for RGB.
    pub channels: usize,
    /// Whether the opacity follows the channels.
    pub alpha: bool,
    /// The type of the samples; half precision is stored in the bits of `u16`.
    pub sample: VoxelType,
    pub half: bool,
    photometric: u64,
}

/// Where the data of a page lie and how they are stored.
pub struct Page {
    pub kind: Kind,
    pub compression: Compression,
    pub predictor: Predictor,
    /// Each channel in chunks of its own.
    pub planar: bool,
    /// Width and height of a strip or tile.
    pub chunk: [usize; 2],
    pub tiled: bool,
    /// Start and length of every strip or tile.
    pub places: Vec<[u64; 2]>,
}

impl Page {
    /// Reads the page of a directory.
    pub fn new(tiff: &Tiff<'_>, directory: &Directory) -> Result<Self, Problem> {
        let number = |tag| directory.number(tiff, tag);
        let required = |tag, name| {
            number(tag)?.ok_or_else(|| field("a directory", format!("without {name}"), "one with it", AGAIN))
        };
        if number(tag::SUBFILE_TYPE)?.unwrap_or(0) & 0b101 != 0 {
            return Err(unsupported("a TIFF with previews or masks among its pages", "save its pages alone"));
        }
        check_orientation(number(ORIENTATION)?.unwrap_or(1))?;
        if number(tag::FILL_ORDER)?.unwrap_or(1) != 1 {
            return Err(unsupported("a TIFF with reversed bits (FillOrder 2)", AGAIN));
        }
        let kind = kind(tiff, directory, required(tag::WIDTH, "width")?, required(tag::HEIGHT, "height")?)?;
        let compression = Compression::new(number(tag::COMPRESSION)?.unwrap_or(1))?;
        let predictor = Predictor::new(number(tag::PREDICTOR)?.unwrap_or(1), &kind)?;
        let planar = match number(tag::PLANAR)?.unwrap_or(1) {
            1 => false,
            2 => kind.channels > 1 || kind.alpha,
            other => return Err(field("PlanarConfiguration", other, "1 or 2", AGAIN)),
        };
        let tiled = directory.has(tag::TILE_OFFSETS) || directory.has(tag::TILE_WIDTH);
        let (chunk, offsets, lengths) = if tiled {
            let (width, height) =
                (required(tag::TILE_WIDTH, "TileWidth")?, required(tag::TILE_HEIGHT, "TileLength")?);
            let [height, width] = check_sides(width, height)?;
            ([width, height], tag::TILE_OFFSETS, tag::TILE_BYTES)
        } else {
            let rows = match number(tag::ROWS_PER_STRIP)?.unwrap_or(MAX_SIDE) {
                0 => return Err(field("RowsPerStrip", 0, "at least 1", AGAIN)),
                rows => rows.min(kind.height as u64) as usize,
            };
            ([kind.width, rows], tag::STRIP_OFFSETS, tag::STRIP_BYTES)
        };
        let planes = if planar { kind.channels + usize::from(kind.alpha) } else { 1 };
        let count = (kind.width.div_ceil(chunk[0]) * kind.height.div_ceil(chunk[1]) * planes) as u64;
        let places = places(tiff, directory, [offsets, lengths], count)?;
        Ok(Self { kind, compression, predictor, planar, chunk, tiled, places })
    }

    /// Samples side by side in a strip or tile.
    pub fn samples(&self) -> usize {
        if self.planar { 1 } else { self.kind.channels + usize::from(self.kind.alpha) }
    }

    /// Bytes of a row of a strip or tile.
    pub fn row_bytes(&self) -> usize {
        self.chunk[0] * self.samples() * self.kind.sample.bytes()
    }
}

/// Size, channels and type of the samples.
fn kind(tiff: &Tiff<'_>, directory: &Directory, width: u64, height: u64) -> Result<Kind, Problem> {
    let [height, width] = check_sides(width, height)?;
    let samples = directory.number(tiff, tag::SAMPLES)?.unwrap_or(1);
    let photometric = directory.number(tiff, tag::PHOTOMETRIC)?;
    let channels = match photometric {
        Some(1 | 3) => 1,
        Some(2) => 3,
        Some(0) => {
            return Err(unsupported(
                "a TIFF in which 0 is white",
                "programs disagree on whether to invert it: save it with black as 0",
            ));
        }
        other => {
            let found = other.map_or("missing".into(), |n| n.to_string());
            let allowed = "1 (grey), 2 (RGB) or 3 (palette)";
            return Err(field(
                "PhotometricInterpretation",
                found,
                allowed,
                "save the picture as grey or RGB",
            ));
        }
    };
    let extra = directory.numbers(tiff, tag::EXTRA_SAMPLES, MOST_SAMPLES)?.unwrap_or_default();
    let alpha = match (samples.checked_sub(channels), &extra[..]) {
        (Some(0), []) => false,
        (Some(1), [1 | 2]) => true,
        _ => {
            let found = format!("{samples} with ExtraSamples {extra:?}");
            let allowed = "one for grey or three for RGB, and at most one more for opacity";
            return Err(field("SamplesPerPixel", found, allowed, "save the channels as files of their own"));
        }
    };
    let same = |tag, name, default| {
        let numbers = directory.numbers(tiff, tag, MOST_SAMPLES)?.unwrap_or(vec![default]);
        // One number for all samples is against the letter of the specification, but common and clear.
        let complete = numbers.len() as u64 == samples || numbers.len() == 1;
        if complete && numbers.iter().all(|&n| n == numbers[0]) {
            return Ok(numbers[0]);
        }
        Err(field(name, format!("{numbers:?}"), "the same for all samples", AGAIN))
    };
    let bits = same(tag::BITS, "BitsPerSample", 1)?;
    let format = same(tag::SAMPLE_FORMAT, "SampleFormat", 1)?;
    let (sample, half) = sample_type(bits, format)?;
    if !matches!(sample, VoxelType::U8 | VoxelType::U16) && (channels == 3 || alpha) || half && channels == 3
    {
        let found = format!("{bits} bits of format {format} with several samples per pixel");
        return Err(field("BitsPerSample", found, "8 or 16 bit for colours", "save it as 16 bit"));
    }
    if photometric == Some(3) && (half || !matches!(sample, VoxelType::U8 | VoxelType::U16) || alpha) {
        return Err(field("BitsPerSample", bits, "8 or 16 bit for a palette", "save it as grey"));
    }
    let photometric = photometric.unwrap_or_default();
    Ok(Kind { height, width, channels: channels as usize, alpha, sample, half, photometric })
}

fn sample_type(bits: u64, format: u64) -> Result<(VoxelType, bool), Problem> {
    let kind = match (format, bits) {
        (1, 8) => VoxelType::U8,
        (1, 16) => VoxelType::U16,
        (1, 32) => VoxelType::U32,
        (1, 64) => VoxelType::U64,
        (2, 8) => VoxelType::I8,
        (2, 16) => VoxelType::I16,
        (2, 32) => VoxelType::I32,
        (2, 64) => VoxelType::I64,
        (3, 16) => return Ok((VoxelType::U16, true)),
        (3, 32) => VoxelType::F32,
        (3, 64) => VoxelType::F64,
        _ => {
            return Err(field(
                "BitsPerSample and SampleFormat",
                format!("{bits} and {format}"),
                "8, 16, 32 or 64 bit of whole numbers, or 16, 32 or 64 bit of floating-point numbers",
                "save the picture with 8 or 16 bit",
            ));
        }
    };
    Ok((kind, false))
}

/// Start and length of every chunk; each has at least one byte, and all lie in the file.
fn places(
    tiff: &Tiff<'_>,
    directory: &Directory,
    [offsets, lengths]: [u16; 2],
    count: u64,
) -> Result<Vec<[u64; 2]>, Problem> {
    let read = |tag| {
        let numbers = directory.numbers(tiff, tag, count)?.unwrap_or_default();
        if numbers.len() as u64 == count {
            return Ok(numbers);
        }
        let found = format!("{} in tag {tag}", numbers.len());
        Err(field("the number of strips or tiles", found, "what the size of the picture asks for", AGAIN))
    };
    let file = tiff.bytes.len() as u64;
    let check = |(start, length): (u64, u64)| {
        if length == 0 {
            return Err(field("the length of a strip or tile", 0, "at least one byte", AGAIN));
        }
        match start.checked_add(length) {
            Some(end) if end <= file => Ok([start, length]),
            end => Err(Problem::Truncated {
                part: "a strip or tile of the TIFF file",
                needed: end.unwrap_or(u64::MAX),
                found: file,
            }),
        }
    };
    read(offsets)?.into_iter().zip(read(lengths)?).map(check).collect()
}
