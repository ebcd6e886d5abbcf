//! Colors that people with any color vision can tell apart, and that survive printing.

/// An sRGB color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// As SVG writes it.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The color at `t` in 0 … 1 on the way to `other`.
    pub fn towards(self, other: Self, t: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * t).round() as u8;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

/// The colors of classes 1, 2, … of label maps, told apart with any color vision (after Okabe and Ito).
pub const CLASSES: [Color; 7] = [
    Color(0xe6, 0x9f, 0x00),
    Color(0x56, 0xb4, 0xe9),
    Color(0xcc, 0x79, 0xa7),
    Color(0x00, 0x9e, 0x73),
    Color(0xf0, 0xe4, 0x42),
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x72, 0xb2),
];

/// Text and axes.
pub const INK: Color = Color(0x22, 0x22, 0x22);
/// Secondary text.
pub const FAINT: Color = Color(0x66, 0x66, 0x66);
/// Lines that only guide the eye.
pub const RULE: Color = Color(0xd9, 0xd9, 0xd9);
/// The background of figures.
pub const PAPER: Color = Color(0xff, 0xff, 0xff);

/// The color of samples among others.
pub const SAMPLE: Color = CLASSES[6];
/// The color of the mean prediction among samples.
pub const PREDICTION: Color = CLASSES[5];

/// The color of the thing with a number among several in one figure. Dark ones first: yellow is hard to see on paper.
pub fn distinct(place: usize) -> Color {
    const ORDER: [usize; 6] = [6, 5, 3, 2, 1, 0];
    CLASSES[ORDER[place % ORDER.len()]]
}

/// The color of a class above 0.
pub fn class(label: u8) -> Color {
    CLASSES[usize::from(label.max(1) - 1) % CLASSES.len()]
}

const OFF: Color = Color(0xf3, 0xef, 0xe6);
const ON: Color = Color(0x14, 0x3d, 0x6b);
const NEGATIVE: Color = Color(0x4b, 0x2e, 0x83);
const ZERO: Color = Color(0xf7, 0xf7, 0xf7);
const POSITIVE: Color = Color(0xc8, 0x57, 0x00);

/// A probability in 0 … 1, from light to dark.
pub fn probability(p: f64) -> Color {
    OFF.towards(ON, p.clamp(0.0, 1.0))
}

/// A signed value in −1 … 1: purple below zero, orange above, near white at zero.
pub fn signed(x: f64) -> Color {
    let end = if x < 0.0 { NEGATIVE } else { POSITIVE };
    ZERO.towards(end, x.abs().min(1.0))
}
