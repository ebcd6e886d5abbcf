//! Cases and page in one file that works from the disk, without a server.

use std::io::{self, Write};
use std::path::Path;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use ssn_io::{Error, Result, WriteError, write_atomically};

use crate::page;
use crate::scores::{CaseHeadline, columns};

/// The largest file. Browsers hold the text of a page in memory, and each case once more.
pub const MAX_EXPORT_BYTES: u64 = 256 << 20;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The cases in the file.
    pub cases: usize,
    /// Its size.
    pub bytes: u64,
}

/// A case of an exported file.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportCase {
    /// Its name.
    pub name: String,
    /// The scores by which it is listed, if it was evaluated.
    pub scores: Option<CaseHeadline>,
    /// Its package.
    pub package: Vec<u8>,
}

/// Writes the page with cases, which are made one after the other.
///
/// # Errors
/// The first case that cannot be packed, and a file that grows beyond [`MAX_EXPORT_BYTES`]; nothing is left of it then.
pub fn export<E: From<Error>>(
    path: &Path,
    cases: impl Iterator<Item = Result<ExportCase, E>>,
) -> Result<Exported, E> {
    export_within(MAX_EXPORT_BYTES, path, cases)
}

fn export_within<E: From<Error>>(
    most: u64,
    path: &Path,
    cases: impl Iterator<Item = Result<ExportCase, E>>,
) -> Result<Exported, E> {
    let (before, after) = page::exported()?;
    let mut failed = None;
    let mut done = Exported { cases: 0, bytes: 0 };
    let written = write_atomically(path, |out| {
        let mut out = Counted { out, bytes: 0, most };
        out.write_all(before.as_bytes())?;
        // `<` may not occur in the text of an element that is data.
        let columns = serde_json::to_string(&columns())?.replace('<', "\\u003c");
        writeln!(out, "<script type=\"application/x-ssn-columns\">{columns}</script>")?;
        for case in cases {
            match case {
                Ok(case) => write_case(&mut out, &case)?,
                Err(error) => {
                    failed = Some(error);
                    return Err(io::Error::other("a case failed"));
                }
            }
            done.cases += 1;
        }
        out.write_all(after.as_bytes())?;
        done.bytes = out.bytes;
        Ok(())
    });
    match (failed, written) {
        (Some(error), _) => Err(error),
        (None, Err(error)) if is_too_large(&error) => Err(too_large(most).into()),
        (None, Err(error)) => Err(Error::from(error).into()),
        (None, Ok(())) => Ok(done),
    }
}

/// A package as the text of an element that does not run.
fn write_case(out: &mut impl Write, ExportCase { name, scores, package }: &ExportCase) -> io::Result<()> {
    write!(out, "<script type=\"application/x-ssn-case\" data-name=\"{}\"", attribute(name))?;
    if let Some(scores) = scores {
        write!(out, " data-scores=\"{}\"", attribute(&serde_json::to_string(scores)?))?;
    }
    write!(out, ">")?;
    {
        let text = EncoderWriter::new(&mut *out, &STANDARD);
        // More effort makes numbers no smaller.
        let mut gzip = GzEncoder::new(text, Compression::fast());
        gzip.write_all(package)?;
        gzip.finish()?.finish()?;
    }
    writeln!(out, "</script>")
}

/// A text as the value of an attribute.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Counts what is written, and stops where it becomes too much.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
    most: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.bytes + buffer.len() as u64 > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.out.write(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the error of a file that would be too large to be opened.
fn too_large(most: u64) -> Error {
    let reason =
        format!("the file would have more than {} MiB, which browsers open slowly or not at all", most >> 20);
    let advice = "choose fewer cases with --case, leave out what lies around with --crop, or look at the cases with \
                  `ssn view` without --export";
    Error::usage(reason).advise(advice)
}

fn is_too_large(error: &WriteError) -> bool {
    error.source.kind() == io::ErrorKind::FileTooLarge
}

#[cfg(test)]
mod tests {
    use ssn_io::ErrorKind;

    use super::*;

    #[test]
    fn a_file_that_grows_too_large_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.html");
        std::fs::write(&path, "before").unwrap();
        // It would never end: what stops it is the limit.
        let endless = std::iter::repeat_with(|| -> Result<_> {
            Ok(ExportCase { name: "a".to_owned(), scores: None, package: vec![1; 100_000] })
        });
        let error = export_within(2 << 20, &path, endless).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        let told = error.to_string();
        assert!(told.starts_with("the file would have more than 2 MiB") && told.contains("--case"), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
