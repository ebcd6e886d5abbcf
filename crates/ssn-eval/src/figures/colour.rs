//! Colours that people with any colour vision can tell apart, and that survive printing.

/// An sRGB colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// As SVG writes it.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The colour at `t` in 0 … 1 on the way to `other`.
    pub fn towards(self, other: Self, t: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * t).round() as u8;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

/// The colours of classes 1, 2, … of label maps, told apart with any colour vision (after Okabe and Ito).
pub const CLASSES: [Colour; 7] = [
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xf0, 0xe4, 0x42),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x72, 0xb2),
];

/// Text and axes.
pub const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Secondary text.
pub const FAINT: Colour = Colour(0x66, 0x66, 0x66);
/// Lines that only guide the eye.
pub const RULE: Colour = Colour(0xd9, 0xd9, 0xd9);
/// The background of figures.
pub const PAPER: Colour = Colour(0xff, 0xff, 0xff);

/// The colour of samples among others.
pub const SAMPLE: Colour = CLASSES[6];
/// The colour of the mean prediction among samples.
pub const PREDICTION: Colour = CLASSES[5];

/// The colour of the thing with a number among several in one figure. Dark ones first: yellow is hard to see on paper.
pub fn distinct(place: usize) -> Colour {
    const ORDER: [usize; 6] = [6, 5, 3, 2, 1, 0];
    CLASSES[ORDER[place % ORDER.len()]]
}

/// The colour of a class above 0.
pub fn class(label: u8) -> Colour {
    CLASSES[usize::from(label.max(1) - 1) % CLASSES.len()]
}

const OFF: Colour = Colour(0xf3, 0xef, 0xe6);
const ON: Colour = Colour(0x14, 0x3d, 0x6b);
const NEGATIVE: Colour = Colour(0x4b, 0x2e, 0x83);
const ZERO: Colour = Colour(0xf7, 0xf7, 0xf7);
const POSITIVE: Colour = Colour(0xc8, 0x57, 0x00);

/// A probability in 0 … 1, from light to dark.
pub fn probability(p: f64) -> Colour {
    OFF.towards(ON, p.clamp(0.0, 1.0))
}

/// A signed value in −1 … 1: purple below zero, orange above, near white at zero.
pub fn signed(x: f64) -> Colour {
    let end = if x < 0.0 { NEGATIVE } else { POSITIVE };
    ZERO.towards(end, x.abs().min(1.0))
}
