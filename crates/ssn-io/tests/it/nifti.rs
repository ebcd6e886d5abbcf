//! What the NIfTI reader promises: files by hand read right, writing goes round, damage is refused, nothing panics.

use std::io::Write;

use proptest::prelude::*;
use ssn_io::formats::nifti::{Version, encode, encode_gz, parse, parse_pair};
use ssn_io::{Geometry, Image, Limits, VoxelType, Voxels};

use crate::changed_bytes::{change, changed};
use crate::hostile_files;

/// A NIfTI-1 file by hand: 3 × 2 × 2 voxels of int16, sform, slope 2, intercept -1.
struct ByHand {
    bytes: Vec<u8>,
    big: bool,
}

const VALUES: [i16; 12] = [0, 1, -2, 300, 4, 5, 6, 7, 8, 9, 10, i16::MIN];
const SROW: [f32; 12] = [-1.5, 0.0, 0.0, 90.0, 0.0, 0.0, 2.0, -126.0, 0.0, 0.5, 0.0, -72.25];

impl ByHand {
    fn new(big: bool) -> Self {
        let mut file = Self { bytes: vec![0; 352], big };
        file.put(0, 348i32.to_be_bytes());
        for (i, n) in [3i16, 3, 2, 2, 1, 1, 1, 1].into_iter().enumerate() {
            file.put(40 + 2 * i, n.to_be_bytes());
        }
        file.put(70, 4i16.to_be_bytes());
        file.put(72, 16i16.to_be_bytes());
        file.float(76, 1.0);
        file.float(80, 1.5);
        file.float(84, 0.5);
        file.float(88, 2.0);
        file.float(108, 352.0);
        file.float(112, 2.0);
        file.float(116, -1.0);
        file.bytes[123] = 2;
        file.bytes[148..154].copy_from_slice(b"by han");
        file.put(254, 1i16.to_be_bytes());
        SROW.into_iter().enumerate().for_each(|(i, x)| file.float(280 + 4 * i, x));
        file.bytes[344..348].copy_from_slice(b"n+1\0");
        for value in VALUES {
            let start = file.bytes.len();
            file.bytes.extend([0; 2]);
            file.put(start, value.to_be_bytes());
        }
        file
    }

    fn put<const N: usize>(&mut self, offset: usize, mut number: [u8; N]) {
        if !self.big {
            number.reverse();
        }
        self.bytes[offset..offset + N].copy_from_slice(&number);
    }

    fn short(&mut self, offset: usize, number: i16) {
        self.put(offset, number.to_be_bytes());
    }

    fn float(&mut self, offset: usize, number: f32) {
        self.put(offset, number.to_be_bytes());
    }

    fn refusal(&self) -> String {
        read(&self.bytes).unwrap_err().to_string()
    }
}

fn read(bytes: &[u8]) -> Result<Image, ssn_io::Problem> {
    parse(bytes, &Limits::default())
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Equality in everything that writing keeps, bit by bit in the values.
fn assert_same(a: &Image, b: &Image) {
    assert_eq!(a.voxels.kind(), b.voxels.kind());
    assert_eq!(a.voxels.to_le_bytes(), b.voxels.to_le_bytes());
    assert_eq!((a.shape, a.geometry, a.slope, a.intercept), (b.shape, b.geometry, b.slope, b.intercept));
}

fn assert_goes_round(image: &Image) {
    let again = read(&encode(image, Version::for_image(image)).unwrap()).unwrap();
    assert_same(image, &again);
}

#[test]
fn a_file_by_hand_in_either_byte_order() {
    for big in [false, true] {
        let file = ByHand::new(big);
        for bytes in [file.bytes.clone(), gzipped(&file.bytes)] {
            let image = read(&bytes).unwrap();
            assert_eq!(image.shape, [1, 2, 2, 3]);
            assert_eq!(image.voxels, Voxels::I16(VALUES.to_vec()));
            assert_eq!((image.slope, image.intercept), (2.0, -1.0));
            assert_eq!(image.geometry.spacing, [1.5, 0.5, 2.0]);
            assert_eq!(image.geometry.affine().as_flattened(), SROW.map(f64::from));
            assert_eq!(image.source.as_deref(), Some(&file.bytes[..348]));
            assert_goes_round(&image);
        }
    }
}

#[test]
fn a_pair_reads_like_the_single_file() {
    let mut file = ByHand::new(false);
    let single = read(&file.bytes).unwrap();
    file.bytes[344..348].copy_from_slice(b"ni1\0");
    file.float(108, 7.0);
    let data = [&[9; 7], &file.bytes[352..]].concat();
    let header = file.bytes[..348].to_vec();
    for header in [header.clone(), gzipped(&header), file.bytes[..352].to_vec()] {
        for data in [data.clone(), gzipped(&data)] {
            assert_same(&parse_pair(&header, &data, &Limits::default()).unwrap(), &single);
        }
    }
    let image = parse_pair(&header, &data, &Limits::default()).unwrap();
    assert_goes_round(&image);
    let message = read(&file.bytes).unwrap_err().to_string();
    assert!(message.contains("magic is \"ni1\\x00\""), "{message}");
    let message = parse_pair(&header, &data[1..], &Limits::default()).unwrap_err().to_string();
    assert!(message.contains("needs 24 bytes, but only 23"), "{message}");
}

#[test]
fn geometry_without_sform_is_the_qform_or_the_sizes() {
    let mut file = ByHand::new(false);
    file.short(254, 0);
    file.short(252, 1);
    file.float(76, -1.0);
    file.float(264, 0.5f32.sqrt());
    file.float(268, 10.0);
    let geometry = read(&file.bytes).unwrap().geometry;
    assert_eq!((geometry.spacing, geometry.origin), ([1.5, 0.5, 2.0], [10.0, 0.0, 0.0]));
    let quarter_turn = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]];
    for (x, y) in geometry.direction.as_flattened().iter().zip(quarter_turn.as_flattened()) {
        assert!((x - y).abs() < 1e-7, "{geometry:?}");
    }
    assert_goes_round(&read(&file.bytes).unwrap());

    file.short(252, 0);
    let image = read(&file.bytes).unwrap();
    let affine = [[-1.5, 0.0, 0.0, 1.5], [0.0, 0.5, 0.0, -0.25], [0.0, 0.0, 2.0, -1.0]];
    assert_eq!(image.geometry.affine(), affine);
    assert_goes_round(&image);
}

/// NIfTI-1 with other dimensions, and as many values as these ask for.
fn with_dims(dims: &[i16], intent: i16) -> ByHand {
    let mut file = ByHand::new(false);
    (0..8).for_each(|i| file.short(40 + 2 * i, dims.get(i).copied().unwrap_or(1)));
    file.short(68, intent);
    let extents = dims.iter().skip(1).take(dims[0].try_into().unwrap());
    let values = extents.map(|&n| usize::try_from(n).unwrap_or(0)).product::<usize>();
    file.bytes.resize(352 + 2 * values, 0);
    file
}

#[test]
fn axes_become_channels_depth_height_width() {
    let shape = |dims: &[i16], intent: i16| {
        let image = read(&with_dims(dims, intent).bytes).unwrap();
        assert_goes_round(&image);
        image.shape
    };
    assert_eq!(shape(&[1, 5], 0), [1, 1, 1, 5]);
    assert_eq!(shape(&[2, 5, 4, 9, 9], 0), [1, 1, 4, 5]);
    assert_eq!(shape(&[3, 5, 4, 3], 0), [1, 3, 4, 5]);
    assert_eq!(shape(&[4, 5, 4, 3, 2], 0), [2, 3, 4, 5]);
    assert_eq!(shape(&[5, 5, 4, 3, 1, 2], 1007), [2, 3, 4, 5]);
    assert_eq!(shape(&[7, 5, 4, 3, 1, 1, 1, 1], 0), [1, 3, 4, 5]);
}

#[test]
fn axes_that_are_unclear_are_refused() {
    for (dims, intent, fragment) in [
        (vec![0, 1], 0, "dim[0] is 0"),
        (vec![8, 1], 0, "dim[0] is 8"),
        (vec![3, 5, -4, 3], 0, "-4 along axis 2"),
        (vec![3, 5, 4, 0], 0, "0 along axis 3"),
        (vec![5, 5, 4, 3, 2, 2], 1007, "2 points in time and 2 components"),
        (vec![5, 5, 4, 3, 1, 2], 1006, "intent_code 1006"),
        (vec![6, 5, 4, 3, 1, 1, 2], 0, "6 axes"),
        (vec![3, 27307, 1, 6], 0, "a FreeSurfer surface"),
    ] {
        let message = with_dims(&dims, intent).refusal();
        assert!(message.contains(fragment), "{message}");
    }
}

/// Channels stay points in time or components of a vector, whichever the source had.
#[test]
fn components_of_a_vector_stay_components() {
    for (dims, intent) in [([4i16, 5, 4, 1, 3, 1], 0i16), ([5, 5, 4, 1, 1, 3], 1007)] {
        let image = read(&with_dims(&dims, intent).bytes).unwrap();
        let back = encode(&image, Version::One).unwrap();
        let short = |at: usize| i16::from_le_bytes([back[at], back[at + 1]]);
        assert_eq!(([0, 1, 2, 3, 4, 5].map(|i| short(40 + 2 * i)), short(68)), (dims, intent));
    }
}

#[test]
fn other_files_are_named() {
    let message = read(b"\x89PNG....").unwrap_err().to_string();
    assert!(
        message.contains("sizeof_hdr is 1196314761, or -1991225785") && message.contains("348"),
        "{message}"
    );
    let message = read(&[0, 0, 1, 0x5c, 0, 0]).unwrap_err().to_string();
    assert!(message.contains("the header needs 348 bytes, but only 6"), "{message}");
    assert!(read(&[]).unwrap_err().to_string().contains("the header needs 348 bytes, but only 0"));
}

#[test]
fn slopes_without_meaning_are_ignored() {
    for slope in [0.0, f32::NAN, f32::INFINITY] {
        let mut file = ByHand::new(false);
        file.float(112, slope);
        file.float(116, f32::NAN);
        let image = read(&file.bytes).unwrap();
        assert_eq!((image.slope, image.intercept), (1.0, 0.0));
    }
}

#[test]
fn every_refusal_says_what_and_why() {
    type Change = fn(&mut ByHand);
    let cases: [(Change, &str); 20] = [
        (|f| drop(f.bytes.drain(200..)), "the header needs 348 bytes, but only 200"),
        (|f| drop(f.bytes.drain(352..)), "the voxel data needs 24 bytes, but only 0"),
        (|f| f.bytes.push(0), "1 bytes longer than 24 bytes"),
        (|f| f.put(0, 349i32.to_be_bytes()), "349"),
        (|f| f.bytes[344..348].fill(0), "Analyze 7.5"),
        (|f| f.short(40, 8), "dim[0] is 8"),
        (|f| f.short(42, -3), "-3 along axis 1"),
        (|f| f.short(70, 32), "complex numbers"),
        (|f| f.short(70, 128), "colors"),
        (|f| f.short(70, 1), "single bits"),
        (|f| f.short(70, 1536), "128 bits"),
        (|f| f.short(72, 8), "bitpix is 8 with datatype 4"),
        (|f| f.float(108, 0.0), "vox_offset is 0"),
        (|f| f.float(108, 352.5), "vox_offset is 352.5"),
        (|f| f.float(108, f32::NAN), "vox_offset is NaN"),
        (|f| f.float(108, 1e30), "raise the limit `header_bytes`"),
        (|f| f.float(116, f32::INFINITY), "scl_inter is inf with scl_slope 2"),
        (|f| f.short(254, 6), "sform_code is 6"),
        (|f| f.float(280, 0.0), "axes that span a volume"),
        (|f| f.float(280, f32::NAN), "the sform"),
    ];
    for big in [false, true] {
        for (change, fragment) in cases {
            let mut file = ByHand::new(big);
            change(&mut file);
            assert!(file.refusal().contains(fragment), "{} has no {fragment:?}", file.refusal());
        }
    }
    let qform: [(Change, &str); 6] = [
        (|f| f.float(256, 1.1), "the quaternion"),
        (|f| f.float(76, -2.0), "pixdim[0] (qfac) is -2"),
        (|f| f.float(80, 0.0), "0 along axis 1"),
        (|f| f.float(84, -1.0), "-1 along axis 2"),
        (|f| f.float(268, f32::NAN), "qoffset_x"),
        (|f| f.short(252, -1), "qform_code is -1"),
    ];
    for (change, fragment) in qform {
        let mut file = ByHand::new(false);
        file.short(254, 0);
        file.short(252, 1);
        change(&mut file);
        assert!(file.refusal().contains(fragment), "{} has no {fragment:?}", file.refusal());
    }
}

#[test]
fn limits_hold_and_can_be_raised() {
    let file = ByHand::new(false).bytes;
    for limits in [
        Limits { values: 11, ..Limits::default() },
        Limits { file_bytes: 100, ..Limits::default() },
        Limits { header_bytes: 351, ..Limits::default() },
    ] {
        let message = parse(&file, &limits).unwrap_err().to_string();
        assert!(message.contains("raise the limit"), "{message}");
    }
    let limits = Limits { expanded_bytes: 375, ..Limits::default() };
    assert!(parse(&gzipped(&file), &limits).is_err());
    assert!(parse(&gzipped(&file), &Limits { expanded_bytes: 376, ..limits }).is_ok());
}

/// A label map lies where the image lies: the bits of the geometry are those of the source.
#[test]
fn labels_keep_the_geometry_of_their_image_bit_by_bit() {
    let file = ByHand::new(false);
    let image = read(&file.bytes).unwrap();
    let bytes = encode(&image.with_labels(vec![3; 12]).unwrap(), Version::One).unwrap();
    for kept in [76..108, 123..124, 148..228, 252..328] {
        assert_eq!(bytes[kept.clone()], file.bytes[kept.clone()], "{kept:?}");
    }
    assert_eq!((bytes.len(), read(&bytes).unwrap().geometry), (352 + 12, image.geometry));
    assert_eq!(read(&bytes).unwrap().to_labels().unwrap().data, vec![3; 12]);

    let moved = Image { geometry: Geometry { origin: [1.0, 2.0, 3.0], ..image.geometry }, ..image };
    assert_goes_round(&moved);
}

/// Images that never were NIfTI: every type, both versions, channels, and a geometry in double precision.
#[test]
fn images_of_other_formats_are_written() {
    let (c, s) = (0.8, 0.6);
    let turned = Geometry {
        spacing: [0.7, 0.7, 2.5],
        origin: [-90.0, 12.5, 40.0],
        direction: [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, -1.0]],
    };
    let sheared = Geometry { direction: [[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 1.0]], ..turned };
    for kind in VoxelType::ALL {
        for shape in [[1, 2, 3, 4], [2, 2, 3, 4], [1, 1, 3, 4]] {
            for (geometry, qform) in [(turned, 1), (sheared, 0)] {
                let count = shape.iter().product::<usize>() * kind.bytes();
                let bytes: Vec<u8> = (0..count).map(|i| (i * 37) as u8).collect();
                let voxels = Voxels::from_bytes(kind, &bytes, ssn_io::ByteOrder::Little);
                let image = Image::new(voxels, shape, geometry, &Limits::default()).unwrap();
                for version in [Version::One, Version::Two] {
                    let plain = encode(&image, version).unwrap();
                    let back = read(&plain).unwrap();
                    assert_eq!((back.voxels.to_le_bytes(), back.shape), (bytes.clone(), shape));
                    assert_eq!(back.geometry.differences(&geometry, ssn_io::Tolerance::default()), None);
                    assert_goes_round(&back);
                    let gz = encode_gz(&image, version).unwrap();
                    assert_same(&read(&gz).unwrap(), &back);
                    if version == Version::One {
                        assert_eq!(plain[252..256], [qform, 0, 1, 0], "a shear has no qform");
                        // Without the sform, the qform has to say the same.
                        let mut only = plain;
                        only[254] = 0;
                        let same = read(&only).unwrap().geometry.differences(&geometry, Default::default());
                        assert!(qform == 0 || same.is_none(), "{same:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_header_cannot_hold_is_not_written() {
    let image = Image::new(Voxels::U8(vec![1]), [1; 4], Geometry::default(), &Limits::default()).unwrap();
    let refusal = |image: &Image| encode(image, Version::One).unwrap_err().to_string();
    assert!(refusal(&Image { slope: 0.1, ..image.clone() }).contains("slope and intercept is 0.1 and 0"));
    assert!(refusal(&Image { slope: 0.0, ..image.clone() }).contains("slope"));
    assert!(refusal(&Image { intercept: f64::NAN, ..image.clone() }).contains("NaN"));
    assert!(refusal(&Image { shape: [2, 1, 1, 1], ..image.clone() }).contains("number of values is 1"));
    let far = Geometry { origin: [1e9, 0.0, 33.0], spacing: [1e-3; 3], ..Geometry::default() };
    assert!(encode(&Image { geometry: far, ..image.clone() }, Version::Two).is_ok());
    let far = Geometry { origin: [1e9 + 1.0, 0.0, 33.0], ..far };
    assert!(refusal(&Image { geometry: far, ..image.clone() }).contains("write the image as NIfTI-2"));
    assert!(refusal(&Image { source: Some(vec![1, 2]), ..image.clone() }).contains("the header"));
    assert!(encode(&Image { slope: 0.1, ..image.clone() }, Version::Two).is_ok());
    let row = Voxels::U8(vec![0; 32768]);
    let long = Image::new(row, [1, 1, 1, 32768], Geometry::default(), &Limits::default()).unwrap();
    assert!(refusal(&long).contains("32768 along axis 1") && refusal(&long).contains("NIfTI-2"));
    assert_eq!(Version::for_image(&long), Version::Two);
    assert_goes_round(&long);
}

/// Every change of one byte of the compressed data is noticed.
#[test]
fn a_thousand_flipped_bytes_are_refused() {
    let voxels = (0..16 * 16 * 16).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as i16).collect();
    let image =
        Image::new(Voxels::I16(voxels), [1, 16, 16, 16], Geometry::default(), &Limits::default()).unwrap();
    // The header of a gzip file has 10 bytes; checksum and length at the end have 8.
    for good in [encode_gz(&image, Version::One).unwrap(), gzipped(&encode(&image, Version::One).unwrap())] {
        assert!(good.len() > 3000 && read(&good).is_ok());
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..1000 {
            let mut bad = good.clone();
            let place = 10 + random(good.len() - 10);
            bad[place] ^= 1 + random(255) as u8;
            assert!(read(&bad).is_err(), "a flip at {place} was not noticed");
        }
    }
}

/// Hostile files in `attacks/nifti`, with what has to be said about each.
#[test]
fn attacks_are_refused() {
    let expected = [
        ("bomb.nii.gz", "needs 17592186044"),
        ("claims-terabytes.nii", "raise the limit `values`"),
        ("claims-gigabytes.nii", "the voxel data needs 2147352578 bytes, but only 16"),
        ("dims-overflow.nii", "raise the limit `values`"),
        ("negative-dim.nii", "-1 along axis 2"),
        ("offset-into-header.nii", "vox_offset is 100"),
        ("offset-at-end-of-world.nii", "raise the limit `header_bytes`"),
        ("offset-not-a-number.nii", "vox_offset is NaN"),
        ("extension-of-no-size.nii", "esize of a header extension is 0"),
        ("extension-backwards.nii", "esize of a header extension is -2147483648"),
        ("wrong-check-sum.nii.gz", "the compressed data is damaged"),
        ("cut.nii.gz", "the compressed data is damaged"),
        ("second-member.nii.gz", "the voxel data is longer than 368 bytes"),
        ("singular.nii", "axes that span a volume"),
        ("two-orders.nii", "dim[0] is 768"),
        ("line-ends-converted.nii", "magic is \"n+2\\x00\\n\\n\\x1a\\n"),
    ];
    hostile_files::all("nifti", &expected, |path| {
        let limits = match path.ends_with("bomb.nii.gz") {
            true => Limits { values: 1 << 60, expanded_bytes: 1 << 60, ..Limits::default() },
            false => Limits::default(),
        };
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.len() < 10_000, "{}", path.display());
        parse(&bytes, &limits).unwrap_err().to_string()
    });
}

/// One good file of each kind, to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let one = ByHand::new(false).bytes;
    let image = read(&one).unwrap();
    let two = encode(&image, Version::Two).unwrap();
    let mut vector = ByHand::new(true);
    [(40, 5), (46, 1), (50, 2), (68, 1007)].into_iter().for_each(|(at, n)| vector.short(at, n));
    assert_eq!(read(&vector.bytes).unwrap().shape, [2, 1, 2, 3]);
    vec![gzipped(&one), gzipped(&two), one, two, vector.bytes, ByHand::new(true).bytes]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_refused_or_go_round(
        seed in 0..6usize,
        inside in any::<bool>(),
        changes in prop::collection::vec(change(any::<u8>()), 1..4),
    ) {
        let mut bytes = changed(seeds().swap_remove(seed), &changes);
        if inside {
            bytes = gzipped(&bytes);
        }
        if let Ok(image) = read(&bytes) {
            assert_goes_round(&image);
        }
        let cut = bytes.len().min(352);
        if let Ok(image) = parse_pair(&bytes[..cut], &bytes[cut..], &Limits::default()) {
            assert_goes_round(&image);
        }
    }
}
