//! Huffman codes (T.81, annex C).

use super::bits::Bits;
use super::damaged;
use crate::error::Problem;

const LONGEST: usize = 16;
/// Codes up to this length are found in one step.
const FAST: u32 = 8;

/// A table of codes.
pub struct Table {
    /// For the first eight bits: length and symbol of a code that is not longer, or length 0.
    fast: [(u8, u8); 1 << FAST],
    /// For each length, one more than the last code, moved to the top of 16 bits; 0 where there is none.
    limit: [u32; LONGEST + 1],
    /// For each length, the index of the symbol of code 0.
    offset: [i32; LONGEST + 1],
    symbols: Vec<u8>,
}

impl Table {
    /// From the number of codes of each length, and the symbols in the order of their codes.
    pub fn new(counts: &[u8; LONGEST], symbols: &[u8]) -> Result<Self, Problem> {
        let mut table = Self {
            fast: [(0, 0); 1 << FAST],
            limit: [0; LONGEST + 1],
            offset: [0; LONGEST + 1],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0u32, 0usize);
        for length in 1..=LONGEST {
            let count = u32::from(counts[length - 1]);
            if code + count > 1 << length {
                return Err(damaged("a Huffman table has more codes than there can be"));
            }
            table.offset[length] = index as i32 - code as i32;
            for _ in 0..count {
                let symbol = *symbols.get(index).ok_or_else(|| damaged("a Huffman table is incomplete"))?;
                if length <= FAST as usize {
                    let room = FAST as usize - length;
                    let first = (code as usize) << room;
                    table.fast[first..first + (1 << room)].fill((length as u8, symbol));
                }
                code += 1;
                index += 1;
            }
            table.limit[length] = if count > 0 { code << (LONGEST - length) } else { 0 };
            code <<= 1;
        }
        Ok(table)
    }

    /// The next symbol.
    pub fn decode(&self, bits: &mut Bits<'_>) -> Result<u8, Problem> {
        let (next, _) = bits.peek();
        let (length, symbol) = self.fast[usize::from(next >> FAST)];
        if length > 0 {
            bits.skip(length.into())?;
            return Ok(symbol);
        }
        for length in FAST as usize + 1..=LONGEST {
            if u32::from(next) < self.limit[length] {
                bits.skip(length as u32)?;
                let index = i32::from(next >> (LONGEST - length)) + self.offset[length];
                let symbol = usize::try_from(index).ok().and_then(|index| self.symbols.get(index));
                return symbol.copied().ok_or_else(unknown);
            }
        }
        bits.skip(LONGEST as u32)?;
        Err(unknown())
    }
}

fn unknown() -> Problem {
    damaged("a code that its Huffman table does not have")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_codes_are_found() {
        // 0 → 7; 10 → 8; a code of ten bits, 11 0000 0000 → 9.
        let mut counts = [0; 16];
        (counts[0], counts[1], counts[9]) = (1, 1, 1);
        let table = Table::new(&counts, &[7, 8, 9]).unwrap();
        let mut bits = Bits::new(&[0b0101_1000, 0b0000_0111, 0b1111_1110, 0b1111_1110], 0);
        assert_eq!([7, 8, 9], [(); 3].map(|()| table.decode(&mut bits).unwrap()));
        assert!(table.decode(&mut bits).unwrap_err().to_string().contains("does not have"));
    }

    #[test]
    fn impossible_tables_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 3;
        assert!(Table::new(&counts, &[1, 2, 3]).is_err());
        counts[0] = 2;
        assert!(Table::new(&counts, &[1]).is_err());
    }
}
