//! The data section: found behind what is to be skipped, expanded, and turned into an image.

use std::borrow::Cow;

use super::header::{Header, Packing, Skip};
use crate::error::Problem;
use crate::gzip::{self, Compression};
use crate::limits::Limits;
use crate::text_header::stored::{DATA, exactly, last};
use crate::volume::Image;

/// The image of a header and the bytes of the data section, with what is to be skipped before it.
pub(super) fn image(header: &Header, data: &[u8], limits: &Limits) -> Result<Image, Problem> {
    let needed = header.stored.bytes(limits)?;
    let bytes = match (header.skip, header.packing) {
        (Skip::ToTheEnd, _) => Cow::Borrowed(last(data, needed)?),
        (Skip::Bytes(skipped), Packing::Raw) => Cow::Borrowed(exactly(after(data, skipped)?, needed)?),
        (Skip::Bytes(skipped), Packing::Compressed(size)) => {
            let data = after(data, skipped)?;
            check_size(data, size)?;
            header.stored.check_memory(0, data, limits)?;
            // MetaIO expands either kind; their first bytes tell them apart.
            let kind = if gzip::is_gzip(data) { Compression::Gzip } else { Compression::Zlib };
            Cow::Owned(gzip::expand_exactly(data, kind, needed, DATA, limits)?)
        }
    };
    header.stored.image(bytes, header.geometry, limits)
}

fn after(data: &[u8], skipped: u64) -> Result<&[u8], Problem> {
    let rest = usize::try_from(skipped).ok().and_then(|skipped| data.get(skipped..));
    rest.ok_or(Problem::Truncated {
        part: "what HeaderSize skips",
        needed: skipped,
        found: data.len() as u64,
    })
}

fn check_size(data: &[u8], size: Option<u64>) -> Result<(), Problem> {
    let found = data.len() as u64;
    match size {
        Some(needed) if needed > found => {
            Err(Problem::Truncated { part: "the compressed data", needed, found })
        }
        Some(size) if size < found => Err(Problem::Field {
            field: "CompressedDataSize",
            found: size.to_string(),
            allowed: "the number of bytes to the end of the file",
            advice: "header and data do not belong together: export the image again",
        }),
        _ => Ok(()),
    }
}
