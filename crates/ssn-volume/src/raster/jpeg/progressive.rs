//! Scans of progressive pictures: some coefficients, or one more bit of them, of all blocks (T.81, annex G).

use super::bits::Bits;
use super::damaged;
use super::huffman::Table;
use super::scan::next_dc;
use super::transform::ZIGZAG;
use crate::error::Problem;

/// The largest shift of coefficients (T.81, B.2.3).
const MOST_SHIFT: u8 = 13;

/// Which coefficients, and which of their bits, a scan holds.
#[derive(Debug, Clone, Copy)]
pub struct Band {
    pub first: usize,
    pub last: usize,
    /// The lowest bit that was known before; 0 in the first scan of a coefficient.
    pub high: u8,
    /// The lowest bit that is known afterwards.
    pub low: u8,
}

impl Band {
    /// Refuses bands that mix DC with others, or have several components where only one is allowed.
    pub fn check(&self, components: usize) -> Result<(), Problem> {
        let dc = self.first == 0 && self.last == 0;
        let ac = 1 <= self.first && self.first <= self.last && self.last < 64 && components == 1;
        let refines = self.high == 0 || self.high == self.low + 1;
        if (dc || ac) && refines && self.low <= MOST_SHIFT {
            return Ok(());
        }
        Err(damaged("a progressive scan has impossible bounds"))
    }

    /// Notes what is known after the scan; every bit must come once and in its turn.
    pub fn mark(&self, known: &mut [Option<u8>; 64]) -> Result<(), Problem> {
        let before = (self.high > 0).then_some(self.high);
        if known[self.first..=self.last].iter().any(|&bit| bit != before) {
            return Err(damaged("a scan repeats or leaves out part of the coefficients"));
        }
        known[self.first..=self.last].fill(Some(self.low));
        Ok(())
    }

    /// Decodes what the scan holds of one block. `run` counts blocks without further coefficients.
    pub fn decode(
        &self,
        bits: &mut Bits<'_>,
        table: Option<&Table>,
        block: &mut [i16; 64],
        last: &mut i32,
        run: &mut u32,
    ) -> Result<(), Problem> {
        let table = || table.ok_or_else(|| damaged("a Huffman table is missing"));
        match (self.first, self.high) {
            (0, 0) => {
                let value = next_dc(bits, table()?, last)?;
                block[0] =
                    i16::try_from(value << self.low).map_err(|_| damaged("a coefficient is out of range"))?;
                Ok(())
            }
            (0, _) => {
                block[0] |= (bits.take(1)? as i16) << self.low;
                Ok(())
            }
            (_, 0) if *run > 0 => {
                *run -= 1;
                Ok(())
            }
            (_, 0) => self.first_bits(bits, table()?, block, run),
            _ => self.next_bit(bits, table()?, block, run),
        }
    }

    /// The first scan of coefficients (T.81, G.1.2.2).
    fn first_bits(
        &self,
        bits: &mut Bits<'_>,
        table: &Table,
        block: &mut [i16; 64],
        run: &mut u32,
    ) -> Result<(), Problem> {
        let mut k = self.first;
        while k <= self.last {
            let symbol = table.decode(bits)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            match (zeros, size) {
                (15, 0) => k += 16,
                (length, 0) => {
                    // This block is the first of the run.
                    *run = (1 << length) + u32::from(bits.take(length)?) - 1;
                    return Ok(());
                }
                _ => {
                    k += zeros as usize;
                    if k > self.last {
                        return Err(beyond());
                    }
                    let value = bits.signed(size)? << self.low;
                    block[ZIGZAG[k]] =
                        i16::try_from(value).map_err(|_| damaged("a coefficient is out of range"))?;
                    k += 1;
                }
            }
        }
        if k > self.last + 1 { Err(beyond()) } else { Ok(()) }
    }

    /// One more bit of coefficients (T.81, G.1.2.3).
    fn next_bit(
        &self,
        bits: &mut Bits<'_>,
        table: &Table,
        block: &mut [i16; 64],
        run: &mut u32,
    ) -> Result<(), Problem> {
        let bit = 1i16 << self.low;
        let mut k = self.first;
        while *run == 0 && k <= self.last {
            let symbol = table.decode(bits)?;
            let zeros = u32::from(symbol >> 4);
            let value = match symbol & 15 {
                0 if zeros < 15 => {
                    *run = (1 << zeros) + u32::from(bits.take(zeros)?);
                    break;
                }
                0 => 0,
                1 if bits.take(1)? == 1 => bit,
                1 => -bit,
                _ => return Err(damaged("a refined coefficient is out of range")),
            };
            k = self.refine(bits, block, k, zeros)?;
            if k > self.last {
                return Err(beyond());
            }
            if value != 0 {
                block[ZIGZAG[k]] = value;
            }
            k += 1;
        }
        if *run > 0 {
            self.refine(bits, block, k, u32::MAX)?;
            *run -= 1;
        }
        Ok(())
    }

    /// Takes a bit for every coefficient that is not zero, until `zeros` zeros have been passed; returns the
    /// place of the next zero, or one beyond the band.
    fn refine(
        &self,
        bits: &mut Bits<'_>,
        block: &mut [i16; 64],
        start: usize,
        mut zeros: u32,
    ) -> Result<usize, Problem> {
        let bit = 1i16 << self.low;
        for k in start..=self.last {
            let coefficient = &mut block[ZIGZAG[k]];
            if *coefficient == 0 {
                if zeros == 0 {
                    return Ok(k);
                }
                zeros -= 1;
            } else if bits.take(1)? == 1 && *coefficient & bit == 0 {
                *coefficient = coefficient.saturating_add(if *coefficient > 0 { bit } else { -bit });
            }
        }
        Ok(self.last + 1)
    }
}

fn beyond() -> Problem {
    damaged("a block has coefficients beyond its band")
}
