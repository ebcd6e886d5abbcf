//! PNG, JPEG and TIFF: what is written is read back, hostile files are refused with a sentence, and no bytes
//! panic.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod changed_numbers;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use changed_numbers::{apply, change};
use flate2::Crc;
use proptest::prelude::*;
use ssn_volume::raster::{encode_png, encode_tiff, parse_jpeg, parse_png, parse_tiff};
use ssn_volume::{ByteOrder, Geometry, Image, Limits, Problem, VoxelType, Voxels};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/raster")
}

fn attack(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
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
    ("jpeg-12-bit.jpg", "a JPEG of 12 bit is not supported"),
    ("jpeg-arithmetic.jpg", "arithmetic coding"),
    ("jpeg-cmyk.jpg", "4 components"),
    ("jpeg-cut-data.jpg", "end before the picture does"),
    ("jpeg-huge-claim.jpg", "65535 × 65535 pixels in a file of 445 bytes"),
    ("jpeg-huge-progressive.jpg", "raise the limit `values`"),
    ("jpeg-lossless.jpg", "a lossless JPEG"),
    ("jpeg-missing-scan.jpg", "some scans are missing"),
    ("jpeg-more-data.jpg", "longer than the picture"),
    ("jpeg-no-end.jpg", "its end marker is missing"),
    ("jpeg-restarts-swapped.jpg", "a restart marker is missing or out of order"),
    ("jpeg-too-many-codes.jpg", "Huffman table"),
    ("jpeg-turned.jpg", "orientation 6"),
    ("jpeg-two-frames.jpg", "two frames"),
    ("png-animated.png", "animated"),
    ("png-cut-data.png", "the data of the picture"),
    ("png-data-check-sum.png", "the data of the picture is damaged"),
    ("png-huge-claim.png", "raise the limit `values`"),
    ("png-no-end.png", "unexpected end of file"),
    ("png-no-pixels.png", "Invalid image dimensions"),
    ("png-profile-bomb.png", ""),
    ("png-text-bomb.png", ""),
    ("png-text-check-sum.png", "CRC error"),
    ("png-too-wide.png", "2147483647 × 1 pixels"),
    ("png-transparent.png", "transparent pixels"),
    ("png-turned.png", "orientation 6"),
    ("tiff-bomb.tif", "needs 8000000000 bytes, but only 7000000"),
    ("tiff-circle.tif", "a circle"),
    ("tiff-huge-claim.tif", "raise the limit `values`"),
    ("tiff-imagej-channels.tif", "2 channels"),
    ("tiff-imagej-hidden.tif", "9, but there are 1 directories"),
    ("tiff-jpeg-inside.tif", "compression 7 (JPEG)"),
    ("tiff-many-entries.tif", "needs 786420 bytes"),
    ("tiff-many-strips.tif", "2147483647 in tag 273"),
    ("tiff-old-lzw.tif", "before TIFF 6.0"),
    ("tiff-pages-differ.tif", "page 2, while the first is 5 × 4"),
    ("tiff-shared-data.tif", "some are shared"),
    ("tiff-strip-long.tif", "longer than its part"),
    ("tiff-strip-outside.tif", "needs 1000008 bytes"),
    ("tiff-strips-of-nothing.tif", "at least one byte"),
    ("tiff-tag-twice.tif", "tag 256 twice"),
    ("tiff-turned.tif", "orientation 3"),
    ("tiff-white-is-zero.tif", "0 is white"),
];

#[test]
fn hostile_files_are_refused_with_a_sentence() {
    let names = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut there: BTreeSet<String> = fs::read_dir(folder()).unwrap().map(names).collect();
    assert!(there.remove("README.md"));
    assert_eq!(there, ATTACKS.iter().map(|(name, _)| name.to_string()).collect());
    for (name, expected) in ATTACKS {
        match parse(name, &attack(name)) {
            Ok(_) => assert!(expected.is_empty(), "{name} is read"),
            Err(problem) => {
                let message = problem.to_string();
                assert!(!expected.is_empty() && message.contains(expected), "{name}: {message}");
            }
        }
    }
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

#[test]
fn a_large_label_map_in_one_colour_is_read() {
    let labels = image(Voxels::U8(vec![3; 4096 * 4096]), [1, 1, 4096, 4096]);
    let bytes = encode_png(&labels).unwrap();
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    assert!(parse("x.png", &bytes).unwrap() == labels);
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

/// Gives every chunk of a PNG file the check sum that it needs, so that damage gets past it.
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
        let mut bytes = attack(name);
        changes.iter().for_each(|change| apply(&mut bytes, change));
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
