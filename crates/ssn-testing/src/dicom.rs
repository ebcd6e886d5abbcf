//! DICOM segmentations for tests, in explicit little-endian order.

/// A segmentation with slices along z.
#[derive(Debug, Clone)]
pub struct Segmentation {
    /// Rows and columns.
    pub size: [u16; 2],
    /// Distances of rows and columns in millimeters.
    pub spacing: [f64; 2],
    /// Number and name of each segment.
    pub segments: Vec<(u16, &'static str)>,
    /// Segment, height in millimeters, and the marked pixels of each frame.
    pub frames: Vec<(u16, f64, Vec<bool>)>,
    /// Stores a byte per pixel, 0 or 200 of 255, rather than a bit.
    pub is_fractional: bool,
}

fn element(tag: [u16; 2], kind: &[u8; 2], mut value: Vec<u8>) -> Vec<u8> {
    if value.len() % 2 == 1 {
        value.push(if kind == b"OB" { 0 } else { b' ' });
    }
    let head = [&tag.map(u16::to_le_bytes).concat()[..], kind].concat();
    let length = match kind {
        b"OB" | b"SQ" => [&[0, 0][..], &(value.len() as u32).to_le_bytes()].concat(),
        _ => (value.len() as u16).to_le_bytes().to_vec(),
    };
    [head, length, value].concat()
}

fn text(tag: [u16; 2], kind: &[u8; 2], text: &str) -> Vec<u8> {
    element(tag, kind, text.as_bytes().to_vec())
}

fn short(tag: [u16; 2], number: u16) -> Vec<u8> {
    element(tag, b"US", number.to_le_bytes().to_vec())
}

fn sequence(tag: [u16; 2], items: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let item =
        |item: Vec<u8>| [&[0xfe, 0xff, 0, 0xe0][..], &(item.len() as u32).to_le_bytes(), &item].concat();
    element(tag, b"SQ", items.into_iter().flat_map(item).collect())
}

impl Segmentation {
    /// Returns the bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let [rows, columns] = self.size;
        let marks: Vec<bool> = self.frames.iter().flat_map(|(.., marks)| marks).copied().collect();
        let pixels: Vec<u8> = match self.is_fractional {
            true => marks.iter().map(|mark| if *mark { 200 } else { 0 }).collect(),
            false => marks
                .chunks(8)
                .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
                .collect(),
        };
        let [kind, bits] = if self.is_fractional { ["FRACTIONAL", "8"] } else { ["BINARY", "1"] };
        let segment =
            |(number, name): &(u16, &str)| [short([0x62, 4], *number), text([0x62, 5], b"LO", name)].concat();
        let shared = [
            sequence([0x20, 0x9116], [text([0x20, 0x37], b"DS", "1\\0\\0\\0\\1\\0")]),
            sequence(
                [0x28, 0x9110],
                [text([0x28, 0x30], b"DS", &self.spacing.map(|mm| mm.to_string()).join("\\"))],
            ),
        ];
        let frame = |(segment, height, _): &(u16, f64, Vec<bool>)| {
            let place = text([0x20, 0x32], b"DS", &format!("0\\0\\{height}"));
            [sequence([0x20, 0x9113], [place]), sequence([0x62, 0xa], [short([0x62, 0xb], *segment)])]
                .concat()
        };
        let meta = text([2, 0x10], b"UI", "1.2.840.10008.1.2.1");
        [
            &[0; 128][..],
            b"DICM\x02\0\0\0UL\x04\0",
            &(meta.len() as u32).to_le_bytes(),
            &meta,
            &text([8, 0x60], b"CS", "SEG"),
            &text([0x20, 0xe], b"UI", "1.2.99"),
            &short([0x28, 2], 1),
            &text([0x28, 4], b"CS", "MONOCHROME2"),
            &text([0x28, 8], b"IS", &self.frames.len().to_string()),
            &short([0x28, 0x10], rows),
            &short([0x28, 0x11], columns),
            &short([0x28, 0x100], bits.parse().unwrap_or(1)),
            &text([0x62, 1], b"CS", kind),
            &sequence([0x62, 2], self.segments.iter().map(segment)),
            &short([0x62, 0xe], 255),
            &sequence([0x5200, 0x9229], [shared.concat()]),
            &sequence([0x5200, 0x9230], self.frames.iter().map(frame)),
            &element([0x7fe0, 0x10], b"OB", pixels),
        ]
        .concat()
    }
}
