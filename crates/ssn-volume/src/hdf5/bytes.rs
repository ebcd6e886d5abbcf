//! The bytes of a file, and how many of them may be looked at.
//!
//! Parts of a file are borrowed and never copied. They may overlap and be shared, though, so that a small file can
//! describe a very long walk: everything that is looked at is counted.

use std::cell::Cell;

use super::checksum::{agree, lookup3};
use crate::error::Problem;

/// The address that stands for nothing.
pub(super) const NOWHERE: u64 = u64::MAX;
/// A walk may look at this many times the bytes of the file. One that shares nothing needs less than two; soft
/// links, each of which is searched for, and chunks with zeros need more.
const WORK_RATIO: u64 = 64;
/// A walk may always look at this many bytes, however small the file.
const ALWAYS_ALLOWED: u64 = 16 << 20;

pub(super) struct File<'a> {
    bytes: &'a [u8],
    /// Bytes that may still be looked at.
    work: Cell<u64>,
}

impl<'a> File<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let work = (bytes.len() as u64).saturating_mul(WORK_RATIO).max(ALWAYS_ALLOWED);
        Self { bytes, work: Cell::new(work) }
    }

    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Counts bytes that are looked at, or made from others.
    pub(super) fn count(&self, bytes: u64) -> Result<(), Problem> {
        let Some(rest) = self.work.get().checked_sub(bytes) else {
            return Err(Problem::Unsupported {
                what: format!(
                    "an HDF5 file that leads to its own bytes again and again, {WORK_RATIO} times its size,"
                ),
                advice: "write the file again with h5py, without links and with chunks no larger than the data",
            });
        };
        self.work.set(rest);
        Ok(())
    }

    /// Bytes of stored values, which are counted by whoever copies them.
    pub(super) fn values(&self, address: u64, length: u64, part: &'static str) -> Result<&'a [u8], Problem> {
        let end = address.saturating_add(length);
        match (usize::try_from(address), usize::try_from(end)) {
            (Ok(start), Ok(end)) if end <= self.bytes.len() => Ok(&self.bytes[start..end]),
            _ => Err(Problem::Truncated { part, needed: end, found: self.length() }),
        }
    }

    /// A part of the structure.
    pub(super) fn part(&self, address: u64, length: u64, part: &'static str) -> Result<Cursor<'a>, Problem> {
        self.count(length)?;
        Ok(Cursor { rest: self.values(address, length, part)?, part })
    }

    /// A part that starts with a signature and ends with a check sum: what lies between them.
    pub(super) fn sealed(
        &self,
        address: u64,
        length: u64,
        signature: &[u8; 4],
        part: &'static str,
    ) -> Result<Cursor<'a>, Problem> {
        let mut inside = self.part(address, length, part)?.verified()?;
        inside.signature(signature)?;
        Ok(inside)
    }
}

/// Bytes of a part, read from the first to the last. Numbers have the least significant byte first.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    /// Names the part in refusals.
    pub(super) part: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.damaged("it ends early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// What stands before the check sum at the end, which must be right.
    pub(super) fn verified(self) -> Result<Self, Problem> {
        match self.rest.split_last_chunk() {
            None => Err(self.damaged("it ends early")),
            Some((content, sum)) if agree(lookup3(content), u32::from_le_bytes(*sum)) => {
                Ok(Self { rest: content, ..self })
            }
            Some(_) => Err(self.damaged("its check sum is wrong")),
        }
    }

    /// A number of 0 to 8 bytes.
    pub(super) fn number(&mut self, size: usize) -> Result<u64, Problem> {
        if size > 8 {
            return Err(self.damaged("a number has more than 8 bytes"));
        }
        let bytes = self.bytes(size)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.number(8)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Problem> {
        self.bytes(count).map(drop)
    }

    pub(super) fn signature(&mut self, signature: &[u8]) -> Result<(), Problem> {
        match self.bytes(signature.len())? == signature {
            true => Ok(()),
            false => Err(self.damaged("it does not start with its signature")),
        }
    }

    /// A version, which must be the one that is known.
    pub(super) fn version(&mut self, known: u8) -> Result<(), Problem> {
        match self.u8()? {
            version if version == known => Ok(()),
            version => Err(unknown(format!("version {version} of {}", self.part))),
        }
    }

    /// Text in UTF-8, as names and paths have to be.
    pub(super) fn text(&mut self, count: usize) -> Result<&'a str, Problem> {
        let bytes = self.bytes(count)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a name is not UTF-8"))
    }

    pub(super) fn damaged(&self, reason: &str) -> Problem {
        Problem::Damaged { part: self.part, reason: reason.to_owned() }
    }
}

/// A feature of the format that is left out.
pub(super) fn unknown(what: String) -> Problem {
    Problem::Unsupported { what, advice: "write the file again with h5py, or save the arrays as .npz" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_inside_the_file_and_are_counted() {
        let bytes: Vec<u8> = (0..100).collect();
        let file = File::new(&bytes);
        let mut part = file.part(2, 8, "a part").unwrap();
        assert_eq!((part.u16().unwrap(), part.number(3).unwrap()), (0x0302, 0x06_0504));
        assert!(part.u32().unwrap_err().to_string().contains("a part is damaged (it ends early)"));
        for (address, length) in [(93, 8), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(file.values(address, length, "a part").is_err());
        }
        for _ in 1..ALWAYS_ALLOWED / 8 {
            file.part(0, 8, "a part").unwrap();
        }
        assert!(file.part(0, 8, "a part").err().unwrap().to_string().contains("64 times its size"));
    }
}
