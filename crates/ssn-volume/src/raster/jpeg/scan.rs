//! One scan: which blocks of which components its data hold, and baseline blocks themselves.

use super::bits::Bits;
use super::damaged;
use super::frame::Frame;
use super::huffman::Table;
use super::progressive::Band;
use super::transform::ZIGZAG;
use crate::error::Problem;

/// Huffman tables, which change between scans.
#[derive(Default)]
pub struct Tables {
    pub dc: [Option<Table>; 4],
    pub ac: [Option<Table>; 4],
    /// Units between restarts; 0 for none.
    pub restart: usize,
}

/// A component in a scan.
struct Part {
    component: usize,
    dc: usize,
    ac: usize,
    /// The last DC coefficient.
    last: i32,
}

/// What a scan header says.
pub struct Scan {
    parts: Vec<Part>,
    band: Band,
}

impl Scan {
    /// From the content of a scan header.
    pub fn new(content: &[u8], frame: &Frame) -> Result<Self, Problem> {
        let wrong = || damaged("a scan header contradicts the frame");
        let [count, rest @ ..] = content else { return Err(wrong()) };
        let count = usize::from(*count);
        if count == 0 || count > frame.components.len() || rest.len() != 2 * count + 3 {
            return Err(wrong());
        }
        let mut parts: Vec<Part> = vec![];
        for &[id, tables] in rest[..2 * count].as_chunks().0 {
            let component = frame.components.iter().position(|c| c.id == id).ok_or_else(wrong)?;
            let (dc, ac) = (usize::from(tables >> 4), usize::from(tables & 15));
            if dc > 3 || ac > 3 || parts.iter().any(|part| part.component == component) {
                return Err(wrong());
            }
            parts.push(Part { component, dc, ac, last: 0 });
        }
        let [first, last, high_low] = rest[2 * count..] else { return Err(wrong()) };
        let band = Band { first: first.into(), last: last.into(), high: high_low >> 4, low: high_low & 15 };
        if frame.progressive {
            band.check(count)?;
        } else if (first, last, high_low) != (0, 63, 0) {
            return Err(wrong());
        }
        Ok(Self { parts, band })
    }

    /// Decodes the data from `at` on; returns the place of the marker after them.
    pub fn decode(
        mut self,
        bytes: &[u8],
        at: usize,
        frame: &mut Frame,
        tables: &Tables,
        quantisation: &[Option<[u16; 64]>; 4],
    ) -> Result<usize, Problem> {
        for part in &self.parts {
            let component = &mut frame.components[part.component];
            let table = quantisation[component.table];
            component.quantisation = component.quantisation.or(table);
            self.band.mark(&mut component.known)?;
        }
        let units = self.units(frame);
        let mut bits = Bits::new(bytes, at);
        let mut run = 0;
        let mut restarts = 0;
        for unit in 0..units[0] * units[1] {
            if tables.restart > 0 && unit > 0 && unit.is_multiple_of(tables.restart) {
                let marker = bits.end()?;
                if bytes.get(marker..marker + 2) != Some(&[0xff, 0xd0 + restarts % 8]) || run > 0 {
                    return Err(damaged("a restart marker is missing or out of order"));
                }
                bits = Bits::new(bytes, marker + 2);
                restarts = (restarts + 1) % 8;
                self.parts.iter_mut().for_each(|part| part.last = 0);
            }
            self.unit([unit % units[0], unit / units[0]], &mut bits, &mut run, frame, tables)?;
        }
        if run > 0 {
            return Err(damaged("a run of empty blocks goes beyond the picture"));
        }
        bits.end()
    }

    /// Units along x and y: single blocks of a lone component, otherwise blocks of all (T.81, A.2.2 and
    /// A.2.3).
    fn units(&self, frame: &Frame) -> [usize; 2] {
        match &self.parts[..] {
            [part] => frame.components[part.component].size.map(|n| n.div_ceil(8)),
            _ => [frame.width.div_ceil(8 * frame.sampling[0]), frame.height.div_ceil(8 * frame.sampling[1])],
        }
    }

    fn unit(
        &mut self,
        [x, y]: [usize; 2],
        bits: &mut Bits<'_>,
        run: &mut u32,
        frame: &mut Frame,
        tables: &Tables,
    ) -> Result<(), Problem> {
        let alone = self.parts.len() == 1;
        for part in &mut self.parts {
            let component = &mut frame.components[part.component];
            let [across, down] = if alone { [1, 1] } else { component.sampling };
            let missing = || damaged("a Huffman table is missing");
            for block in 0..across * down {
                let place = [x * across + block % across, y * down + block / across];
                if frame.progressive {
                    let at = 64 * (place[1] * component.blocks[0] + place[0]);
                    let coefficients = (&mut component.coefficients[at..at + 64])
                        .try_into()
                        .map_err(|_| damaged("a block lies outside"))?;
                    let table = if self.band.first == 0 { &tables.dc[part.dc] } else { &tables.ac[part.ac] };
                    self.band.decode(bits, table.as_ref(), coefficients, &mut part.last, run)?;
                } else {
                    let dc = tables.dc[part.dc].as_ref().ok_or_else(missing)?;
                    let ac = tables.ac[part.ac].as_ref().ok_or_else(missing)?;
                    let coefficients = baseline(bits, dc, ac, &mut part.last)?;
                    component.put(place, &coefficients)?;
                }
            }
        }
        Ok(())
    }
}

/// The next DC coefficient: the last one and a difference.
pub fn next_dc(bits: &mut Bits<'_>, table: &Table, last: &mut i32) -> Result<i32, Problem> {
    let size = table.decode(bits)?;
    // Differences of samples of 8 bit have at most 11 bits (T.81, table F.1).
    if size > 11 {
        return Err(damaged("a coefficient is out of range"));
    }
    *last += bits.signed(size.into())?;
    if i16::try_from(*last).is_err() {
        return Err(damaged("a coefficient is out of range"));
    }
    Ok(*last)
}

/// All coefficients of a block (T.81, F.2.2).
fn baseline(bits: &mut Bits<'_>, dc: &Table, ac: &Table, last: &mut i32) -> Result<[i16; 64], Problem> {
    let mut block = [0; 64];
    block[0] = next_dc(bits, dc, last)? as i16;
    let mut k = 1;
    while k < 64 {
        let symbol = ac.decode(bits)?;
        let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        match (zeros, size) {
            (15, 0) => k += 16,
            (0, 0) => break,
            (_, 0) => return Err(damaged("an undefined code for zeros")),
            _ => {
                k += zeros;
                let place = *ZIGZAG.get(k).ok_or_else(too_many)?;
                block[place] = bits.signed(size)? as i16;
                k += 1;
            }
        }
    }
    if k > 64 {
        return Err(too_many());
    }
    Ok(block)
}

fn too_many() -> Problem {
    damaged("a block has more than 64 coefficients")
}
