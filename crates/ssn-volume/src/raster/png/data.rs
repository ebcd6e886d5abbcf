//! The compressed data of a PNG file, verified on their own.
//!
//! Decoders stop when the last row has arrived. Whether the data end there, and with the right check sum, is
//! only known at the end of the stream.

use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;

use crate::error::Problem;

/// Bytes before the first chunk (PNG specification, 5.2).
const SIGNATURE: usize = 8;
const BUFFER: usize = 1 << 16;

/// Expands the data of all `IDAT` chunks without keeping them: there must be exactly `expected` bytes, and
/// their check sum must be right.
pub(super) fn verify(bytes: &[u8], expected: u64) -> Result<(), Problem> {
    let part = "the data of the picture";
    let rest = bytes.get(SIGNATURE..).unwrap_or_default();
    let mut decoder = ZlibDecoder::new(Data { rest, chunk: &[] });
    let mut buffer = vec![0; BUFFER];
    let mut found = 0u64;
    loop {
        let count = decoder
            .read(&mut buffer)
            .map_err(|error| Problem::Damaged { part, reason: error.to_string() })?;
        found += count as u64;
        if found > expected {
            let reason = format!("more than the {expected} bytes of its rows");
            return Err(Problem::Damaged { part, reason });
        }
        if count == 0 && found < expected {
            return Err(Problem::Truncated { part, needed: expected, found });
        }
        if count == 0 {
            return Ok(());
        }
    }
}

/// The contents of the `IDAT` chunks, one after the other.
struct Data<'a> {
    /// What follows the current chunk.
    rest: &'a [u8],
    /// What is left of its content.
    chunk: &'a [u8],
}

impl Data<'_> {
    /// Goes to the next chunk; nothing if there is none or it is cut off.
    fn next(&mut self) -> Option<()> {
        let (length, rest) = self.rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (content, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        self.rest = rest.get(4..)?;
        self.chunk = if kind == b"IDAT" { content } else { &[] };
        Some(())
    }
}

impl Read for Data<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Data<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() && self.next().is_some() {}
        Ok(self.chunk)
    }

    fn consume(&mut self, count: usize) {
        self.chunk = &self.chunk[count.min(self.chunk.len())..];
    }
}
