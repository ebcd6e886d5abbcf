//! DICOM: slices that are plain, in run lengths or a JPEG picture, and headers of many elements.

use super::{ANY, Case, MEMORY, MUCH, READ, SIZE, case, jpeg, most};

const EXPLICIT: &str = "1.2.840.10008.1.2.1";
const RLE: &str = "1.2.840.10008.1.2.5";
const JPEG: &str = "1.2.840.10008.1.2.4.50";
const WIDTH: usize = 4096;
const START_OF_ITEM: [u8; 4] = [0xfe, 0xff, 0, 0xe0];
const END_OF_ITEM: [u8; 8] = [0xfe, 0xff, 0x0d, 0xe0, 0, 0, 0, 0];
const END_OF_SEQUENCE: [u8; 8] = [0xfe, 0xff, 0xdd, 0xe0, 0, 0, 0, 0];

pub fn cases() -> Vec<Case> {
    let plain = (SIZE - 4096) / WIDTH;
    let sequences = |open: usize, close: usize| {
        let start = [&long([8, 0x1140], b"SQ", &[], u32::MAX)[..], &START_OF_ITEM, &[255; 4]].concat();
        [start.repeat(open), [END_OF_ITEM, END_OF_SEQUENCE].concat().repeat(close)].concat()
    };
    let pairs = element([8, 0x1140], b"LO", b"ab").repeat(SIZE / 10 - 100);
    let text = element([0x18, 0x88], b"DS", &[b'1'; 65_000]).repeat(SIZE / 65_010 - 1);
    vec![
        case("plain.dcm", slice(EXPLICIT, plain, WIDTH, &[], &plain_data(plain * WIDTH)), READ),
        case("most-run-lengths.dcm", padded(RLE, most(6), run_lengths), READ),
        case("much-run-lengths.dcm", padded(RLE, MUCH, run_lengths), MEMORY),
        case("most-jpeg.dcm", in_jpeg(most(9)), READ),
        case("much-jpeg.dcm", in_jpeg(MUCH), MEMORY),
        case("claims-much.dcm", slice(EXPLICIT, 65_535, 65_535, &[], &plain_data(12)), MEMORY),
        case(
            "deep-sequences.dcm",
            slice(EXPLICIT, 1, 1, &sequences(SIZE / 40, SIZE / 40), &plain_data(2)),
            ANY,
        ),
        case("open-sequences.dcm", slice(EXPLICIT, 1, 1, &sequences(SIZE / 22, 0), &[]), ANY),
        case("many-elements.dcm", slice(EXPLICIT, 1, 2, &pairs, &plain_data(2)), READ),
        case("long-texts.dcm", slice(EXPLICIT, 1, 2, &text, &plain_data(2)), ANY),
        case("many-fragments.dcm", slice(RLE, 1, 2, &[], &fragments(&[&[][..]; SIZE / 9])), ANY),
    ]
}

fn element([group, number]: [u16; 2], kind: &[u8; 2], value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u16).to_le_bytes();
    [&group.to_le_bytes()[..], &number.to_le_bytes(), kind, &length, value].concat()
}

/// An element with a length of 32 bits.
fn long([group, number]: [u16; 2], kind: &[u8; 2], value: &[u8], length: u32) -> Vec<u8> {
    let length = length.to_le_bytes();
    [&group.to_le_bytes()[..], &number.to_le_bytes(), kind, &[0, 0], &length, value].concat()
}

fn plain_data(bytes: usize) -> Vec<u8> {
    long([0x7fe0, 0x10], b"OB", &vec![0; bytes], bytes as u32)
}

fn fragments(fragments: &[&[u8]]) -> Vec<u8> {
    let item = |bytes: &[u8]| [&START_OF_ITEM[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let items: Vec<u8> = fragments.iter().flat_map(|fragment| item(fragment)).collect();
    long([0x7fe0, 0x10], b"OB", &[item(&[]), items, END_OF_SEQUENCE.to_vec()].concat(), u32::MAX)
}

/// A run of 128 zeros is two bytes.
fn run_lengths(values: usize) -> Vec<u8> {
    let header: Vec<u8> = [1u32, 64].iter().flat_map(|x| x.to_le_bytes()).chain([0; 56]).collect();
    fragments(&[&[header, [129, 0].repeat(values / 128)].concat()])
}

fn in_jpeg(pixels: usize) -> Vec<u8> {
    let (height, picture) = (pixels / 4000 / 8 * 8, jpeg::jpeg(pixels, 1, jpeg::BASELINE));
    slice(JPEG, height, 4000, &[], &fragments(&[&picture[..picture.len() / 2 * 2]]))
}

/// A slice of some values, as large as allowed by an element that nobody needs.
fn padded(syntax: &str, values: usize, data: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let height = values / WIDTH;
    let data = data(height * WIDTH);
    let length = (SIZE - data.len() - 4096) / 2 * 2;
    slice(syntax, height, WIDTH, &long([8, 0x1140], b"OB", &vec![0; length], length as u32), &data)
}

/// A slice with values of 8 bits, and further elements behind the first group.
fn slice(syntax: &str, height: usize, width: usize, more: &[u8], data: &[u8]) -> Vec<u8> {
    let text = |tag: [u16; 2], kind: &[u8; 2], text: &str| {
        element(tag, kind, format!("{text}{}", &" "[..text.len() % 2]).as_bytes())
    };
    let number = |at: u16, number: usize| element([0x28, at], b"US", &(number as u16).to_le_bytes());
    let meta = text([2, 0x10], b"UI", syntax);
    [
        &[0; 128][..],
        b"DICM\x02\0\0\0UL\x04\0",
        &(meta.len() as u32).to_le_bytes(),
        &meta,
        more,
        &text([0x20, 0x32], b"DS", "0\\0\\0"),
        &text([0x20, 0x37], b"DS", "1\\0\\0\\0\\1\\0"),
        &number(2, 1),
        &text([0x28, 4], b"CS", "MONOCHROME2"),
        &number(0x10, height),
        &number(0x11, width),
        &text([0x28, 0x30], b"DS", "1\\1"),
        &number(0x100, 8),
        &number(0x101, 8),
        &number(0x102, 7),
        &number(0x103, 0),
        data,
    ]
    .concat()
}
