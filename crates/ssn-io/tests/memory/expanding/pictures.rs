//! PNG and TIFF.

use flate2::Crc;
use png::{BitDepth, ColorType};
use tiff::encoder::{Compression, TiffEncoder, colortype::Gray8};

use super::{Case, MEMORY, MUCH, READ, SIZE, case, most, zlib};

/// The longest side of a picture.
const WIDEST: usize = 1_000_000;

pub fn cases() -> Vec<Case> {
    let (gray, rgba) = (ColorType::Grayscale, ColorType::Rgba);
    let side = |pixels: usize| [4000, pixels / 4000];
    vec![
        case("most.png", png(side(most(6)), gray, BitDepth::Eight), READ),
        case("most-bits.png", png(side(most(6)), gray, BitDepth::One), READ),
        case("most-16.png", png(side(most(8)), gray, BitDepth::Sixteen), READ),
        case("most-opaque.png", opaque(most(18)), READ),
        case("most-palette.png", palette(most(20)), READ),
        case("much-palette.png", palette(most(6)), MEMORY),
        case("most-wide.png", png([WIDEST, 3], gray, BitDepth::Sixteen), READ),
        case("much.png", png(side(MUCH), gray, BitDepth::Eight), MEMORY),
        case("much-wide.png", png([WIDEST, 2], rgba, BitDepth::Sixteen), MEMORY),
        case("most-deflate.tif", deflated(side(most(6)), 8, 1), READ),
        case("most-bits.tif", deflated(side(most(6)), 1, 1), READ),
        case("most-deflate-64.tif", deflated(side(most(20)), 64, 3), READ),
        case("most-deflate-half.tif", deflated(side(most(12)), 16, 3), READ),
        case("most-deflate-wide.tif", deflated([WIDEST, 1], 64, 3), READ),
        case("much-deflate.tif", deflated(side(MUCH), 8, 1), MEMORY),
        case("most-lzw.tif", lzw(side(most(6))), READ),
        case("much-lzw.tif", lzw(side(MUCH)), MEMORY),
        case("most-packbits.tif", packbits(most(6)), READ),
        case("much-packbits.tif", packbits(MUCH), MEMORY),
        case("most-strips.tif", strips(most(110)), READ),
        case("much-strips.tif", strips(SIZE - 200), MEMORY),
        case("wide-tile.tif", wide_tile(), READ),
    ]
}

fn png([width, height]: [usize; 2], color: ColorType, depth: BitDepth) -> Vec<u8> {
    let row = (width * color.samples() * depth as usize).div_ceil(8);
    encode_png([width, height], color, depth, &vec![0; row * height])
}

/// A picture whose numbers become three colors.
fn palette(pixels: usize) -> Vec<u8> {
    let size = [4000, pixels / 4000];
    encode_png(size, ColorType::Indexed, BitDepth::Eight, &vec![0; size[0] * size[1]])
}

/// A picture with an alpha channel that is dropped.
fn opaque(pixels: usize) -> Vec<u8> {
    let (width, height) = (4000, pixels / 4000);
    let samples = [0, 0, 0, 255].repeat(width * height);
    encode_png([width, height], ColorType::Rgba, BitDepth::Eight, &samples)
}

/// A PNG file that is filled up with text.
fn encode_png([width, height]: [usize; 2], color: ColorType, depth: BitDepth, rows: &[u8]) -> Vec<u8> {
    /// Bytes of the signature and the first chunk.
    const START: usize = 33;
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette(vec![9, 1, 5]);
    }
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    let mut text = b"tEXtComment\0".to_vec();
    text.resize(SIZE - bytes.len() - 8, b'x');
    let mut crc = Crc::new();
    crc.update(&text);
    let length = (text.len() - 4) as u32;
    let chunk = [&length.to_be_bytes()[..], &text, &crc.sum().to_be_bytes()].concat();
    bytes.splice(START..START, chunk);
    bytes
}

/// A TIFF file with whole numbers of some bits (or, of format 3, others) in one strip, filled up with zeros.
fn tiff([width, height]: [usize; 2], bits: u32, format: u32, compression: u32, data: &[u8]) -> Vec<u8> {
    let strip = [(273, 4, 1, 8), (278, 4, 1, height as u32), (279, 4, 1, data.len() as u32)];
    directory([width, height], bits, format, compression, &strip, data)
}

fn directory(
    [width, height]: [usize; 2],
    bits: u32,
    format: u32,
    compression: u32,
    more: &[(u16, u16, u32, u32)],
    data: &[u8],
) -> Vec<u8> {
    let mut entries = vec![
        (256, 4, 1, width as u32),
        (257, 4, 1, height as u32),
        (258, 3, 1, bits),
        (259, 3, 1, compression),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
        (339, 3, 1, format),
    ];
    entries.extend(more);
    entries.sort_unstable();
    let mut bytes = b"II*\0".to_vec();
    let offset = SIZE - (2 + 12 * entries.len() + 4);
    bytes.extend((offset as u32).to_le_bytes());
    bytes.extend(data);
    bytes.resize(offset, 0);
    bytes.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        bytes.extend([tag, kind].map(u16::to_le_bytes).as_flattened());
        bytes.extend([count, value].map(u32::to_le_bytes).as_flattened());
    }
    bytes.extend([0; 4]);
    bytes
}

fn deflated([width, height]: [usize; 2], bits: u32, format: u32) -> Vec<u8> {
    let mut bytes = vec![0; width * height * bits as usize / 8];
    if format == 3 {
        // The predictor of floating-point numbers needs a copy of a row.
        let strip = [(273, 4, 1, 8), (278, 4, 1, height as u32), (317, 3, 1, 3)];
        let data = zlib(&bytes);
        let length = (279, 4, 1, data.len() as u32);
        return directory([width, height], bits, format, 8, &[&strip[..], &[length]].concat(), &data);
    }
    bytes = zlib(&bytes);
    tiff([width, height], bits, format, 8, &bytes)
}

fn lzw([width, height]: [usize; 2]) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(vec![]);
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap().with_compression(Compression::Lzw);
    encoder.write_image::<Gray8>(width as u32, height as u32, &vec![0; width * height]).unwrap();
    let mut bytes = bytes.into_inner();
    bytes.resize(SIZE, 0);
    bytes
}

/// Runs of 128 zeros in two bytes each.
fn packbits(pixels: usize) -> Vec<u8> {
    let height = pixels / 12_800;
    tiff([12_800, height], 8, 1, 32773, &[0x81, 0].repeat(100 * height))
}

/// Strips of one byte each: all of them share the bytes that are their offsets, their lengths and their values.
fn strips(count: usize) -> Vec<u8> {
    let count = count.min(WIDEST);
    let places = [(273, 1, count as u32, 8), (278, 4, 1, 1), (279, 1, count as u32, 8)];
    directory([1, count], 8, 1, 1, &places, &vec![1; count])
}

/// One pixel in a tile that is as wide as can be.
fn wide_tile() -> Vec<u8> {
    let data = zlib(&vec![0; 8 * WIDEST]);
    let tile = [
        (317, 3, 1, 3),
        (322, 4, 1, WIDEST as u32),
        (323, 4, 1, 1),
        (324, 4, 1, 8),
        (325, 4, 1, data.len() as u32),
    ];
    directory([1, 1], 64, 3, 8, &tile, &data)
}
