//! From bytes to an image.

use std::borrow::Cow;

use super::extensions;
use super::header::{Container, EXTENSION_FLAG, Header};
use crate::error::Problem;
use crate::gzip::{self, Compression};
use crate::limits::{Limits, memory_of};
use crate::volume::{Image, Source};
use crate::voxels::Voxels;

/// Bytes that hold the header of either version.
const START: usize = 540;
const DATA: &str = "the voxel data";

/// Reads a single file (`.nii`), plain or gzipped.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let header = if gzip::is_gzip(bytes) {
        Header::read(&gzip::expand_start(bytes, Compression::Gzip, START)?, Container::Single)?
    } else {
        Header::read(bytes, Container::Single)?
    };
    let first = header.fields.layout().bytes + EXTENSION_FLAG;
    check_header_bytes(header.data_offset, limits)?;
    let size = data_bytes(&header, bytes.len(), limits)?;
    let file = whole(bytes, header.data_offset, size, limits)?;
    let (start, data) = file.split_at(header.data_offset as usize);
    extensions::check(start[first - EXTENSION_FLAG], &start[first..], header.fields.order)?;
    Ok(image(header, data))
}

/// Reads a pair (`.hdr` and `.img`), each plain or gzipped.
pub fn parse_pair(header: &[u8], data: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(header.len() as u64)?;
    limits.check_file_bytes(data.len() as u64)?;
    let bytes = if gzip::is_gzip(header) {
        // One byte more than allowed, so that a header that is read in full is one whose check sum was verified.
        let most = usize::try_from(limits.header_bytes).unwrap_or(usize::MAX).saturating_add(1);
        Cow::Owned(gzip::expand_start(header, Compression::Gzip, most)?)
    } else {
        Cow::Borrowed(header)
    };
    check_header_bytes(bytes.len() as u64, limits)?;
    let header = Header::read(&bytes, Container::Pair)?;
    if let Some((flag, rest)) = bytes[header.fields.layout().bytes..].split_at_checked(EXTENSION_FLAG) {
        extensions::check(flag[0], rest, header.fields.order)?;
    }
    let size = data_bytes(&header, data.len(), limits)?;
    let file = whole(data, header.data_offset, size, limits)?;
    let data = &file[header.data_offset as usize..];
    Ok(image(header, data))
}

/// Everything before the data counts as header.
fn check_header_bytes(found: u64, limits: &Limits) -> Result<(), Problem> {
    let limit = limits.header_bytes;
    if found <= limit {
        return Ok(());
    }
    Err(Problem::Limit { what: "the size of the header with extensions", found, limit, name: "header_bytes" })
}

/// Bytes of all values, which a file of a size must be allowed to have.
fn data_bytes(header: &Header, file_bytes: usize, limits: &Limits) -> Result<u64, Problem> {
    let values = limits.check_values(&header.shape.values)? as u64;
    let memory = memory_of(values, header.kind.bytes()).saturating_add(header.data_offset);
    limits.check_memory(memory, file_bytes as u64)?;
    Ok(values.saturating_mul(header.kind.bytes() as u64))
}

/// The whole expanded file, which must hold `size` bytes from `offset` on and nothing after them.
fn whole<'a>(bytes: &'a [u8], offset: u64, size: u64, limits: &Limits) -> Result<Cow<'a, [u8]>, Problem> {
    let expected = offset.saturating_add(size);
    if gzip::is_gzip(bytes) {
        let file = gzip::expand_exactly(bytes, Compression::Gzip, expected, DATA, limits)?;
        return Ok(Cow::Owned(file));
    }
    let found = bytes.len() as u64;
    if found < expected {
        let found = found.saturating_sub(offset);
        return Err(Problem::Truncated { part: DATA, needed: size, found });
    }
    if found > expected {
        return Err(Problem::Field {
            field: DATA,
            found: format!("{} bytes longer than {size} bytes", found - expected),
            allowed: "as long as the header says",
            advice: "header and data do not belong together: export the image again",
        });
    }
    Ok(Cow::Borrowed(bytes))
}

fn image(header: Header, data: &[u8]) -> Image {
    Image {
        voxels: Voxels::from_bytes(header.kind, data, header.fields.order),
        shape: header.shape.values,
        geometry: header.geometry,
        slope: header.slope,
        intercept: header.intercept,
        source: Source::Nifti(header.fields.into_bytes()),
    }
}
