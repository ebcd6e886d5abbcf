//! The bytes of a pickle as they arrive, plain or out of gzip.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::budget::Budget;
use crate::error::Problem;
use crate::limits::Limits;

/// Text lines of the old protocols end within this many bytes: they hold numbers, names and texts.
const LONGEST_LINE: u64 = 1 << 20;
const BUFFER: usize = 1 << 16;

/// Where the machine reads from.
pub(super) struct Source<'a> {
    reader: Box<dyn BufRead + 'a>,
    position: u64,
    limit: u64,
}

impl<'a> Source<'a> {
    /// Bytes that are the pickle itself.
    pub(super) fn plain(bytes: &'a [u8]) -> Self {
        Self { reader: Box::new(bytes), position: 0, limit: bytes.len() as u64 }
    }

    /// Bytes of a gzip file, expanded on the way.
    pub(super) fn gzip(bytes: &'a [u8], limits: &Limits) -> Self {
        let reader = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(bytes));
        Self { reader: Box::new(reader), position: 0, limit: limits.expanded_bytes }
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, Problem> {
        let next = self.reader.fill_buf().map_err(damaged)?.first().copied();
        let byte = next.ok_or_else(|| self.truncated(1, 0))?;
        self.reader.consume(1);
        self.advance(1)?;
        Ok(byte)
    }

    /// The next few bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => self.advance(N as u64).map(|()| bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.truncated(N as u64, 0)),
            Err(error) => Err(damaged(error)),
        }
    }

    /// The next `count` bytes; memory grows while they arrive.
    pub(super) fn block(&mut self, count: u64, budget: &mut Budget) -> Result<Vec<u8>, Problem> {
        let mut block = vec![];
        while (block.len() as u64) < count {
            let missing = count - block.len() as u64;
            let available = self.reader.fill_buf().map_err(damaged)?;
            if available.is_empty() {
                return Err(self.truncated(count, block.len() as u64));
            }
            let taken = available.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            budget.add_content(taken as u64)?;
            if block.is_empty() && taken as u64 == count {
                block.reserve_exact(taken);
            }
            block.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            self.advance(taken as u64)?;
        }
        block.shrink_to_fit();
        Ok(block)
    }

    /// The bytes up to the end of the line, without it.
    pub(super) fn line(&mut self, budget: &mut Budget) -> Result<Vec<u8>, Problem> {
        let mut line = vec![];
        let count = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(damaged)?;
        self.advance(count as u64)?;
        budget.add_content(count as u64)?;
        if line.pop() == Some(b'\n') {
            return Ok(line);
        }
        if count as u64 == LONGEST_LINE {
            return Err(Problem::Field {
                field: "a text line of the pickle",
                found: format!("longer than {LONGEST_LINE} bytes"),
                allowed: "a number, a name or a short text",
                advice: "save the file again with protocol 4",
            });
        }
        Err(self.truncated(count as u64 + 1, count as u64))
    }

    /// Refuses bytes after the end of the pickle, and verifies the check sum where there is one.
    pub(super) fn expect_end(mut self) -> Result<(), Problem> {
        if self.reader.fill_buf().map_err(damaged)?.is_empty() {
            return Ok(());
        }
        Err(Problem::Field {
            field: "the end of the pickle",
            found: format!("at byte {}, with more bytes behind it", self.position),
            allowed: "the end of the file",
            advice: "the file holds several pickles or was damaged: save one object in one file",
        })
    }

    /// How many bytes were read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    fn advance(&mut self, count: u64) -> Result<(), Problem> {
        self.position += count;
        if self.position <= self.limit { Ok(()) } else { Err(too_long(self.position, self.limit)) }
    }

    fn truncated(&self, needed: u64, found: u64) -> Problem {
        let (needed, found) = (self.position.saturating_add(needed - found), self.position);
        Problem::Truncated { part: "the pickle", needed, found }
    }
}

/// Expands a gzip file without keeping it, verifies it to the end, and gives the expanded length.
pub(super) fn verify_gzip(bytes: &[u8], limits: &Limits) -> Result<u64, Problem> {
    let mut decoder = MultiGzDecoder::new(bytes);
    let mut buffer = vec![0; BUFFER];
    let mut found = 0u64;
    loop {
        match decoder.read(&mut buffer).map_err(damaged)? {
            0 => return Ok(found),
            count => found += count as u64,
        }
        if found > limits.expanded_bytes {
            return Err(too_long(found, limits.expanded_bytes));
        }
    }
}

fn too_long(found: u64, limit: u64) -> Problem {
    Problem::Limit { what: "the expanded size", found, limit, name: "expanded_bytes" }
}

fn damaged(error: io::Error) -> Problem {
    Problem::Damaged { part: "the compressed data", reason: error.to_string() }
}
