//! JPEG, made by hand: all blocks are empty and take one bit, or two.

use super::{Case, MEMORY, MUCH, READ, SIZE, case, most};

pub const BASELINE: u8 = 0xc0;
const PROGRESSIVE: u8 = 0xc2;

pub fn cases() -> Vec<Case> {
    vec![
        case("most.jpg", jpeg(most(6), 1, BASELINE), READ),
        case("most-color.jpg", jpeg(most(18), 3, BASELINE), READ),
        case("most-progressive.jpg", jpeg(most(18), 3, PROGRESSIVE), READ),
        case("much.jpg", jpeg(MUCH, 1, BASELINE), MEMORY),
        case("much-progressive.jpg", jpeg(MUCH / 3, 3, PROGRESSIVE), MEMORY),
    ]
}

/// A file of some pixels, filled up with comments.
pub fn jpeg(pixels: usize, components: u8, frame: u8) -> Vec<u8> {
    let (width, height) = (4000, pixels / 4000 / 8 * 8);
    let blocks = width * height / 64;
    let segment = |marker: u8, content: &[u8]| {
        [&[0xff, marker][..], &(content.len() as u16 + 2).to_be_bytes(), content].concat()
    };
    let ids = 1..=components;
    let mut bytes = vec![0xff, 0xd8];
    bytes.extend(segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));
    bytes.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    let [h1, h0] = (height as u16).to_be_bytes();
    let [w1, w0] = (width as u16).to_be_bytes();
    let sizes = [8, h1, h0, w1, w0, components];
    let parts: Vec<u8> = ids.clone().flat_map(|id| [id, 0x11, 0]).collect();
    bytes.extend(segment(frame, &[&sizes[..], &parts].concat()));
    // A code of one bit: no difference for DC, and the end of the block for AC.
    for class in [0, 0x10] {
        bytes.extend(segment(0xc4, &[&[class, 1][..], &[0; 15], &[0]].concat()));
    }
    let chosen: Vec<u8> = ids.clone().flat_map(|id| [id, 0]).collect();
    let scan = |parts: &[u8], band: [u8; 3], bits: usize| {
        let header = segment(0xda, &[&[parts.len() as u8 / 2][..], parts, &band].concat());
        [header, vec![0; bits.div_ceil(8)]].concat()
    };
    let count = usize::from(components);
    if frame == BASELINE {
        bytes.extend(scan(&chosen, [0, 63, 0], 2 * blocks * count));
    } else {
        bytes.extend(scan(&chosen, [0, 0, 0], blocks * count));
        for part in chosen.chunks(2) {
            bytes.extend(scan(part, [1, 63, 0], blocks));
        }
    }
    while bytes.len() + 65_000 < SIZE {
        bytes.extend(segment(0xfe, &[b'x'; 64_000]));
    }
    bytes.extend([0xff, 0xd9]);
    bytes
}
