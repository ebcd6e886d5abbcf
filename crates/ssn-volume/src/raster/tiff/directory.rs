//! Header and directories of a TIFF file: which entries there are and where their values lie.

use std::collections::BTreeMap;

use super::super::field;
use crate::error::Problem;
use crate::voxels::ByteOrder;

const AGAIN: &str = "export the picture again";

/// The bytes of a TIFF file and how to read numbers from them.
pub struct Tiff<'a> {
    pub bytes: &'a [u8],
    pub order: ByteOrder,
    /// Offsets and counts of 8 bytes instead of 4.
    pub big: bool,
    /// Where the first directory lies.
    pub first: u64,
}

/// An entry: values of a type somewhere in the file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: u16,
    count: u64,
    /// Where the field lies that holds the values or points to them.
    at: usize,
}

/// One directory: the description of one page.
pub struct Directory {
    entries: BTreeMap<u16, Entry>,
    /// Where the next directory lies; 0 if this was the last.
    pub next: u64,
    /// Bytes that the directory takes in the file.
    pub bytes: u64,
}

impl<'a> Tiff<'a> {
    /// Reads the header.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Problem> {
        let order = match bytes.get(..2) {
            Some(b"II") => ByteOrder::Little,
            Some(b"MM") => ByteOrder::Big,
            _ => {
                let start = format!("{:02x?}", &bytes[..bytes.len().min(4)]);
                return Err(field("the start of the file", start, "II or MM", "this is not a TIFF file"));
            }
        };
        let mut tiff = Self { bytes, order, big: false, first: 0 };
        match tiff.number(2, 2)? {
            42 => tiff.first = tiff.number(4, 4)?,
            43 => {
                let sizes = (tiff.number(4, 2)?, tiff.number(6, 2)?);
                if sizes != (8, 0) {
                    return Err(field("the sizes in the header", format!("{sizes:?}"), "(8, 0)", AGAIN));
                }
                tiff.big = true;
                tiff.first = tiff.number(8, 8)?;
            }
            version => return Err(field("the version of the TIFF file", version, "42 or 43", AGAIN)),
        }
        Ok(tiff)
    }

    /// The unsigned number of `size` bytes at a place.
    fn number(&self, at: usize, size: usize) -> Result<u64, Problem> {
        let found = self.bytes.len() as u64;
        let end = at.checked_add(size);
        let bytes = end.and_then(|end| self.bytes.get(at..end)).ok_or(Problem::Truncated {
            part: "the TIFF file",
            needed: (at as u64).saturating_add(size as u64),
            found,
        })?;
        let push = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        Ok(match self.order {
            ByteOrder::Big => bytes.iter().fold(0, push),
            ByteOrder::Little => bytes.iter().rev().fold(0, push),
        })
    }

    /// An offset in the file as an index.
    fn index(&self, offset: u64) -> Result<usize, Problem> {
        let found = self.bytes.len() as u64;
        if offset <= found {
            return Ok(offset as usize);
        }
        Err(Problem::Truncated { part: "the TIFF file", needed: offset, found })
    }
}

/// Reads the directory at a place.
pub fn read(tiff: &Tiff<'_>, offset: u64) -> Result<Directory, Problem> {
    let start = tiff.index(offset)?;
    let (count_size, entry_size, field_size) = if tiff.big { (8, 20, 8) } else { (2, 12, 4) };
    let count = tiff.number(start, count_size)?;
    let bytes = count
        .checked_mul(entry_size)
        .and_then(|n| n.checked_add((count_size + field_size) as u64))
        .filter(|&n| n <= (tiff.bytes.len() - start) as u64)
        .ok_or(Problem::Truncated {
            part: "a directory of the TIFF file",
            needed: count.saturating_mul(entry_size),
            found: (tiff.bytes.len() - start) as u64,
        })?;
    let mut entries = BTreeMap::new();
    let first = start + count_size;
    for index in 0..count as usize {
        let at = first + index * entry_size as usize;
        let tag = tiff.number(at, 2)? as u16;
        let kind = tiff.number(at + 2, 2)? as u16;
        let entry = Entry { kind, count: tiff.number(at + 4, field_size)?, at: at + 4 + field_size };
        if entries.insert(tag, entry).is_some() {
            return Err(field(
                "a directory",
                format!("with the tag {tag} twice"),
                "one with each tag once",
                AGAIN,
            ));
        }
    }
    let next = tiff.number(first + count as usize * entry_size as usize, field_size)?;
    Ok(Directory { entries, next, bytes })
}

impl Directory {
    /// Whether there is an entry.
    pub fn has(&self, tag: u16) -> bool {
        self.entries.contains_key(&tag)
    }

    /// The whole numbers of an entry, of which there may be at most `most`; nothing where there is no entry.
    pub fn numbers(&self, tiff: &Tiff<'_>, tag: u16, most: u64) -> Result<Option<Vec<u64>>, Problem> {
        let Some(entry) = self.entries.get(&tag) else { return Ok(None) };
        let size = match entry.kind {
            1 => 1,
            3 => 2,
            4 | 13 => 4,
            16 | 18 if tiff.big => 8,
            kind => {
                let found = format!("type {kind} of tag {tag}");
                return Err(field("the type of an entry", found, "that of unsigned whole numbers", AGAIN));
            }
        };
        if entry.count == 0 || entry.count > most {
            let found = format!("{} in tag {tag}, where at most {most} belong", entry.count);
            return Err(field("the number of values of an entry", found, "what the picture needs", AGAIN));
        }
        let start = tiff.index(self.place(tiff, entry, size)?)?;
        (0..entry.count as usize)
            .map(|i| tiff.number(start + i * size, size))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// The single whole number of an entry; nothing where there is no entry.
    pub fn number(&self, tiff: &Tiff<'_>, tag: u16) -> Result<Option<u64>, Problem> {
        Ok(self.numbers(tiff, tag, 1)?.map(|numbers| numbers[0]))
    }

    /// The bytes of a text; nothing where there is none or it lies outside of the file.
    pub fn text<'a>(&self, tiff: &Tiff<'a>, tag: u16) -> Option<&'a [u8]> {
        let entry = self.entries.get(&tag).filter(|entry| entry.kind == 2)?;
        let start = tiff.index(self.place(tiff, entry, 1).ok()?).ok()?;
        tiff.bytes.get(start..start.checked_add(usize::try_from(entry.count).ok()?)?)
    }

    /// Where the values of an entry lie: in its field if they fit, otherwise where the field points. All of
    /// them must be in the file.
    fn place(&self, tiff: &Tiff<'_>, entry: &Entry, size: usize) -> Result<u64, Problem> {
        let room = if tiff.big { 8 } else { 4 };
        let needed = entry.count.saturating_mul(size as u64);
        let start = if needed <= room { entry.at as u64 } else { tiff.number(entry.at, room as usize)? };
        let found = (tiff.bytes.len() as u64).saturating_sub(start);
        if needed > found {
            return Err(Problem::Truncated {
                part: "the values of an entry of the TIFF file",
                needed,
                found,
            });
        }
        Ok(start)
    }
}
