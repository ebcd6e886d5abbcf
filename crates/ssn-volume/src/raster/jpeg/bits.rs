//! Single bits of the data of a scan.

use super::damaged;
use crate::error::Problem;

/// A place in the entropy-coded data. It never reads past a marker.
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte that has not been taken up.
    at: usize,
    /// Bits that have been taken up, the next one highest.
    held: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    /// Starts at a byte.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, held: 0, count: 0 }
    }

    /// Takes up bytes while there is room; a zero after 255 is stuffing.
    fn refill(&mut self) {
        while self.count <= 56 {
            let byte = match self.bytes.get(self.at..) {
                Some([255, 0, ..]) => {
                    self.at += 2;
                    255
                }
                Some([255, ..]) | Some([]) | None => return,
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// The next 16 bits, with zeros where there are no more, and how many there are.
    pub fn peek(&mut self) -> (u16, u32) {
        if self.count < 16 {
            self.refill();
        }
        ((self.held >> 48) as u16, self.count)
    }

    /// Leaves out bits that have been seen.
    pub fn skip(&mut self, count: u32) -> Result<(), Problem> {
        if count > self.count {
            return Err(damaged("the data of a scan end before the picture does"));
        }
        self.held = self.held.checked_shl(count).unwrap_or(0);
        self.count -= count;
        Ok(())
    }

    /// The next `count` ≤ 16 bits as a number.
    pub fn take(&mut self, count: u32) -> Result<u16, Problem> {
        if count == 0 {
            return Ok(0);
        }
        let (bits, _) = self.peek();
        self.skip(count)?;
        Ok(bits >> (16 - count))
    }

    /// A number of `count` ≤ 15 bits with its sign (T.81, F.2.2.1, EXTEND).
    pub fn signed(&mut self, count: u32) -> Result<i32, Problem> {
        let bits = i32::from(self.take(count)?);
        let negative = count > 0 && bits < 1 << (count - 1);
        Ok(if negative { bits - (1 << count) + 1 } else { bits })
    }

    /// The place of the marker that ends the data; all before it must be used, up to the padding of a byte.
    pub fn end(mut self) -> Result<usize, Problem> {
        self.refill();
        if self.count >= 8 {
            return Err(damaged("the data of a scan are longer than the picture"));
        }
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffing_is_removed_and_markers_end() {
        let mut bits = Bits::new(&[0xff, 0x00, 0xa0, 0xff, 0xd9], 0);
        assert_eq!(bits.take(12).unwrap(), 0xffa);
        assert_eq!(bits.peek(), (0, 4));
        assert_eq!(bits.end().unwrap(), 3);
        let mut bits = Bits::new(&[0x55, 0xff, 0xd9], 0);
        assert!(bits.take(9).unwrap_err().to_string().contains("end before"));
        assert!(Bits::new(&[1, 2, 0xff, 0xd9], 0).end().unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn signs_follow_the_first_bit() {
        let mut bits = Bits::new(&[0b0001_1100, 0b1010_0000], 0);
        assert_eq!(bits.signed(3).unwrap(), -7);
        assert_eq!(bits.signed(3).unwrap(), 7);
        assert_eq!(bits.signed(2).unwrap(), -3);
        assert_eq!(bits.signed(0).unwrap(), 0);
    }
}
