//! PNG, JPEG and TIFF: what is written is read back, hostile files are refused with a sentence, and no bytes
//! panic.

use std::fs;
use std::path::Path;

use flate2::Crc;
use png::{BitDepth, ColorType};
use proptest::prelude::*;
use ssn_io::formats::raster::{
    encode_png, encode_tiff, parse_jpeg, parse_png, parse_png_labels, parse_tiff, parse_tiff_labels,
};
use ssn_io::{ByteOrder, Geometry, Image, Limits, Problem, VoxelType, Voxels};
use tiff::encoder::TiffEncoder;
use tiff::encoder::colortype::{Gray8, RGB8, RGBA8, RGBA16};
use tiff::tags::Tag;

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

fn attack(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/raster").join(name)).unwrap()
}

fn parse(name: &str, bytes: &[u8]) -> Result<Image, Problem> {
    let limits = Limits::default();
    match name.rsplit('.').next() {
        Some("png") => parse_png(bytes, &limits),
        Some("jpg") => parse_jpeg(bytes, &limits),
        _ => parse_tiff(bytes, &limits),
    }
}

fn image(voxels: Voxels, shape: [usize; 4]) -> Image {
    Image::new(voxels, shape, Geometry::default(), &Limits::default()).unwrap()
}

/// Every hostile file with a part of the sentence that refuses it; an empty one is read.
const ATTACKS: [(&str, &str); 48] = [
    ("good.jpg", ""),
    ("good.png", ""),
    ("good.tif", ""),
    ("good-progressive.jpg", ""),
    ("good-restarts.jpg", ""),
    ("jpeg-12-bit.jpg", "12 bit sample precision"),
    ("jpeg-arithmetic.jpg", "ArithmeticEntropyCoding in a JPEG is not supported"),
    ("jpeg-cmyk.jpg", "a JPEG in CMYK colors is not supported; save it in gray or RGB"),
    ("jpeg-cut-data.jpg", "failed to decode huffman code"),
    ("jpeg-huge-claim.jpg", "65535 × 65535 pixels in a file of 445 bytes"),
    ("jpeg-huge-progressive.jpg", "raise the limit `values`"),
    ("jpeg-lossless.jpg", "Lossless, is not supported"),
    ("jpeg-missing-scan.jpg", "some scans are missing"),
    ("jpeg-more-data.jpg", ""),
    ("jpeg-no-end.jpg", "its end marker is missing"),
    ("jpeg-restarts-swapped.jpg", "found RST2 where RST1 was expected"),
    ("jpeg-too-many-codes.jpg", "invalid length in DHT"),
    ("jpeg-turned.jpg", "orientation 6"),
    ("jpeg-two-frames.jpg", "Hierarchical in a JPEG is not supported"),
    ("png-animated.png", "animated"),
    ("png-cut-data.png", ""),
    ("png-data-check-sum.png", "WrongChecksum"),
    ("png-huge-claim.png", "raise the limit `values`"),
    ("png-no-end.png", "unexpected end of file"),
    ("png-no-pixels.png", "Invalid image dimensions"),
    ("png-profile-bomb.png", ""),
    ("png-text-bomb.png", ""),
    ("png-text-check-sum.png", "CRC error"),
    ("png-too-wide.png", "limits are exceeded"),
    ("png-transparent.png", "transparent pixels"),
    ("png-turned.png", "orientation 6"),
    ("tiff-bomb.tif", "needs 8000000000 bytes, but only 7000000"),
    ("tiff-circle.tif", "a cycle in the list of IFDs"),
    ("tiff-huge-claim.tif", "raise the limit `values`"),
    ("tiff-imagej-channels.tif", "2 channels"),
    ("tiff-imagej-hidden.tif", "9 images, where its 1 pages make 1"),
    ("tiff-jpeg-inside.tif", "JPEG compression inside a TIFF is not supported; save it as PNG"),
    ("tiff-many-entries.tif", "failed to fill whole buffer"),
    ("tiff-many-strips.tif", "decoder limits exceeded"),
    ("tiff-old-lzw.tif", "invalid code in LZW stream"),
    ("tiff-pages-differ.tif", "page 2, while the first is [1, 1, 4, 5] of U8"),
    ("tiff-shared-data.tif", "some are shared"),
    ("tiff-strip-long.tif", "24 bytes, but it must be what its size asks for"),
    ("tiff-strip-outside.tif", "1000000 bytes, but it must be"),
    ("tiff-strips-of-nothing.tif", "needs 20 bytes, but only 0"),
    ("tiff-tag-twice.tif", "what its size asks for"),
    ("tiff-turned.tif", "orientation 3"),
    ("tiff-white-is-zero.tif", "0 is white"),
];

#[test]
fn hostile_files_are_refused_with_a_sentence() {
    hostile_files::all("raster", &ATTACKS, |path| {
        let read = parse(path.to_str().unwrap(), &fs::read(path).unwrap());
        read.map_or_else(|problem| problem.to_string(), |_| String::new())
    });
}

#[test]
fn good_files_have_the_values_they_were_made_with() {
    let expected: Vec<u8> = (0..4u8).flat_map(|y| (0..6).map(move |x| 16 * y + x)).collect();
    for name in ["good.png", "png-text-bomb.png", "png-profile-bomb.png"] {
        let picture = image(Voxels::U8(expected.clone()), [1, 1, 4, 6]);
        assert_eq!(parse(name, &attack(name)).unwrap(), picture);
    }
    let pages = (0..3u8).flat_map(|page| (0..20).map(move |i| i + page)).collect();
    assert_eq!(parse("good.tif", &attack("good.tif")).unwrap(), image(Voxels::U8(pages), [1, 3, 4, 5]));
}

#[test]
fn jpeg_samples_are_near_what_was_encoded() {
    for (name, channels) in [("good.jpg", 1), ("good-progressive.jpg", 3), ("good-restarts.jpg", 3)] {
        let picture = parse(name, &attack(name)).unwrap();
        assert_eq!(picture.shape, [channels, 1, 24, 20]);
        let Voxels::U8(values) = picture.voxels else { panic!("{name}") };
        // A ramp that wraps at 256; away from the wrap its slope survives.
        let expected = |x: usize, y: usize| ((11 * x + 5 * y) % 256) as f64;
        let (mut sum, mut count) = (0.0, 0.0);
        for y in 0..24 {
            for x in 0..20 {
                if (40.0..215.0).contains(&expected(x, y)) {
                    sum += (f64::from(values[20 * y + x]) - expected(x, y)).abs();
                    count += 1.0;
                }
            }
        }
        assert!(sum / count < 12.0, "{name}: {}", sum / count);
    }
}

#[test]
fn a_cut_jpeg_is_always_refused() {
    for name in ["good.jpg", "good-progressive.jpg", "good-restarts.jpg"] {
        let bytes = attack(name);
        for end in 0..bytes.len() {
            assert!(parse(name, &bytes[..end]).is_err(), "{name} {end}");
            let mut with_end = bytes[..end].to_vec();
            with_end.extend([0xff, 0xd9]);
            // Up to the padding of its last byte, the end marker that was there already may be given twice.
            assert!(end + 2 >= bytes.len() || parse(name, &with_end).is_err(), "{name} {end} with end");
        }
    }
}

#[test]
fn every_flipped_bit_of_a_png_is_noticed() {
    let bytes = attack("good.png");
    let whole = parse("good.png", &bytes).unwrap();
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(parse("good.png", &flipped).is_err(), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(parse("good.png", &bytes[..end]).is_err(), "cut at {end}");
    }
    let longer = [&bytes[..], b"behind the end"].concat();
    assert_eq!(parse("good.png", &longer).unwrap(), whole);
}

/// The decoder stops at the last row that it needs, so that what comes after is not looked at; but all rows must
/// be there.
#[test]
fn missing_rows_of_a_png_are_noticed() {
    let picture = image(Voxels::U8((0..200u32).map(|i| ((i * i) >> 3) as u8).collect()), [1, 1, 10, 20]);
    let bytes = encode_png(&picture).unwrap();
    // The header with its length and checksum ends at byte 33, and the data before the 12 bytes of the last chunk.
    let data = &bytes[33 + 8..bytes.len() - 12 - 4];
    for end in 0..data.len() {
        let mut cut = bytes[..33].to_vec();
        cut.extend((end as u32).to_be_bytes());
        cut.extend(b"IDAT");
        cut.extend(&data[..end]);
        cut.extend([0; 4]);
        cut.extend(&bytes[bytes.len() - 12..]);
        mend_check_sums(&mut cut);
        // The last bytes are the checksum and the end of the last block.
        assert!(end + 8 > data.len() || parse("x.png", &cut).is_err(), "{end} of {}", data.len());
    }
}

#[test]
fn a_large_label_map_in_one_color_is_read() {
    let labels = image(Voxels::U8(vec![3; 4096 * 4096]), [1, 1, 4096, 4096]);
    let bytes = encode_png(&labels).unwrap();
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    assert!(parse("x.png", &bytes).unwrap() == labels);
}

/// Masks may be drawn with opacity; where all is opaque, or something else is refused, nothing changes.
#[test]
fn opacity_is_a_channel_if_asked_for() {
    let limits = Limits::default();
    let with = |name: &str| parse_png_labels(&attack(name), &limits);
    let image = with("png-transparent.png").unwrap();
    assert!(matches!(image.shape[0], 2 | 4), "{:?}", image.shape);
    let Voxels::U8(values) = &image.voxels else { panic!("{:?}", image.voxels.kind()) };
    let opacity = &values[values.len() / image.shape[0] * (image.shape[0] - 1)..];
    assert!(opacity.iter().any(|value| *value < 255) && opacity.contains(&255));
    assert!(with("png-turned.png").unwrap_err().to_string().contains("orientation 6"));
    let plain = encode_png(&self::image(Voxels::U8(vec![1, 2, 3, 4, 5, 6]), [3, 1, 1, 2])).unwrap();
    assert_eq!(parse_png_labels(&plain, &limits).unwrap(), parse_png(&plain, &limits).unwrap());
}

/// The same of TIFF, in which every page has its own.
#[test]
fn opacity_of_a_tiff_is_a_channel_if_asked_for() {
    let limits = Limits::default();
    // Opacity that does not change the colors.
    let unassociated = &[2u16][..];
    let pages = |pages: &[[u8; 8]]| {
        let mut bytes = std::io::Cursor::new(vec![]);
        let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
        for page in pages {
            let mut image = encoder.new_image::<RGBA8>(2, 1).unwrap();
            image.encoder().write_tag(Tag::ExtraSamples, unassociated).unwrap();
            image.write_data(page).unwrap();
        }
        bytes.into_inner()
    };
    let clear = pages(&[[9, 8, 7, 255, 6, 5, 4, 0], [1, 2, 3, 255, 1, 2, 3, 255]]);
    assert!(parse_tiff(&clear, &limits).unwrap_err().to_string().contains("transparent pixels"));
    let values = vec![9, 6, 1, 1, 8, 5, 2, 2, 7, 4, 3, 3, 255, 0, 255, 255];
    assert_eq!(parse_tiff_labels(&clear, &limits).unwrap(), image(Voxels::U8(values), [4, 2, 1, 2]));
    let opaque = pages(&[[9, 8, 7, 255, 6, 5, 4, 255]]);
    let colors = image(Voxels::U8(vec![9, 6, 8, 5, 7, 4]), [3, 1, 1, 2]);
    assert_eq!(parse_tiff_labels(&opaque, &limits).unwrap(), colors);
    let mut wide = std::io::Cursor::new(vec![]);
    let mut encoder = TiffEncoder::new(&mut wide).unwrap();
    let mut pixel = encoder.new_image::<RGBA16>(1, 1).unwrap();
    pixel.encoder().write_tag(Tag::ExtraSamples, unassociated).unwrap();
    pixel.write_data(&[1, 2, 3, 500]).unwrap();
    let wide = parse_tiff_labels(wide.get_ref(), &limits).unwrap();
    assert_eq!(wide, image(Voxels::U16(vec![1, 2, 3, 500]), [4, 1, 1, 1]));
    let turned = parse_tiff_labels(&attack("tiff-turned.tif"), &limits).unwrap_err();
    assert!(turned.to_string().contains("orientation"), "{turned}");
}

#[test]
fn packed_samples_keep_their_values() {
    for (depth, packed, expected) in [
        (
            BitDepth::One,
            &[0b1010_0000, 0b1000_0000, 0, 0][..],
            &[1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        ),
        (BitDepth::Two, &[0b1101_1000, 0b0100_1100], &[3, 1, 2, 1, 0, 3]),
        (BitDepth::Four, &[0x5f, 0xc0], &[5, 15, 12, 0]),
    ] {
        let width = expected.len() / 2;
        for color in [ColorType::Grayscale, ColorType::Indexed] {
            let mut bytes = vec![];
            let mut encoder = png::Encoder::new(&mut bytes, width as u32, 2);
            encoder.set_color(color);
            encoder.set_depth(depth);
            encoder.set_palette(vec![7; 3 << depth as u8]);
            encoder.write_header().unwrap().write_image_data(packed).unwrap();
            let picture = image(Voxels::U8(expected.to_vec()), [1, 1, 2, width]);
            let read = parse_png_labels(&bytes, &Limits::default()).unwrap();
            assert_eq!(read, picture, "{color:?} {depth:?}");
        }
    }
}

/// Many writers give a height for strips that is as large as can be.
#[test]
fn one_strip_may_claim_to_be_higher_than_the_picture() {
    let mut bytes = attack("tiff-white-is-zero.tif");
    let entry = |bytes: &[u8], tag: u16| bytes.windows(2).position(|pair| pair == tag.to_le_bytes()).unwrap();
    let photometric = entry(&bytes, 262);
    bytes[photometric + 8] = 1;
    let rows = entry(&bytes, 278);
    bytes[rows + 8..rows + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes[rows + 2] = 4;
    assert_eq!(parse("x.tif", &bytes).unwrap().shape, [1, 1, 4, 5]);
}

#[test]
fn stacks_of_slices_alone_are_read() {
    let stack = |description: &str, pages: usize, channels: usize| {
        let mut bytes = std::io::Cursor::new(vec![]);
        let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
        for _ in 0..pages {
            if channels == 3 {
                let mut page = encoder.new_image::<RGB8>(2, 2).unwrap();
                page.encoder().write_tag(Tag::ImageDescription, description).unwrap();
                page.write_data(&[0; 12]).unwrap();
            } else {
                let mut page = encoder.new_image::<Gray8>(2, 2).unwrap();
                page.encoder().write_tag(Tag::ImageDescription, description).unwrap();
                page.write_data(&[0; 4]).unwrap();
            }
        }
        parse("x.tif", bytes.get_ref()).map(|image| image.shape)
    };
    let slices = "ImageJ=1.53\nimages=3\nslices=3\nloop=false\n";
    let ome = r#"<?xml version="1.0"?><OME><Pixels SizeX="4" SizeC="3" SizeZ="5" SizeT="1"/></OME>"#;
    for (text, pages, channels) in [(slices, 3, 1), (ome, 5, 3), ("a holiday", 7, 1)] {
        assert_eq!(stack(text, pages, channels).unwrap(), [channels, pages, 2, 2], "{text}");
    }
    let channels = "ImageJ=1.53\nimages=6\nchannels=2\nslices=3\n";
    let times = r#"<OME><Pixels SizeC="1" SizeZ="1" SizeT="5"/></OME>"#;
    let hidden = r#"{"shape": [5, 8, 8], "truncated": true}"#;
    for (text, pages, expected) in [
        (slices, 1, "3 images, where its 1 pages make 1"),
        (channels, 6, "2 channels"),
        (ome, 5, "3 channels"),
        (times, 5, "1 slices, where its 5 pages make 5"),
        (hidden, 1, "for its first page alone"),
    ] {
        let message = stack(text, pages, 1).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn what_a_picture_cannot_hold_is_not_written() {
    let mut picture = image(Voxels::U8(vec![1; 4]), [1, 1, 2, 2]);
    picture.geometry.spacing[0] = 0.5;
    for result in [encode_png(&picture), encode_tiff(&picture)] {
        assert!(result.unwrap_err().to_string().contains("the geometry"));
    }
    let mut picture = image(Voxels::U8(vec![1; 4]), [1, 1, 2, 2]);
    picture.slope = 2.0;
    for result in [encode_png(&picture), encode_tiff(&picture)] {
        assert!(result.unwrap_err().to_string().contains("slope"));
    }
    assert!(encode_png(&image(Voxels::U8(vec![1; 4]), [1, 2, 2, 1])).is_err());
    assert!(encode_png(&image(Voxels::F32(vec![1.0; 4]), [1, 1, 2, 2])).is_err());
    assert!(encode_tiff(&image(Voxels::F32(vec![1.0; 6]), [3, 1, 2, 1])).is_err());
    assert!(encode_tiff(&image(Voxels::U8(vec![1; 4]), [2, 1, 2, 1])).is_err());
}

#[test]
fn limits_are_asked_first() {
    let small = Limits { values: 10, ..Limits::default() };
    let short = Limits { file_bytes: 10, ..Limits::default() };
    for (limits, name) in [(small, "`values`"), (short, "`file_bytes`")] {
        let problems = [
            parse_png(&attack("good.png"), &limits).unwrap_err(),
            parse_jpeg(&attack("good.jpg"), &limits).unwrap_err(),
            parse_tiff(&attack("good.tif"), &limits).unwrap_err(),
        ];
        assert!(problems.iter().all(|problem| problem.to_string().contains(name)), "{problems:?}");
    }
}

/// Gives every chunk of a PNG file the checksum that it needs, so that damage gets past it.
fn mend_check_sums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let Some(end) = (at + 8).checked_add(length).filter(|end| end + 4 <= bytes.len()) else { return };
        let mut sum = Crc::new();
        sum.update(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&sum.sum().to_be_bytes());
        at = end + 4;
    }
}

/// The bytes that are set where bytes are changed: ends of ranges, more often than by chance.
fn telling_byte() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f), Just(0x80)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn changed_bytes_never_panic(
        seed in prop::sample::select(ATTACKS.to_vec()),
        changes in prop::collection::vec(change(telling_byte()), 1..6),
        mend in any::<bool>(),
    ) {
        let name = seed.0;
        let mut bytes = changed(attack(name), &changes);
        if mend && name.ends_with(".png") {
            mend_check_sums(&mut bytes);
        }
        if let Ok(read) = parse(name, &bytes) {
            let again = parse_tiff(&encode_tiff(&read).unwrap(), &Limits::default()).unwrap();
            prop_assert_eq!(again.shape, read.shape);
            prop_assert_eq!(again.voxels.to_le_bytes(), read.voxels.to_le_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn pictures_go_round(
        (c, d, h, w) in (prop::sample::select(vec![1usize, 3]), 1..4usize, 1..20usize, 1..20usize),
        wide in any::<bool>(),
        seed in any::<u16>(),
    ) {
        let value = |i: usize| (i as u16).wrapping_mul(seed) >> 3;
        let count = c * d * h * w;
        let voxels = if wide {
            Voxels::U16((0..count).map(value).collect())
        } else {
            Voxels::U8((0..count).map(|i| value(i) as u8).collect())
        };
        let picture = image(voxels, [c, d, h, w]);
        prop_assert_eq!(&parse_tiff(&encode_tiff(&picture).unwrap(), &Limits::default()).unwrap(), &picture);
        match encode_png(&picture) {
            Ok(bytes) => prop_assert_eq!(parse_png(&bytes, &Limits::default()).unwrap(), picture),
            Err(_) => prop_assert!(d > 1),
        }
    }

    #[test]
    fn stacks_of_any_type_go_round(
        kind in prop::sample::select(VoxelType::ALL.to_vec()),
        (d, h, w) in (1..4usize, 1..9usize, 1..9usize),
        bytes in prop::collection::vec(any::<u8>(), 2048),
    ) {
        let voxels = Voxels::from_bytes(kind, &bytes[..d * h * w * kind.bytes()], ByteOrder::Little);
        let picture = image(voxels, [1, d, h, w]);
        let again = parse_tiff(&encode_tiff(&picture).unwrap(), &Limits::default()).unwrap();
        prop_assert_eq!(again.shape, picture.shape);
        prop_assert_eq!(again.voxels.kind(), kind);
        prop_assert_eq!(again.voxels.to_le_bytes(), picture.voxels.to_le_bytes());
    }
}
