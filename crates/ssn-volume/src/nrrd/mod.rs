//! NRRD, the nearly raw raster data of Teem, 3D Slicer and ITK: versions 1 to 5, inline or with a detached header.
//!
//! Read are raw and gzip data of all integer and floating types, with 2 or 3 axes in space and at most one axis of
//! channels, first or last. Geometry comes from `space directions` in the spaces LPS, RAS and LAS. A file without a
//! space has its axes along those of LPS, as ITK reads it; `spacings` give the distances. `old min`, `old max`,
//! `measurement frame`, `thicknesses` and key/value pairs do not change what is read.
//!
//! The format: <https://teem.sourceforge.net/nrrd/format.html>. This folder reads no files: a caller that meets a
//! detached header opens the file that [`Header::data_file`] names.

mod axes;
mod data;
mod encoding;
mod fields;
mod header;
mod space;
mod types;
mod write;

pub use header::Header;
pub use write::{encode, encode_gzip};

use crate::error::Problem;
use crate::limits::Limits;
use crate::text_header::words;
use crate::volume::Image;

/// The image of a file that holds header and data.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let header = parse_header(bytes, limits)?;
    if let Some(name) = header.data_file() {
        return Err(Problem::Unsupported {
            what: format!("a header alone, whose data is in the file {}", words::shown(name)),
            advice: "open it with its data file beside it",
        });
    }
    data::image(&header, header.inline_data(bytes), limits)
}

/// The header of a file, inline or detached; [`Header::data_file`] says which.
pub fn parse_header(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    header::parse(bytes, limits)
}

/// The image of a detached header and the file that it names.
pub fn parse_detached(header_bytes: &[u8], data_bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(data_bytes.len() as u64)?;
    let header = parse_header(header_bytes, limits)?;
    if header.data_file().is_none() {
        return Err(words::missing(
            "data file",
            "the name of the file with the data",
            "this header has its data in its own file: open it without another",
        ));
    }
    data::image(&header, data_bytes, limits)
}
