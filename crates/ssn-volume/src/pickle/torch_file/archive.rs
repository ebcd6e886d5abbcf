//! The zip archive of a PyTorch file: records by name, verified and with bounded memory.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::Problem;
use crate::limits::Limits;
use crate::pickle::budget::Budget;

const BUFFER: usize = 1 << 16;
/// The record that every file has.
const PICKLE: &str = "data.pkl";
const ADVICE: &str = "save the file again with torch.save";

/// An archive whose records lie in one folder, with whatever name.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// The folder, with a slash at its end.
    folder: String,
    longest_record: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive and refuses those that different programs read differently.
    pub(super) fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, Problem> {
        if !bytes.starts_with(b"PK\x03\x04") {
            return Err(Problem::Field {
                field: "the start of the file",
                found: format!("{:02x?}", &bytes[..bytes.len().min(4)]),
                allowed: "that of a zip archive, as torch.save writes since PyTorch 1.6",
                advice: ADVICE,
            });
        }
        let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(refused)?;
        if zip.len() as u64 > limits.members {
            let (found, limit) = (zip.len() as u64, limits.members);
            return Err(Problem::Limit { what: "the number of records", found, limit, name: "members" });
        }
        let twisted = if zip.has_duplicate_names() {
            Some("two records of the same name")
        } else if zip.has_overlapping_entries().map_err(refused)? {
            Some("records that overlap")
        } else if zip.offset() != 0 {
            Some("bytes before its start")
        } else {
            None
        };
        if let Some(found) = twisted {
            return Err(malformed(found));
        }
        let folder = folder(&zip)?;
        Ok(Self { zip, folder, longest_record: limits.expanded_bytes })
    }

    /// Whether there is a record.
    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{}{name}", self.folder)).is_some()
    }

    /// The content of a record, verified against its length and check sum.
    pub(super) fn read(&mut self, name: &str, budget: &mut Budget) -> Result<Vec<u8>, Problem> {
        let index = self.zip.index_for_name(&format!("{}{name}", self.folder));
        let index = index.ok_or_else(|| Problem::Field {
            field: "the archive",
            found: format!("without the record {name:?}"),
            allowed: "an archive with a record for every storage",
            advice: ADVICE,
        })?;
        let mut record = self.zip.by_index(index).map_err(refused)?;
        let expected = record.size();
        if expected > self.longest_record {
            let (limit, name) = (self.longest_record, "expanded_bytes");
            return Err(Problem::Limit { what: "the expanded size", found: expected, limit, name });
        }
        let mut content = vec![];
        let mut buffer = vec![0; BUFFER.min(usize::try_from(expected).unwrap_or(BUFFER) + 1)];
        loop {
            let count = record.read(&mut buffer).map_err(|error| damaged(&error.to_string()))?;
            if count == 0 {
                break;
            }
            budget.add_content(count as u64)?;
            content.extend_from_slice(&buffer[..count]);
            if content.len() as u64 > expected {
                return Err(malformed("a record that is longer than it says"));
            }
        }
        if (content.len() as u64) < expected {
            let (needed, found) = (expected, content.len() as u64);
            return Err(Problem::Truncated { part: "a record of the archive", needed, found });
        }
        Ok(content)
    }
}

/// The folder of the pickle, of which there must be one.
fn folder(zip: &ZipArchive<Cursor<&[u8]>>) -> Result<String, Problem> {
    let mut found = None;
    for name in zip.file_names_raw() {
        let Some(folder) = name.strip_suffix(PICKLE.as_bytes()) else { continue };
        let inner = folder.strip_suffix(b"/").unwrap_or(folder);
        let is_folder = folder.is_empty() || folder.len() == inner.len() + 1;
        if !is_folder || inner.contains(&b'/') {
            continue;
        }
        let folder = str::from_utf8(folder).map_err(|_| malformed("names that are not UTF-8"))?;
        if found.replace(folder.to_owned()).is_some() {
            return Err(malformed("two pickles"));
        }
    }
    found.ok_or_else(|| malformed("no record data.pkl"))
}

fn malformed(found: &'static str) -> Problem {
    Problem::Field {
        field: "the archive",
        found: format!("one with {found}"),
        allowed: "as torch.save writes it",
        advice: ADVICE,
    }
}

fn refused(error: ZipError) -> Problem {
    match error {
        ZipError::UnsupportedArchive(what) => {
            Problem::Unsupported { what: format!("the archive ({what})"), advice: ADVICE }
        }
        error => damaged(&error.to_string()),
    }
}

fn damaged(reason: &str) -> Problem {
    Problem::Damaged { part: "the archive", reason: reason.to_owned() }
}
