//! NumPy arrays: `.npy`, whose header the crate `npyz` reads and writes, and one array of an `.npz`.
//!
//! Arrays of numbers and booleans are read. Arrays of objects are refused: they hold pickles, which are programs.

use std::io::{self, Cursor, Read, Write};

use npyz::{DType, Endianness, NpyHeader, Order, WriteOptions, WriterBuilder};

use zip::ZipArchive;

use crate::array::{Array, Element, MOST_AXES, row_major, strided};
use crate::formats::gzip::must_be_proven;
use crate::limits::{Limits, check_left, within};
use crate::problem::{Problem, catch_panic, refused};
use crate::volume::ByteOrder;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes of a header: what NumPy reads by default (`max_header_size`).
const MOST_BYTES: usize = 10_000;
/// Opening brackets in the header of an array of numbers. The time that the parser takes doubles with each level.
const MOST_BRACKETS: usize = 2;
/// Reads an `.npy` file of version 1.0, 2.0 or 3.0, of numbers or booleans in either byte order and either
/// order of the axes. Exactly the bytes that the shape asks for must follow the header.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Array, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    check_header(bytes)?;
    let mut data = bytes;
    let header = catch_panic("the header of the array", || {
        let damaged = |error: io::Error| {
            // The lines after the first one repeat the header.
            let reason = error.to_string().lines().next().unwrap_or_default().trim().to_owned();
            Problem::Damaged { part: "the header of the array", reason }
        };
        NpyHeader::from_reader(&mut data).map_err(damaged)
    })?;
    let dtype = header.dtype();
    let (element, order) = number_type(&dtype)?;
    let shape: Vec<usize> =
        header.shape().iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    if shape.len() > MOST_AXES {
        let (found, allowed) = (format!("{} axes", shape.len()), "at most 64 axes, as for NumPy");
        return Err(refused("the shape of the array", found, allowed, "reshape the array before saving it"));
    }
    let values = if shape.contains(&0) { 0 } else { limits.check_values(&shape)? as u64 };
    let (needed, found) = (values.saturating_mul(element.bytes() as u64), data.len() as u64);
    if found < needed {
        return Err(Problem::Truncated { part: "the data of the array", needed, found });
    }
    if found > needed {
        let (found, allowed) = (format!("{found} bytes"), "exactly as long as shape and descr ask for");
        let advice = "the file is inconsistent: save the array again";
        return Err(refused("the data of the array", found, allowed, advice));
    }
    let mut strides = row_major(&shape);
    if header.order() == Order::Fortran {
        strides = row_major(&shape.iter().rev().copied().collect::<Vec<_>>());
        strides.reverse();
    }
    Ok(strided(element.read(data, order)?, &shape, &strides, 0))
}

/// Reads one array of an `.npz` file, the archive of `numpy.savez`: the first of `names` that is there, or the only one.
pub fn parse_npz(bytes: &[u8], names: &[&str], limits: &Limits) -> Result<Array, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let damaged = |reason: String| Problem::Damaged { part: "the archive", reason };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(error.to_string()))?;
    let there: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    let wanted = names.iter().map(|name| format!("{name}.npy")).find(|name| there.contains(name));
    let name = match (wanted, &there[..]) {
        (Some(name), _) => name,
        (None, [only]) => only.clone(),
        (None, _) => {
            let allowed = "one, or one that is called probabilities";
            let advice = "save the array alone";
            return Err(refused("the arrays of the archive", there.join(", "), allowed, advice));
        }
    };
    let member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
    let (found, stored) = (member.size(), member.compressed_size());
    drop(member);
    within("the bytes of the array", found, limits.expanded_bytes, "expanded_bytes")?;
    let mut expand = |out: &mut dyn Write| {
        let member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
        // The checksum is verified where the member ends, a byte behind its last.
        match io::copy(&mut member.take(found.saturating_add(1)), out) {
            Ok(arrived) if arrived == found => Ok(()),
            Ok(arrived) => Err(damaged(format!("the array has {arrived} bytes, not {found}"))),
            Err(error) => Err(damaged(error.to_string())),
        }
    };
    if must_be_proven(found, stored.min(bytes.len() as u64)) {
        expand(&mut io::sink())?;
    }
    check_left(found.saturating_mul(3))?;
    let mut array = Vec::with_capacity(found as usize);
    expand(&mut array)?;
    parse(&array, limits)
}

/// Refuses a header that would cost memory or depth of the stack before it is known to be one.
fn check_header(bytes: &[u8]) -> Result<(), Problem> {
    if !bytes.starts_with(MAGIC) {
        let start = format!("{:02x?}", &bytes[..bytes.len().min(MAGIC.len())]);
        let advice = "this is not an .npy file: save the array with numpy.save";
        return Err(refused("the start of the file", start, "\\x93NUMPY", advice));
    }
    let (length, text) = match bytes[6..] {
        [1, 0, a, b, ref text @ ..] => (u32::from_le_bytes([a, b, 0, 0]), text),
        [2 | 3, 0, a, b, c, d, ref text @ ..] => (u32::from_le_bytes([a, b, c, d]), text),
        // Cut off, or of another version: the parser says so.
        _ => return Ok(()),
    };
    if length as usize > MOST_BYTES {
        let (found, allowed) = (format!("{length} bytes"), "at most 10,000, as for NumPy");
        let advice = "save the array again with numpy.save";
        return Err(refused("the header of the array", found, allowed, advice));
    }
    let text = &text[..text.len().min(length as usize)];
    if text.iter().filter(|byte| b"([{".contains(byte)).count() > MOST_BRACKETS {
        return Err(Problem::Unsupported {
            what: "an array of records, dates or other things than numbers".into(),
            advice: "save each field as an array of its own",
        });
    }
    Ok(())
}

/// The type of numbers or booleans, and the order of their bytes.
fn number_type(dtype: &DType) -> Result<(Element, ByteOrder), Problem> {
    if let DType::Plain(stored) = dtype
        && let Ok(element) =
            Element::named(&format!("{}{}", stored.type_char().to_str(), stored.size_field()))
    {
        let big = stored.endianness() == Endianness::Big;
        return Ok((element, if big { ByteOrder::Big } else { ByteOrder::Little }));
    }
    let allowed = "a boolean or a number of at most 8 bytes, such as '|u1', '<i2' or '>f4'";
    let advice = "save the array with such a type; arrays of objects hold programs and are never read";
    Err(refused("descr of the array", dtype.descr(), allowed, advice))
}

/// The bytes of an `.npy` file of version 1.0, least significant byte first and in C order.
pub fn encode(array: &Array) -> Result<Vec<u8>, Problem> {
    let values = array.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    if values != Some(array.voxels.len()) {
        let found = format!("{:?} for {} values", array.shape, array.voxels.len());
        let allowed = "as many values as the shape asks for";
        let advice = "this is a mistake of the program: report it";
        return Err(refused("the shape of the array", found, allowed, advice));
    }
    let kind = array.voxels.kind();
    let letter = format!("{kind:?}").to_lowercase();
    let sign = if kind.bytes() == 1 { '|' } else { '<' };
    let descr = format!("{sign}{}{}", &letter[..1], kind.bytes());
    let dtype = DType::Plain(descr.parse().expect("every type of voxels is one of NumPy's"));
    let shape: Vec<u64> = array.shape.iter().map(|&n| n as u64).collect();
    let mut out = vec![];
    let options = WriteOptions::new_header_only().dtype(dtype).shape(&shape);
    options.writer(&mut out).write_header_only()?;
    out.extend(array.voxels.to_le_bytes());
    Ok(out)
}
