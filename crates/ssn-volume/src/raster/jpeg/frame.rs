//! The frame: size and components of a picture, and the memory for them.

use super::super::{field, unsupported};
use super::damaged;
use super::transform;
use crate::error::Problem;
use crate::limits::{Limits, memory_of};

/// Memory that a file of any size may ask for: enough for 25 million pixels of baseline grey, or 4 million of
/// progressive colour.
const FREE_BYTES: u64 = 48 << 20;
/// The size of a file from which on it may ask for more.
const SMALL_FILE: u64 = 1 << 20;
/// Memory for each byte beyond that. Photographs ask for 10 to 100.
const BYTES_PER_BYTE: u64 = 256;
/// Blocks of an interleaved unit (T.81, B.2.3).
const MOST_BLOCKS: usize = 10;

/// One colour, or the brightness.
pub struct Component {
    pub id: u8,
    /// Blocks of a unit along x and y.
    pub sampling: [usize; 2],
    /// Samples along x and y that belong to the picture.
    pub size: [usize; 2],
    /// Blocks along x and y that there is memory for: whole units.
    pub blocks: [usize; 2],
    /// Which quantisation table.
    pub table: usize,
    /// The table, from the first scan of the component on.
    pub quantisation: Option<[u16; 64]>,
    /// Samples in rows of `8 · blocks[0]`.
    pub plane: Vec<u8>,
    /// Coefficients block by block, of progressive pictures.
    pub coefficients: Vec<i16>,
    /// For every coefficient, the lowest bit that is known; nothing as long as none is.
    pub known: [Option<u8>; 64],
}

/// A picture while it is decoded.
pub struct Frame {
    pub width: usize,
    pub height: usize,
    pub progressive: bool,
    pub components: Vec<Component>,
    /// The largest sampling along x and y.
    pub sampling: [usize; 2],
}

impl Frame {
    /// From the content of a frame header, for a file of `stored` bytes.
    pub fn new(content: &[u8], progressive: bool, stored: u64, limits: &Limits) -> Result<Self, Problem> {
        let [bits, h1, h0, w1, w0, count, rest @ ..] = content else {
            return Err(damaged("the frame header is too short"));
        };
        if *bits != 8 {
            return Err(unsupported(format!("a JPEG of {bits} bit"), "save the picture as PNG of 16 bit"));
        }
        let height = usize::from(u16::from_be_bytes([*h1, *h0]));
        let width = usize::from(u16::from_be_bytes([*w1, *w0]));
        if width == 0 || height == 0 {
            let found = format!("{width} × {height} pixels");
            return Err(field("the size of the picture", found, "positive", "export the picture again"));
        }
        if !matches!(count, 1 | 3) {
            let what = format!("a JPEG with {count} components (such as CMYK)");
            return Err(unsupported(what, "save the picture in grey or RGB"));
        }
        let count = usize::from(*count);
        limits.check_values(&[count, height, width])?;
        let (parts, more) = rest.as_chunks::<3>();
        if parts.len() != count || !more.is_empty() {
            return Err(damaged("the frame header has a wrong length"));
        }
        let mut frame = Self { width, height, progressive, components: vec![], sampling: [1, 1] };
        for &[id, sampling, table] in parts {
            frame.add(id, [usize::from(sampling >> 4), usize::from(sampling & 15)], table)?;
        }
        frame.lay_out()?;
        frame.check_cost(stored, limits)?;
        for component in &mut frame.components {
            let samples = 64 * component.blocks[0] * component.blocks[1];
            component.plane = vec![0; samples];
            component.coefficients = if progressive { vec![0; samples] } else { vec![] };
        }
        Ok(frame)
    }

    fn add(&mut self, id: u8, sampling: [usize; 2], table: u8) -> Result<(), Problem> {
        let known = self.components.iter().any(|other| other.id == id);
        if known || sampling.iter().any(|n| !(1..=4).contains(n)) || table > 3 {
            return Err(damaged("the frame header describes a component wrongly"));
        }
        self.components.push(Component {
            id,
            sampling,
            size: [0; 2],
            blocks: [0; 2],
            table: table.into(),
            quantisation: None,
            plane: vec![],
            coefficients: vec![],
            known: [None; 64],
        });
        Ok(())
    }

    /// Sizes of the components (T.81, A.1.1 and A.2.4).
    fn lay_out(&mut self) -> Result<(), Problem> {
        let blocks: usize = self.components.iter().map(|c| c.sampling[0] * c.sampling[1]).sum();
        if self.components.len() > 1 && blocks > MOST_BLOCKS {
            return Err(damaged("the components have too many samples"));
        }
        for axis in 0..2 {
            let most = self.components.iter().map(|c| c.sampling[axis]).max().unwrap_or(1);
            self.sampling[axis] = most;
            let pixels = [self.width, self.height][axis];
            for component in &mut self.components {
                let own = component.sampling[axis];
                if !most.is_multiple_of(own) {
                    return Err(unsupported(
                        "a JPEG whose colours have an odd size",
                        "save the picture as PNG",
                    ));
                }
                component.size[axis] = (pixels * own).div_ceil(most);
                component.blocks[axis] = pixels.div_ceil(8 * most) * own;
            }
        }
        Ok(())
    }

    /// Refuses a picture that would cost more memory than the file is believed to need.
    fn check_cost(&self, stored: u64, limits: &Limits) -> Result<(), Problem> {
        let per_sample = if self.progressive { 3 } else { 1 };
        let samples: usize = self.components.iter().map(|c| 64 * c.blocks[0] * c.blocks[1]).sum();
        let values = self.components.len() * self.width * self.height;
        let cost = (samples * per_sample + values) as u64;
        limits.check_memory(cost.max(memory_of(values as u64, 1)), stored)?;
        let allowed =
            stored.saturating_sub(SMALL_FILE).saturating_mul(BYTES_PER_BYTE).saturating_add(FREE_BYTES);
        if cost <= allowed {
            return Ok(());
        }
        Err(field(
            "the size of the picture",
            format!("{} × {} pixels in a file of {stored} bytes", self.width, self.height),
            "what such a file is likely to hold",
            "if the picture is genuine, save it as PNG",
        ))
    }
}

impl Component {
    /// Puts the samples of a block.
    pub fn put(&mut self, [x, y]: [usize; 2], coefficients: &[i16; 64]) -> Result<(), Problem> {
        let table = self.quantisation.as_ref().ok_or_else(|| damaged("a quantisation table is missing"))?;
        let stride = 8 * self.blocks[0];
        transform::inverse(coefficients, table, &mut self.plane[8 * y * stride + 8 * x..], stride);
        Ok(())
    }

    /// Turns all coefficients into samples.
    pub fn finish(&mut self) -> Result<(), Problem> {
        let coefficients = std::mem::take(&mut self.coefficients);
        for (i, block) in coefficients.as_chunks().0.iter().enumerate() {
            self.put([i % self.blocks[0], i / self.blocks[0]], block)?;
        }
        Ok(())
    }
}
