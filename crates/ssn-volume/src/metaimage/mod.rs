//! MetaImage, the format of ITK's MetaIO: `.mha` with header and data, or `.mhd` with its data in another file.
//!
//! Read are raw, zlib and gzip data of all integer and floating types, with 2 or 3 axes in space, channels
//! interleaved (`ElementNumberOfChannels`) or as a fourth axis. The world is LPS, as ITK has it. Fields that the format
//! does not define are notes of the writer and are ignored; what would change values or places and is not
//! understood is refused.
//!
//! The format: <https://itk.org/Wiki/ITK/MetaIO/Documentation>. This folder reads no files: a caller that meets a
//! header with its data elsewhere opens the file that [`Header::data_file`] names.

mod data;
mod fields;
mod header;
mod space;
mod types;
mod write;

pub use header::Header;
pub use write::{encode, encode_zlib};

use crate::error::Problem;
use crate::limits::Limits;
use crate::text_header::words::{refused, shown};
use crate::volume::Image;

/// The image of a file that holds header and data.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let header = parse_header(bytes, limits)?;
    if let Some(name) = header.data_file() {
        return Err(Problem::Unsupported {
            what: format!("a header alone, whose data is in the file {}", shown(name)),
            advice: "open it with its data file beside it",
        });
    }
    data::image(&header, header.inline_data(bytes), limits)
}

/// The header of a file, with or without the data behind it; [`Header::data_file`] says which.
pub fn parse_header(bytes: &[u8], limits: &Limits) -> Result<Header, Problem> {
    header::parse(bytes, limits)
}

/// The image of a header and the file that it names.
pub fn parse_detached(header_bytes: &[u8], data_bytes: &[u8], limits: &Limits) -> Result<Image, Problem> {
    limits.check_file_bytes(data_bytes.len() as u64)?;
    let header = parse_header(header_bytes, limits)?;
    if header.data_file().is_none() {
        return Err(refused(
            "ElementDataFile",
            "LOCAL",
            "the name of the file with the data",
            "this header has its data in its own file: open it without another",
        ));
    }
    data::image(&header, data_bytes, limits)
}
