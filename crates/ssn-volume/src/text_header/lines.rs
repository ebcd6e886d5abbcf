//! The lines of a header: which field has which text, with at most one line for each field.

use std::collections::BTreeMap;

use super::words::shown;
use crate::error::Problem;
use crate::limits::Limits;

/// The fields of a header, named by a format's own type, and where the header ends.
#[derive(Debug)]
pub(crate) struct Fields<'a, F> {
    texts: BTreeMap<F, &'a str>,
    /// The first byte after the lines that were read.
    pub(crate) end: usize,
}

impl<'a, F: Ord> Fields<'a, F> {
    /// No fields yet, at the start of the header.
    pub(crate) fn new() -> Self {
        Self { texts: BTreeMap::new(), end: 0 }
    }

    /// The text of a field.
    pub(crate) fn get(&self, field: F) -> Option<&'a str> {
        self.texts.get(&field).copied()
    }

    /// The next line without its end; empty at the end of the bytes.
    pub(crate) fn next_line(&mut self, bytes: &'a [u8], limits: &Limits) -> Result<&'a [u8], Problem> {
        let rest = &bytes[self.end.min(bytes.len())..];
        let line = match rest.iter().position(|&b| b == b'\n') {
            Some(length) => &rest[..length],
            None => rest,
        };
        self.end = (self.end + line.len() + 1).min(bytes.len());
        if self.end as u64 > limits.header_bytes {
            return Err(Problem::Limit {
                what: "the length of the header",
                found: self.end as u64,
                limit: limits.header_bytes,
                name: "header_bytes",
            });
        }
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Takes over a field from its line.
    pub(crate) fn set(&mut self, field: F, text: &'a str, line: &[u8]) -> Result<(), Problem> {
        if self.texts.insert(field, text).is_none() {
            return Ok(());
        }
        Err(Problem::Field {
            field: "the header",
            found: format!("with a second line for a field, {}", line_shown(line)),
            allowed: "with one line for each field, whatever its spelling",
            advice: "remove the wrong one",
        })
    }
}

/// A line as refusals show it.
pub(crate) fn line_shown(line: &[u8]) -> String {
    // Longer lines are not shown in full anyway.
    shown(&String::from_utf8_lossy(&line[..line.len().min(256)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_bytes_or_meet_the_limit() {
        let mut fields = Fields::<u8>::new();
        let mut next = |limits: &Limits| fields.next_line(b"a\r\n\nb", limits).map(<[u8]>::to_vec);
        let limits = Limits::default();
        for line in [&b"a"[..], b"", b"b", b"", b""] {
            assert_eq!(next(&limits).unwrap(), line);
        }
        let message = next(&Limits { header_bytes: 4, ..limits }).unwrap_err().to_string();
        assert!(message.contains("`header_bytes`"), "{message}");
    }

    #[test]
    fn a_field_has_one_line() {
        let mut fields = Fields::new();
        fields.set(1, "x", b"f: x").unwrap();
        assert_eq!((fields.get(1), fields.get(2)), (Some("x"), None));
        let message = fields.set(1, "y", b"f: y\x1b").unwrap_err().to_string();
        assert!(message.contains(r#"second line for a field, "f: y\u{1b}""#), "{message}");
    }
}
