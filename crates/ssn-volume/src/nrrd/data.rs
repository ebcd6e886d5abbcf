//! The data section: found behind what is to be skipped, expanded, and turned into an image.

use std::borrow::Cow;

use super::encoding::{Encoding, Skip};
use super::header::Header;
use crate::error::Problem;
use crate::gzip::{self, Compression};
use crate::limits::Limits;
use crate::text_header::stored::{DATA, exactly, last};
use crate::volume::Image;

/// The image of a header and the bytes of the data section, with what is to be skipped before it.
pub(super) fn image(header: &Header, data: &[u8], limits: &Limits) -> Result<Image, Problem> {
    let needed = header.stored.bytes(limits)?;
    let bytes = match header.skip {
        Skip::ToTheEnd => Cow::Borrowed(last(data, needed)?),
        Skip::Lines(lines, skipped) => {
            let data = after_lines(data, lines)?;
            let found = data.len() as u64;
            let with_skipped = needed.checked_add(skipped).ok_or(Problem::Truncated {
                part: DATA,
                needed: u64::MAX,
                found,
            })?;
            header.stored.check_memory(skipped, data, limits)?;
            let mut bytes = match header.encoding {
                Encoding::Raw => Cow::Borrowed(exactly(data, with_skipped)?),
                Encoding::Gzip => {
                    let compression = Compression::Gzip;
                    Cow::Owned(gzip::expand_exactly(data, compression, with_skipped, DATA, limits)?)
                }
            };
            match &mut bytes {
                Cow::Borrowed(bytes) => *bytes = last(bytes, needed)?,
                // `expand_exactly` gave at least as many bytes as are skipped.
                Cow::Owned(bytes) => drop(bytes.drain(..skipped as usize)),
            }
            bytes
        }
    };
    header.stored.image(bytes, header.geometry, limits)
}

/// What follows a number of lines. Each must be there, so a large number costs no more than the data is long.
fn after_lines(data: &[u8], lines: u64) -> Result<&[u8], Problem> {
    let mut rest = data;
    for line in 0..lines {
        let Some(end) = rest.iter().position(|&b| b == b'\n') else {
            return Err(Problem::Field {
                field: "line skip",
                found: lines.to_string(),
                allowed: "at most the number of lines before the data",
                advice: if line == 0 {
                    "the data file has no line to skip: correct the header"
                } else {
                    "the data file has fewer lines: correct the header"
                },
            });
        };
        rest = &rest[end + 1..];
    }
    Ok(rest)
}
