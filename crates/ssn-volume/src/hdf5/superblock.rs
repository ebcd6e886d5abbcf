//! The first part of a file: where addresses start to count, and where the root group lies.

use super::bytes::{Cursor, File, unknown};
use crate::error::Problem;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Where a signature may lie first, behind bytes of the user; each further place is twice as far.
const FIRST_PLACE: usize = 512;
const PART: &str = "the superblock";

/// The file from its superblock on, and the address of the header of the root group.
pub(super) fn open(bytes: &[u8]) -> Result<(File<'_>, u64), Problem> {
    let length = bytes.len() as u64;
    let places = std::iter::once(0).chain((0..).map_while(|i| FIRST_PLACE.checked_shl(i)));
    let mut starts = places.map_while(|place| bytes.get(place..));
    let Some(bytes) = starts.find(|bytes| bytes.starts_with(SIGNATURE)) else {
        return Err(Problem::Field {
            field: "the signature",
            found: "missing".to_owned(),
            allowed: "that of HDF5, at byte 0, 512, 1024 and so on",
            advice: "is this an HDF5 file?",
        });
    };
    let file = File::new(bytes);
    let fields = |length| file.part(SIGNATURE.len() as u64, length, PART);
    let (end, root) = match fields(1)?.u8()? {
        version @ 0..=1 => first_versions(fields(80 + 4 * u64::from(version))?, version)?,
        2..=3 => {
            // The check sum covers the signature, of which four bytes are compared here.
            let mut fields = file.sealed(0, 48, &[0x89, b'H', b'D', b'F'], PART)?;
            fields.skip(5)?;
            sizes(&mut fields)?;
            fields.skip(1 + 8 + 8)?;
            (fields.u64()?, fields.u64()?)
        }
        version => return Err(unknown(format!("version {version} of the superblock"))),
    };
    // The end is counted from the first byte, unlike all addresses.
    if end > length {
        return Err(Problem::Truncated { part: "the file", needed: end, found: length });
    }
    Ok((file, root))
}

/// The end of the file and the root's address, of the versions without a check sum.
fn first_versions(mut fields: Cursor, version: u8) -> Result<(u64, u64), Problem> {
    fields.skip(5)?;
    sizes(&mut fields)?;
    fields.skip(1 + 2 + 2 + 4 + 4 * usize::from(version) + 8 + 8)?;
    let end = fields.u64()?;
    fields.skip(8 + 8)?;
    Ok((end, fields.u64()?))
}

/// Bytes of an address and of a length.
fn sizes(fields: &mut Cursor) -> Result<(), Problem> {
    match (fields.u8()?, fields.u8()?) {
        (8, 8) => Ok(()),
        (address, length) => {
            Err(unknown(format!("an HDF5 file with addresses of {address} and lengths of {length} bytes")))
        }
    }
}
