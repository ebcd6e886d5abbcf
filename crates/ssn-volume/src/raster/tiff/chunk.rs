//! Strips and tiles, expanded row by row.

use std::io::{self, Read};

use flate2::bufread::ZlibDecoder;
use weezl::{BitOrder, LzwStatus};

use super::super::unsupported;
use crate::error::Problem;

/// The kind of compression, by the numbers of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// None (1).
    None,
    /// LZW in the variant of TIFF 6.0 (5).
    Lzw,
    /// zlib (8, and 32946 of older writers).
    Deflate,
    /// Runs of bytes (32773).
    PackBits,
}

impl Compression {
    /// From the value of the tag.
    pub fn new(value: u64) -> Result<Self, Problem> {
        match value {
            1 => Ok(Self::None),
            5 => Ok(Self::Lzw),
            8 | 32946 => Ok(Self::Deflate),
            32773 => Ok(Self::PackBits),
            other => {
                let name = match other {
                    2..=4 => " (fax)",
                    6 | 7 => " (JPEG)",
                    50000 => " (Zstandard)",
                    _ => "",
                };
                Err(unsupported(
                    format!("the TIFF compression {other}{name}"),
                    "save the picture without compression, or with deflate or LZW",
                ))
            }
        }
    }

    /// The expanded bytes of a chunk, as they arrive.
    pub fn reader(self, bytes: &[u8]) -> Result<Box<dyn Read + '_>, Problem> {
        Ok(match self {
            Self::None => Box::new(bytes),
            Self::Deflate => Box::new(ZlibDecoder::new(bytes)),
            Self::PackBits => Box::new(PackBits { input: bytes, run: Run::Copied(0) }),
            Self::Lzw => {
                // Every stream of TIFF 6.0 starts with the clear code 256 in 9 bits, the highest first.
                // Streams of older writers are packed the other way round.
                if bytes[0] != 0x80 {
                    return Err(unsupported(
                        "LZW of the time before TIFF 6.0",
                        "save the picture with deflate",
                    ));
                }
                let decoder = weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
                Box::new(Lzw { decoder, input: bytes })
            }
        })
    }
}

/// Fills a row; `Ok(false)` if the data end before it is full.
pub fn fill_row(reader: &mut dyn Read, row: &mut [u8]) -> Result<bool, Problem> {
    match reader.read_exact(row) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(damaged(&error)),
    }
}

/// Whether nothing is left; of deflated data this also verifies the check sum.
pub fn at_end(reader: &mut dyn Read) -> Result<bool, Problem> {
    reader.read(&mut [0]).map(|count| count == 0).map_err(|error| damaged(&error))
}

fn damaged(error: &io::Error) -> Problem {
    Problem::Damaged { part: "a strip or tile of the TIFF file", reason: error.to_string() }
}

struct Lzw<'a> {
    decoder: weezl::decode::Decoder,
    input: &'a [u8],
}

impl Read for Lzw<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = self.decoder.decode_bytes(self.input, out);
            self.input = &self.input[result.consumed_in..];
            let status = result.status.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let stuck = result.consumed_in == 0 || !matches!(status, LzwStatus::Ok);
            if result.consumed_out > 0 || stuck || out.is_empty() {
                return Ok(result.consumed_out);
            }
        }
    }
}

/// What a run still has to give.
#[derive(Clone, Copy)]
enum Run {
    /// So many bytes of the input.
    Copied(usize),
    /// A byte so many times.
    Repeated(u8, usize),
}

struct PackBits<'a> {
    input: &'a [u8],
    run: Run,
}

impl Read for PackBits<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Run::Copied(0) | Run::Repeated(_, 0) = self.run {
            self.run = match *self.input {
                [] => return Ok(0),
                // 128 stands for nothing.
                [128, ..] => Run::Copied(0),
                [n @ 0..128, ..] => Run::Copied(usize::from(n) + 1),
                [n, byte, ..] => Run::Repeated(byte, 257 - usize::from(n)),
                [_] => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            let header = if matches!(self.run, Run::Repeated(..)) { 2 } else { 1 };
            self.input = &self.input[header..];
        }
        match &mut self.run {
            Run::Copied(left) => {
                let count = out.len().min(*left).min(self.input.len());
                if count == 0 && !out.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                out[..count].copy_from_slice(&self.input[..count]);
                self.input = &self.input[count..];
                *left -= count;
                Ok(count)
            }
            Run::Repeated(byte, left) => {
                let count = out.len().min(*left);
                out[..count].fill(*byte);
                *left -= count;
                Ok(count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bits_follow_the_example_of_the_specification() {
        // Apple Technical Note TN1023.
        let packed =
            [0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7, 0xaa];
        let mut out = vec![];
        Compression::PackBits.reader(&packed).unwrap().read_to_end(&mut out).unwrap();
        let mut expected =
            vec![0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0x22];
        expected.extend([0xaa; 10]);
        assert_eq!(out, expected);
        for cut in [&[0x02, 1, 2][..], &[0xfe]] {
            assert!(!fill_row(&mut *Compression::PackBits.reader(cut).unwrap(), &mut [0; 4]).unwrap());
        }
    }

    #[test]
    fn lzw_goes_round_in_small_reads() {
        let data: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 7) as u8).collect();
        let packed = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8).encode(&data).unwrap();
        let mut reader = Compression::Lzw.reader(&packed).unwrap();
        let mut out = vec![0; data.len()];
        for part in out.chunks_mut(7) {
            assert!(fill_row(&mut *reader, part).unwrap());
        }
        assert_eq!(out, data);
        assert!(at_end(&mut *reader).unwrap());
        assert!(Compression::Lzw.reader(&[0, 1, 2]).is_err());
    }
}
