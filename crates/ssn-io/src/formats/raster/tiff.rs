//! TIFF, whose pages are the depth.

use std::cmp::Ordering;
use std::io::{self, Cursor, Seek, Write};

use flate2::bufread::ZlibDecoder;
use half::f16;
use tiff::decoder::{ChunkType, Decoder, DecodingSampleType as Sample, Limits as DecoderLimits};
use tiff::encoder::{TiffEncoder, TiffKind, colortype};
use tiff::tags::{Tag, Type, ValueBuffer};
use tiff::{ColorType, TiffError};

use super::{check_claim, check_orientation, check_plain, interleave, planes, unpack, unsupported};
use crate::geometry::Geometry;
use crate::limits::{Limits, check_left, memory_of};
use crate::problem::{Problem, catch_panic, refused};
use crate::volume::{ByteOrder, Image, VoxelType, Voxels};

/// Neither LZW (4095 bytes from 12 bits) nor PackBits expand by more than this.
const MOST_EXPANSION: u64 = 4096;
/// From this size on the offsets need BigTIFF; the margin is for the directories.
const LARGE: usize = u32::MAX as usize - (1 << 24);
const AGAIN: &str = "export the picture again";

/// Values of the tag `PhotometricInterpretation`.
const WHITE_IS_ZERO: u32 = 0;
const PALETTE: u32 = 3;

type Reader<'a> = Decoder<Cursor<&'a [u8]>>;

/// Reads a TIFF or BigTIFF file in either byte order: its pages are the depth, `[c, d, h, w]`.
///
/// Gray of 8 to 64 bit whole or floating-point numbers (half precision is widened to single, which is exact), gray of
/// 1, 2 or 4 bit, and RGB of 8 or 16 bit, without compression or with LZW, deflate or PackBits. Samples keep their stored
/// values; of one bit, white is 1 whichever value stands for it.
/// Opacity is dropped where all pixels are opaque. All pages must have the same size and type. Of LZW and
/// PackBits, which have no checksums, it is only known that there are enough data.
pub fn parse_tiff(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    catch_panic("the TIFF file", || read(bytes, limits, false))
}

/// Reads a TIFF file as a label map: like [`parse_tiff`], but opacity is one more channel where not all pixels are
/// opaque, for masks that are drawn with it.
pub fn parse_tiff_labels(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    match parse_tiff(bytes, limits) {
        Err(Problem::Unsupported { .. }) => catch_panic("the TIFF file", || read(bytes, limits, true)),
        other => other,
    }
}

fn read(bytes: &[u8], limits: &Limits, keep_opacity: bool) -> Result<Image, Problem> {
    // The pictures are bounded here, and lists in directories by the default.
    let mut decoder_limits = DecoderLimits::default();
    decoder_limits.intermediate_buffer_size = usize::MAX;
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(failed)?.with_limits(decoder_limits);
    let page = Page::new(&mut decoder, keep_opacity)?;
    let mut text = ValueBuffer::empty(Type::ASCII);
    decoder.image_ifd().find_tag_buf(Tag::ImageDescription, &mut text).map_err(failed)?;
    let (mut depth, mut used) = (1, 0u64);
    loop {
        limits.check_values(&page.shape(depth))?;
        used = used.saturating_add(check_data(&mut decoder, &page, bytes)?);
        if used > bytes.len() as u64 {
            let found = "more bytes than the file has, so some are shared";
            return Err(refused("the data of all pages", found, "each in a place of its own", AGAIN));
        }
        if !decoder.more_images() {
            break;
        }
        decoder.next_image().map_err(failed)?;
        depth += 1;
        let next = Page::new(&mut decoder, keep_opacity)?;
        if next != page {
            let show = |page: &Page| format!("{:?} of {:?}", page.shape(1), page.kind);
            let found = format!("{} (page {depth}, while the first is {})", show(&next), show(&page));
            let advice = "save the pages that belong together as a file of their own";
            return Err(refused("a page", found, "of the size and type of the first", advice));
        }
    }
    let shape @ [channels, _, h, w] = page.shape(depth);
    check_stack(&String::from_utf8_lossy(text.as_bytes()), depth, channels)?;
    let length = h * page.row_bytes(w);
    check_left(memory_of((depth * h * w * page.samples) as u64, page.kind.bytes()))?;
    let mut pixels = vec![0; depth * length];
    for (d, pixels) in pixels.chunks_exact_mut(length).enumerate() {
        decoder.seek_to_image(d).map_err(failed)?;
        decoder.read_image_bytes(pixels).map_err(failed)?;
        if decoder.image_buffer_layout().map_err(failed)?.planes > 1 {
            let together = match page.bits {
                8 => interleave(pixels, page.samples),
                _ => interleave(pixels.as_chunks::<2>().0, page.samples).into_flattened(),
            };
            pixels.copy_from_slice(&together);
        }
    }
    if page.bits < 8 {
        pixels = unpack(&pixels, page.bits, w);
    }
    let values = planes(pixels, channels, page.samples, page.bits.div_ceil(8))?;
    let voxels = match (page.kind, page.bits) {
        (VoxelType::U8, _) => Voxels::U8(values),
        (VoxelType::F32, 16) => {
            Voxels::F32(values.as_chunks().0.iter().map(|&half| f16::from_le_bytes(half).to_f32()).collect())
        }
        // The decoder gives values in the order of the machine.
        (kind, _) => Voxels::from_bytes(kind, &values, ByteOrder::Little),
    };
    Image::new(voxels, shape, Geometry::default(), limits)
}

/// What has to be the same on all pages.
#[derive(PartialEq)]
struct Page {
    width: usize,
    height: usize,
    /// Samples of a pixel: one or three channels, and possibly the opacity.
    samples: usize,
    /// Samples that are kept.
    channels: usize,
    /// Bits of a stored sample.
    bits: usize,
    /// The type in memory: half precision is widened.
    kind: VoxelType,
}

impl Page {
    /// The page at which the decoder is, if it is one that is read.
    fn new(decoder: &mut Reader<'_>, keep_opacity: bool) -> Result<Self, Problem> {
        let mut number = |tag, default| {
            decoder.find_tag_unsigned::<u32>(tag).map(|number| number.unwrap_or(default)).map_err(failed)
        };
        check_orientation(number(Tag::Orientation, 1)?)?;
        if number(Tag::FillOrder, 1)? != 1 {
            return Err(unsupported("a TIFF with reversed bits (FillOrder 2)", AGAIN));
        }
        check_compression(number(Tag::Compression, 1)?)?;
        let interpretation = number(Tag::PhotometricInterpretation, 1)?;
        if interpretation == PALETTE {
            return Err(unsupported("a TIFF with a palette", "save it as PNG, or in gray or RGB"));
        }
        let (samples, predictor) = (number(Tag::SamplesPerPixel, 1)? as usize, number(Tag::Predictor, 1)?);
        let alpha = matches!(number(Tag::ExtraSamples, 0)?, 1 | 2);
        let color = decoder.colortype().map_err(failed)?;
        // Of one bit, the decoder makes white 1.
        if interpretation == WHITE_IS_ZERO && color.bit_depth() > 1 {
            let advice = "programs disagree on whether to invert it: save it with black as 0";
            return Err(unsupported("a TIFF in which 0 is white", advice));
        }
        let layout = decoder.image_buffer_layout().map_err(failed)?;
        let sample = layout.sample_type;
        let small = matches!((color.bit_depth(), sample), (8, Some(Sample::U8)) | (16, Some(Sample::U16)));
        let read = match (color, samples) {
            // The decoder would undo a predictor by bytes.
            (ColorType::Gray(1 | 2 | 4), 1) => sample == Some(Sample::U8) && predictor == 1,
            (ColorType::Gray(8 | 16 | 32 | 64), 1) => true,
            (ColorType::RGB(_), 3) => small,
            (ColorType::Multiband { .. }, 2) | (ColorType::RGBA(_), 4) => small && alpha,
            _ => false,
        };
        let (true, Some(sample)) = (read, sample) else {
            let found = format!("{color:?} with {samples} samples of {sample:?}");
            let allowed = "gray of 1 to 64 bit or RGB of 8 or 16, and at most one more sample for opacity";
            return Err(refused("the color of the picture", found, allowed, "save it as one of these"));
        };
        // The decoder of version 0.11 panics on the tiles of the second channel.
        if layout.planes > 1 && decoder.get_chunk_type() == ChunkType::Tile {
            return Err(unsupported("a TIFF with tiles for each channel", "save the channels together"));
        }
        let (width, height) = decoder.dimensions().map_err(failed)?;
        let bits = usize::from(color.bit_depth());
        let channels = if keep_opacity || samples % 2 == 1 { samples } else { samples - 1 };
        let [width, height] = [width, height].map(|side| side as usize);
        Ok(Self { width, height, samples, channels, bits, kind: kind(sample) })
    }

    /// Bytes of a stored row of a width.
    fn row_bytes(&self, width: usize) -> usize {
        (width * self.samples * self.bits).div_ceil(8)
    }

    /// The shape of so many pages.
    fn shape(&self, depth: usize) -> [usize; 4] {
        [self.channels, depth, self.height, self.width]
    }
}

/// Refuses compressions that the decoder does not read.
fn check_compression(method: u32) -> Result<(), Problem> {
    let name = match method {
        1 | 5 | 8 | 32773 | 32946 => return Ok(()),
        2..=4 => "fax",
        6 | 7 => "JPEG",
        33003..=33005 | 34712 => "JPEG 2000",
        50000 | 34926 => "Zstandard",
        other => &format!("number {other}"),
    };
    let advice = "save it as PNG, or as a TIFF without compression or with LZW or deflate";
    Err(unsupported(format!("{name} compression inside a TIFF"), advice))
}

/// The type of stored values in memory.
fn kind(sample: Sample) -> VoxelType {
    match sample {
        Sample::U8 => VoxelType::U8,
        Sample::U16 => VoxelType::U16,
        Sample::U32 => VoxelType::U32,
        Sample::U64 => VoxelType::U64,
        Sample::I8 => VoxelType::I8,
        Sample::I16 => VoxelType::I16,
        Sample::I32 => VoxelType::I32,
        Sample::I64 => VoxelType::I64,
        Sample::F16 | Sample::F32 => VoxelType::F32,
        Sample::F64 => VoxelType::F64,
    }
}

/// Checks the data of a page and returns their bytes in the file.
///
/// The decoder reads as much as the picture needs and does not look further. So lengths without compression are
/// compared, and deflated data are expanded once without keeping them: lengths and checksums must be right.
fn check_data(decoder: &mut Reader<'_>, page: &Page, bytes: &[u8]) -> Result<u64, Problem> {
    let part = "the data of a page of the TIFF file";
    let tiled = decoder.get_chunk_type() == ChunkType::Tile;
    let tags = match tiled {
        true => [Tag::TileOffsets, Tag::TileByteCounts],
        false => [Tag::StripOffsets, Tag::StripByteCounts],
    };
    let (width, height) = decoder.chunk_dimensions();
    let row = page.row_bytes(width as usize) as u64;
    let chunks = decoder.image_ifd().find_entry(tags[0]).map_or(0, |entry| entry.count());
    let mut list =
        |tag| decoder.find_tag_unsigned_vec::<u64>(tag).map(Option::unwrap_or_default).map_err(failed);
    let (starts, lengths) = (list(tags[0])?, list(tags[1])?);
    let needed = match tiled {
        // Tiles are padded to their size.
        true => row.saturating_mul(u64::from(height)).saturating_mul(chunks),
        false => (page.row_bytes(page.width) * page.height) as u64,
    };
    let stored = lengths.iter().fold(0, |sum: u64, &length| sum.saturating_add(length));
    let found = match decoder.find_tag_unsigned::<u16>(Tag::Compression).map_err(failed)? {
        None | Some(1) => stored,
        Some(8 | 32946) => {
            let mut found = 0;
            for (start, length) in starts.into_iter().zip(lengths) {
                let data = bytes.get(start as usize..).unwrap_or_default();
                let mut data = ZlibDecoder::new(&data[..data.len().min(length as usize)]);
                let damaged = |error: io::Error| Problem::Damaged { part, reason: error.to_string() };
                found += io::copy(&mut data, &mut io::sink()).map_err(damaged)?;
            }
            found
        }
        _ => check_claim([page.height, page.width], needed / MOST_EXPANSION, stored).map(|()| needed)?,
    };
    match found.cmp(&needed) {
        Ordering::Less => Err(Problem::Truncated { part, needed, found }),
        Ordering::Equal => Ok(stored),
        Ordering::Greater => Err(refused(part, format!("{found} bytes"), "what its size asks for", AGAIN)),
    }
}

/// Refuses a stack whose pages are more, or other, than slices.
///
/// Microscopes and ImageJ store channels and times as pages too, and ImageJ may leave the directories of all
/// pages but the first out. Read as slices, such a stack would be wrong without anybody noticing.
fn check_stack(description: &str, pages: usize, channels: usize) -> Result<(), Problem> {
    let advice = "save one channel at one time as a stack of slices, each with a directory of its own";
    let imagej = [("\nimages=", "images", pages), ("\nchannels=", "channels", 1), ("\nframes=", "frames", 1)];
    let ome =
        [(" SizeZ=\"", "slices", pages), (" SizeC=\"", "channels", channels), (" SizeT=\"", "times", 1)];
    let counts = match description {
        text if text.starts_with("ImageJ=") => imagej,
        text if text.contains("<OME") => ome,
        text if text.starts_with('{') && text.contains("\"truncated\": true") => {
            return Err(unsupported("a stack with a directory for its first page alone", advice));
        }
        _ => return Ok(()),
    };
    for (key, name, allowed) in counts {
        let rest = description.split_once(key).map_or("", |(_, rest)| rest);
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        if digits.parse().is_ok_and(|count: usize| count != allowed) {
            let what = format!("a TIFF stack with {digits} {name}, where its {pages} pages make {allowed},");
            return Err(unsupported(what, advice));
        }
    }
    Ok(())
}

fn failed(error: TiffError) -> Problem {
    match error {
        TiffError::UnsupportedError(error) => {
            unsupported(format!("this TIFF ({error})"), "save it as gray or RGB with deflate or LZW")
        }
        error => Problem::Damaged { part: "the TIFF file", reason: error.to_string() },
    }
}

/// The bytes of a TIFF file with a page for every slice, without compression; BigTIFF where 4 GB are not
/// enough.
///
/// # Shapes
/// `[1, d, h, w]` in any type, or `[3, d, h, w]` in `u8` or `u16`, with the default geometry; others are
/// refused.
pub fn encode_tiff(image: &Image) -> Result<Vec<u8>, Problem> {
    check_plain(image)?;
    let mut out = Cursor::new(vec![]);
    if image.voxels.len() * image.voxels.kind().bytes() + 300 * image.shape[1] > LARGE {
        write(image, TiffEncoder::new_big(&mut out).map_err(failed)?)?;
    } else {
        write(image, TiffEncoder::new(&mut out).map_err(failed)?)?;
    }
    Ok(out.into_inner())
}

fn write<W: Write + Seek, K: TiffKind>(image: &Image, mut to: TiffEncoder<W, K>) -> Result<(), Problem> {
    let [channels, d, h, w] = image.shape;
    // The encoder refuses sides of 0.
    let [height, width] = [h, w].map(|side| u32::try_from(side).unwrap_or(0));
    macro_rules! pages {
        ($color:ident, $values:expr) => {
            for page in $values.chunks(image.voxels.len() / d) {
                to.write_image::<colortype::$color>(width, height, page).map_err(failed)?;
            }
        };
    }
    match (&image.voxels, channels) {
        (Voxels::U8(values), 1) => pages!(Gray8, values),
        (Voxels::U8(values), 3) => pages!(RGB8, interleave(values, 3)),
        (Voxels::U16(values), 1) => pages!(Gray16, values),
        (Voxels::U16(values), 3) => pages!(RGB16, interleave(values, 3)),
        (Voxels::U32(values), 1) => pages!(Gray32, values),
        (Voxels::U64(values), 1) => pages!(Gray64, values),
        (Voxels::I8(values), 1) => pages!(GrayI8, values),
        (Voxels::I16(values), 1) => pages!(GrayI16, values),
        (Voxels::I32(values), 1) => pages!(GrayI32, values),
        (Voxels::I64(values), 1) => pages!(GrayI64, values),
        (Voxels::F32(values), 1) => pages!(Gray32Float, values),
        (Voxels::F64(values), 1) => pages!(Gray64Float, values),
        (values, channels) => {
            let found = format!("{channels} of {:?}", values.kind());
            let advice = "write the channels one by one";
            return Err(refused("the channels", found, "1, or 3 of u8 or u16", advice));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bigtiff_goes_round() {
        let voxels = Voxels::F64((0..30).map(f64::from).collect());
        let image = Image::new(voxels, [1, 2, 5, 3], Geometry::default(), &Limits::default()).unwrap();
        let mut bytes = Cursor::new(vec![]);
        write(&image, TiffEncoder::new_big(&mut bytes).unwrap()).unwrap();
        assert_eq!(parse_tiff(bytes.get_ref(), &Limits::default()).unwrap(), image);
    }

    /// A TIFF file without compression, in several strips of two rows.
    fn packed([w, h]: [u32; 2], bits: u32, interpretation: u32, rows: &[u8]) -> Vec<u8> {
        let strip = (w * bits).div_ceil(8) * 2;
        let lengths: Vec<u32> = rows.chunks(strip as usize).map(|rows| rows.len() as u32).collect();
        let count = lengths.len() as u32;
        let entries = [(256, 1, w), (257, 1, h), (258, 1, bits), (259, 1, 1), (262, 1, interpretation)];
        let place = 8 + 2 + 9 * 12 + 4;
        let lists = [(273, count, place), (277, 1, 1), (278, 1, 2), (279, count, place + 4 * count)];
        let mut bytes = [&b"II*\0"[..], &8u32.to_le_bytes(), &9u16.to_le_bytes()].concat();
        for (tag, count, value) in entries.into_iter().chain(lists) {
            let tag: u16 = tag;
            bytes.extend(tag.to_le_bytes());
            bytes.extend(4u16.to_le_bytes());
            bytes.extend([count, value].into_iter().flat_map(u32::to_le_bytes));
        }
        bytes.extend([0; 4]);
        let starts = (0..count).map(|i| place + 8 * count + i * strip);
        bytes.extend(starts.chain(lengths.iter().copied()).flat_map(u32::to_le_bytes));
        bytes.extend(rows);
        bytes
    }

    #[test]
    fn masks_of_few_bits_are_read() {
        let read = |size: [u32; 2], bits, interpretation, rows: &[u8]| {
            let image = parse_tiff(&packed(size, bits, interpretation, rows), &Limits::default())?;
            assert_eq!(image.shape, [1, 1, size[1] as usize, size[0] as usize]);
            Ok::<_, Problem>(image.to_labels()?.data)
        };
        // The rest of a row fills up its last byte.
        let rows = [0b1010_0000, 0b1011_1111, 0b0000_0001, 0b0000_0000, 0b1111_1111, 0b1000_0000];
        let expected = [1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(read([9, 3], 1, 1, &rows).unwrap(), expected);
        let inverted = expected.map(|bit| 1 - bit);
        assert_eq!(read([9, 3], 1, 0, &rows).unwrap(), inverted, "white is 0");
        assert_eq!(
            read([3, 3], 2, 1, &[0b0001_1011, 0b1000_0000, 0xff]).unwrap(),
            [0, 1, 2, 2, 0, 0, 3, 3, 3]
        );
        let four = [0x5f, 0xc0, 0x01, 0x20, 0xab, 0xcd];
        assert_eq!(read([3, 3], 4, 1, &four).unwrap(), [5, 15, 12, 0, 1, 2, 10, 11, 12]);
        for (bits, interpretation, expected) in [
            (4, 0, "a TIFF in which 0 is white is not supported"),
            (4, 3, "a TIFF with a palette is not supported"),
        ] {
            let message = read([3, 3], bits, interpretation, &four).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
