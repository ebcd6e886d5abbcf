//! Small pictures inside figures: slices with label maps on them.

use std::collections::{BTreeMap, BTreeSet};

use super::svg::{Color, class as class_color};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How much of a class's color is laid over the image inside a contour.
const FILL: f64 = 0.22;

/// A contour is a pixel thick for so many pixels along the longer side: it looks the same in every picture.
const CONTOUR: usize = 96;
/// The thickness of the outline of a box.
const OUTLINE: usize = 2;
/// Steps of gray between black and white.
const LEVELS: f32 = 63.0;

/// A picture of so many pixels, rows from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    pixels: Vec<Color>,
}

impl Picture {
    /// An image `[h, w]` of gray values from `low` (black) to `high` (white), each pixel enlarged `zoom` times.
    pub fn gray(values: &[f32], width: usize, [low, high]: [f32; 2], zoom: usize) -> Self {
        let span = (high - low).max(f32::MIN_POSITIVE);
        let shade = |x: &f32| {
            let level = ((x - low) / span).clamp(0.0, 1.0);
            // Few levels make small files, and in pictures of this size nobody sees the steps.
            let level = ((level * LEVELS).round() * (255.0 / LEVELS)).round() as u8;
            Color(level, level, level)
        };
        Self { width, pixels: values.iter().map(shade).collect() }.enlarged(zoom)
    }

    /// Values `[h, w]`, each in the color that it has.
    pub fn colored(values: &[f32], width: usize, color: impl Fn(f32) -> Color, zoom: usize) -> Self {
        Self { width, pixels: values.iter().map(|&x| color(x)).collect() }.enlarged(zoom)
    }

    /// The same with the outline of a box of rows and columns, in pixels of the picture.
    pub fn with_box(mut self, rows: [usize; 2], columns: [usize; 2], color: Color) -> Self {
        let width = self.width.max(1);
        for (index, pixel) in self.pixels.iter_mut().enumerate() {
            let (y, x) = (index / width, index % width);
            let inside = (rows[0]..rows[1]).contains(&y) && (columns[0]..columns[1]).contains(&x);
            let near = |at: usize, [start, end]: [usize; 2]| at < start + OUTLINE || at + OUTLINE >= end;
            let edge = near(y, rows) || near(x, columns);
            if inside && edge {
                *pixel = color;
            }
        }
        self
    }

    fn enlarged(self, zoom: usize) -> Self {
        let rows = self.pixels.chunks(self.width.max(1));
        let wide = rows.flat_map(|row| {
            let row: Vec<Color> = row.iter().flat_map(|pixel| std::iter::repeat_n(*pixel, zoom)).collect();
            std::iter::repeat_n(row, zoom).flatten()
        });
        Self { width: self.width * zoom, pixels: wide.collect() }
    }

    /// The same with a label map `[h, w]` on it: a thin fill and a contour in the color of each class.
    pub fn with_labels(mut self, labels: &[u8], width: usize) -> Self {
        let (height, zoom) = (labels.len() / width.max(1), self.width / width.max(1));
        let thickness = self.width.max(self.height()).div_ceil(CONTOUR) as isize;
        let class = |y: isize, x: isize| {
            let inside =
                (0..(height * zoom) as isize).contains(&y) && (0..(width * zoom) as isize).contains(&x);
            if inside { labels[y as usize / zoom * width + x as usize / zoom] } else { 0 }
        };
        for (index, pixel) in self.pixels.iter_mut().enumerate() {
            let (y, x) = ((index / self.width) as isize, (index % self.width) as isize);
            let here = class(y, x);
            if here == 0 {
                continue;
            }
            let color = class_color(here);
            let border = (1..=thickness).any(|far| {
                [(-far, 0), (far, 0), (0, -far), (0, far)]
                    .iter()
                    .any(|(dy, dx)| class(y + dy, x + dx) != here)
            });
            *pixel = if border { color } else { pixel.towards(color, FILL) };
        }
        self
    }

    /// Pixels along a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width.max(1)
    }

    /// All colors in their order, if a byte can number them: a third of the size.
    fn palette(&self) -> Option<BTreeSet<(u8, u8, u8)>> {
        let (mut palette, mut last) = (BTreeSet::new(), None);
        for &Color(r, g, b) in &self.pixels {
            // Pixels are enlarged: most are like the one before.
            if last.replace((r, g, b)) == Some((r, g, b)) {
                continue;
            }
            palette.insert((r, g, b));
            if palette.len() > usize::from(u8::MAX) + 1 {
                return None;
            }
        }
        Some(palette)
    }

    /// The bytes of a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let mut out = vec![];
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height() as u32);
        encoder.set_compression(png::Compression::High);
        let bytes: Vec<u8> = match self.palette() {
            Some(palette) => {
                encoder.set_color(png::ColorType::Indexed);
                encoder.set_filter(png::Filter::NoFilter);
                encoder.set_palette(palette.iter().flat_map(|&(r, g, b)| [r, g, b]).collect::<Vec<u8>>());
                let numbers: BTreeMap<_, u8> = palette.into_iter().zip(0..=u8::MAX).collect();
                let mut last = ((0, 0, 0), numbers.get(&(0, 0, 0)).copied().unwrap_or_default());
                let number = |&Color(r, g, b): &Color| {
                    if last.0 != (r, g, b) {
                        last = ((r, g, b), numbers[&(r, g, b)]);
                    }
                    last.1
                };
                self.pixels.iter().map(number).collect()
            }
            None => {
                encoder.set_color(png::ColorType::Rgb);
                self.pixels.iter().flat_map(|Color(r, g, b)| [*r, *g, *b]).collect()
            }
        };
        // Writing to memory cannot fail, and the size is that of the pixels.
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&bytes));
        debug_assert!(written.is_ok());
        out
    }

    /// The picture as an address that holds it.
    pub fn data_uri(&self) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(self.png()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::svg::CLASSES;

    #[test]
    fn a_box_is_outlined() {
        let red = Color(255, 0, 0);
        let picture = Picture::colored(&[0.0; 16], 4, |_| Color(0, 0, 0), 2).with_box([2, 6], [0, 8], red);
        assert_eq!(picture.pixels.iter().filter(|pixel| **pixel == red).count(), 4 * 8);
    }

    #[test]
    fn a_file_gives_the_pixels_back() {
        let few = |x: f32| Color(x as u8 % 7, 3, 200);
        let many = |x: f32| Color((x / 40.0) as u8, x as u8, 9);
        let values: Vec<f32> = (0..40 * 30).map(|i| i as f32).collect();
        let check = |picture: Picture, colors: png::ColorType| {
            let mut decoder = png::Decoder::new(std::io::Cursor::new(picture.png()));
            decoder.set_transformations(png::Transformations::EXPAND);
            let mut reader = decoder.read_info().unwrap();
            assert_eq!(reader.info().color_type, colors);
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut bytes).unwrap();
            let pixels: Vec<Color> = bytes.chunks(3).map(|rgb| Color(rgb[0], rgb[1], rgb[2])).collect();
            assert!(pixels == picture.pixels);
        };
        check(Picture::colored(&values, 40, few, 1), png::ColorType::Indexed);
        check(Picture::colored(&values, 40, many, 1), png::ColorType::Rgb);
    }

    #[test]
    fn contours_lie_inside_their_class() {
        let labels = [0, 0, 0, 0, 1, 0, 0, 0, 0];
        let enlarged = |zoom| Picture::gray(&[0.0; 9], 3, [0.0, 1.0], zoom).with_labels(&labels, 3);
        let colored = |zoom| enlarged(zoom).pixels.iter().filter(|pixel| **pixel == CLASSES[0]).count();
        assert_eq!(
            (colored(6), colored(64)),
            (36 - 16, 64 * 64 - 60 * 60),
            "thicker where pixels are smaller"
        );
        let picture = Picture::gray(&[0.0; 36], 6, [0.0, 1.0], 1).with_labels(
            &(0..36).map(|i| u8::from(i % 6 > 1 && i % 6 < 5 && i / 6 > 1 && i / 6 < 5)).collect::<Vec<_>>(),
            6,
        );
        assert_eq!((picture.width(), picture.height()), (6, 6));
        let colored = picture.pixels.iter().filter(|pixel| **pixel == CLASSES[0]).count();
        let black = picture.pixels.iter().filter(|pixel| **pixel == Color(0, 0, 0)).count();
        assert_eq!((colored, black), (8, 27), "a ring around one filled pixel");
        assert!(picture.png().starts_with(b"\x89PNG"));
    }
}
