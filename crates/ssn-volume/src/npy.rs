//! NumPy arrays: `.npy`, whose header the crate `npyz` reads and writes.
//!
//! Arrays of numbers and booleans are read. Arrays of objects are refused: they hold pickles, which are programs.

use half::f16;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder};

use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;
use crate::panics::catch_panic;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes of a header: what NumPy reads by default (`max_header_size`).
const MOST_BYTES: usize = 10_000;
/// Opening brackets in the header of an array of numbers. The time that the parser takes doubles with each level.
const MOST_BRACKETS: usize = 2;
/// The types of numbers by their letters and sizes, as `descr` has them.
const TYPES: [(TypeChar, u64, VoxelType); 12] = [
    (TypeChar::Bool, 1, VoxelType::U8),
    (TypeChar::Uint, 1, VoxelType::U8),
    (TypeChar::Uint, 2, VoxelType::U16),
    (TypeChar::Uint, 4, VoxelType::U32),
    (TypeChar::Uint, 8, VoxelType::U64),
    (TypeChar::Int, 1, VoxelType::I8),
    (TypeChar::Int, 2, VoxelType::I16),
    (TypeChar::Int, 4, VoxelType::I32),
    (TypeChar::Int, 8, VoxelType::I64),
    (TypeChar::Float, 4, VoxelType::F32),
    (TypeChar::Float, 8, VoxelType::F64),
    // Half precision is widened.
    (TypeChar::Float, 2, VoxelType::F32),
];

/// Reads an `.npy` file of version 1.0, 2.0 or 3.0, of numbers or booleans in either byte order and either
/// order of the axes. Exactly the bytes that the shape asks for must follow the header.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Array, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    check_header(bytes)?;
    let mut data = bytes;
    let header = catch_panic("the header of the array", || {
        let damaged = |error: std::io::Error| {
            // The lines after the first one repeat the header.
            let reason = error.to_string().lines().next().unwrap_or_default().trim().to_owned();
            Problem::Damaged { part: "the header of the array", reason }
        };
        NpyHeader::from_reader(&mut data).map_err(damaged)
    })?;
    let dtype = header.dtype();
    let (stored, kind) = number_type(&dtype)?;
    let size = stored.size_field();
    let order = if stored.endianness() == Endianness::Big { ByteOrder::Big } else { ByteOrder::Little };
    let shape: Vec<usize> =
        header.shape().iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    let values = if shape.contains(&0) { 0 } else { limits.check_values(&shape)? as u64 };
    let (needed, found) = (values.saturating_mul(size), data.len() as u64);
    if found < needed {
        return Err(Problem::Truncated { part: "the data of the array", needed, found });
    }
    if found > needed {
        return Err(Problem::Field {
            field: "the data of the array",
            found: format!("{found} bytes"),
            allowed: "exactly as long as shape and descr ask for",
            advice: "the file is inconsistent: save the array again",
        });
    }
    if stored.type_char() == TypeChar::Bool {
        check_booleans(data)?;
    }
    let reordered;
    if header.order() == Order::Fortran && shape.len() > 1 {
        reordered = fortran_to_c(data, &shape, size as usize);
        data = &reordered;
    }
    let voxels = if size < kind.bytes() as u64 {
        let read = if order == ByteOrder::Big { f16::from_be_bytes } else { f16::from_le_bytes };
        Voxels::F32(data.as_chunks().0.iter().map(|&pair| read(pair).to_f32()).collect())
    } else {
        Voxels::from_bytes(kind, data, order)
    };
    Ok(Array { voxels, shape })
}

/// Refuses a header that would cost memory or depth of the stack before it is known to be one.
fn check_header(bytes: &[u8]) -> Result<(), Problem> {
    if !bytes.starts_with(MAGIC) {
        return Err(Problem::Field {
            field: "the start of the file",
            found: format!("{:02x?}", &bytes[..bytes.len().min(MAGIC.len())]),
            allowed: "\\x93NUMPY",
            advice: "this is not an .npy file: save the array with numpy.save",
        });
    }
    let (length, text) = match bytes[6..] {
        [1, 0, a, b, ref text @ ..] => (u32::from_le_bytes([a, b, 0, 0]), text),
        [2 | 3, 0, a, b, c, d, ref text @ ..] => (u32::from_le_bytes([a, b, c, d]), text),
        // Cut off, or of another version: the parser says so.
        _ => return Ok(()),
    };
    if length as usize > MOST_BYTES {
        return Err(Problem::Field {
            field: "the header of the array",
            found: format!("{length} bytes"),
            allowed: "at most 10,000, as for NumPy",
            advice: "save the array again with numpy.save",
        });
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

/// The type of numbers or booleans, and the one that they get in memory.
fn number_type(dtype: &DType) -> Result<(&TypeStr, VoxelType), Problem> {
    if let DType::Plain(stored) = dtype
        && let Some((.., kind)) =
            TYPES.iter().find(|&&(c, size, _)| (c, size) == (stored.type_char(), stored.size_field()))
    {
        return Ok((stored, *kind));
    }
    Err(Problem::Field {
        field: "descr of the array",
        found: dtype.descr(),
        allowed: "a boolean or a number of at most 8 bytes, such as '|u1', '<i2' or '>f4'",
        advice: "save the array with such a type; arrays of objects hold programs and are never read",
    })
}

fn check_booleans(data: &[u8]) -> Result<(), Problem> {
    match data.iter().position(|&b| b > 1) {
        None => Ok(()),
        Some(at) => Err(Problem::Field {
            field: "a boolean",
            found: format!("{} at value {at}", data[at]),
            allowed: "0 or 1",
            advice: "the array is damaged: save it again",
        }),
    }
}

/// Values of `size` bytes, of which the first axis runs fastest, reordered so that the last one does.
fn fortran_to_c(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    while out.len() < bytes.len() {
        // Horner's rule from the slowest axis, the last, to the fastest.
        let from = index.iter().zip(shape).rev().fold(0, |from, (i, n)| from * n + i);
        out.extend_from_slice(&bytes[from * size..][..size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// The bytes of an `.npy` file of version 1.0, least significant byte first and in C order.
pub fn encode(array: &Array) -> Result<Vec<u8>, Problem> {
    let values = array.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    if values != Some(array.voxels.len()) {
        return Err(Problem::Field {
            field: "the shape of the array",
            found: format!("{:?} for {} values", array.shape, array.voxels.len()),
            allowed: "as many values as the shape asks for",
            advice: "this is a mistake of the program: report it",
        });
    }
    let kind = array.voxels.kind();
    let known = TYPES.iter().find(|(letter, _, other)| *other == kind && *letter != TypeChar::Bool);
    let (letter, size, _) = known.expect("every type of voxels is in the table");
    let sign = if *size == 1 { '|' } else { '<' };
    let descr = format!("{sign}{}{size}", letter.to_str());
    let dtype = DType::Plain(descr.parse().expect("the letters and sizes of the table are NumPy's"));
    let shape: Vec<u64> = array.shape.iter().map(|&n| n as u64).collect();
    let mut out = vec![];
    let options = WriteOptions::new_header_only().dtype(dtype).shape(&shape);
    options.writer(&mut out).write_header_only()?;
    out.extend(array.voxels.to_le_bytes());
    Ok(out)
}
