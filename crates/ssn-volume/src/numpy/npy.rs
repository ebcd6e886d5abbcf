//! One array: `.npy`.

use half::f16;

use super::header::{self, Header, Stored};
use super::order;
use crate::array::Array;
use crate::error::Problem;
use crate::limits::Limits;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The data start at a multiple of this (`ARRAY_ALIGN` of `numpy.lib.format`).
const ALIGNMENT: usize = 64;

/// Reads an `.npy` file of version 1.0, 2.0 or 3.0, of numbers or booleans in either byte order and either
/// order of the axes. Exactly the bytes that the shape asks for must follow the header.
pub fn parse_npy(bytes: &[u8], limits: &Limits) -> Result<Array, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let (Header { stored, order, fortran, shape }, start) = parse_start(bytes, limits)?;
    let needed = data_bytes(&shape, stored.bytes(), limits)?;
    let data = &bytes[start..];
    let found = data.len() as u64;
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
    let reordered;
    let data = if fortran && shape.len() > 1 {
        reordered = order::fortran_to_c(data, &shape, stored.bytes());
        &reordered[..]
    } else {
        data
    };
    Ok(Array { voxels: to_voxels(stored, data, order)?, shape })
}

/// The bytes that the array in the file takes in all, header included, as its header claims; for readers of
/// archives.
pub(super) fn claimed_bytes(start: &[u8], limits: &Limits) -> Result<u64, Problem> {
    let (header, offset) = parse_start(start, limits)?;
    Ok(data_bytes(&header.shape, header.stored.bytes(), limits)?.saturating_add(offset as u64))
}

/// The header and where the data start.
fn parse_start(bytes: &[u8], limits: &Limits) -> Result<(Header, usize), Problem> {
    if !bytes.starts_with(MAGIC) {
        return Err(Problem::Field {
            field: "the start of the file",
            found: format!("{:02x?}", &bytes[..bytes.len().min(MAGIC.len())]),
            allowed: "\\x93NUMPY",
            advice: "this is not an .npy file: save the array with numpy.save",
        });
    }
    let short =
        || Problem::Truncated { part: "the header of the array", needed: 12, found: bytes.len() as u64 };
    let (length, at) = match bytes.get(6..8).ok_or_else(short)? {
        [1, 0] => {
            let length = bytes.get(8..10).and_then(|b| b.try_into().ok()).ok_or_else(short)?;
            (u64::from(u16::from_le_bytes(length)), 10)
        }
        [2 | 3, 0] => {
            let length = bytes.get(8..12).and_then(|b| b.try_into().ok()).ok_or_else(short)?;
            (u64::from(u32::from_le_bytes(length)), 12)
        }
        version => {
            return Err(Problem::Field {
                field: "the version of the array",
                found: format!("{}.{}", version[0], version[1]),
                allowed: "1.0, 2.0 or 3.0",
                advice: "save the array again with numpy.save",
            });
        }
    };
    if length > limits.header_bytes {
        let (limit, name) = (limits.header_bytes, "header_bytes");
        return Err(Problem::Limit { what: "the header of the array", found: length, limit, name });
    }
    let found = (bytes.len() - at) as u64;
    let Some(text) = bytes[at..].get(..length as usize) else {
        return Err(Problem::Truncated { part: "the header of the array", needed: length, found });
    };
    Ok((header::parse(text)?, at + text.len()))
}

/// Bytes of the data of an array; an axis of length 0 is allowed and gives none.
fn data_bytes(shape: &[usize], size: usize, limits: &Limits) -> Result<u64, Problem> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let values = limits.check_values(shape)? as u64;
    values.checked_mul(size as u64).ok_or(Problem::Limit {
        what: "the number of values",
        found: values,
        limit: limits.values,
        name: "values",
    })
}

fn to_voxels(stored: Stored, data: &[u8], order: ByteOrder) -> Result<Voxels, Problem> {
    match stored {
        Stored::Number(kind) => Ok(Voxels::from_bytes(kind, data, order)),
        Stored::Boolean => match data.iter().position(|&b| b > 1) {
            None => Ok(Voxels::U8(data.to_vec())),
            Some(at) => Err(Problem::Field {
                field: "a boolean",
                found: format!("{} at value {at}", data[at]),
                allowed: "0 or 1",
                advice: "the array is damaged: save it again",
            }),
        },
        Stored::Half => {
            let read = match order {
                ByteOrder::Little => f16::from_le_bytes,
                ByteOrder::Big => f16::from_be_bytes,
            };
            Ok(Voxels::F32(data.as_chunks().0.iter().map(|&pair| read(pair).to_f32()).collect()))
        }
    }
}

/// The bytes of an `.npy` file of version 1.0, least significant byte first and in C order.
pub fn encode_npy(array: &Array) -> Result<Vec<u8>, Problem> {
    let values = array.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    if values != Some(array.voxels.len()) {
        return Err(Problem::Field {
            field: "the shape of the array",
            found: format!("{:?} for {} values", array.shape, array.voxels.len()),
            allowed: "as many values as the shape asks for",
            advice: "this is a mistake of the program: report it",
        });
    }
    let name = match array.voxels.kind() {
        VoxelType::U8 => "|u1",
        VoxelType::I8 => "|i1",
        VoxelType::U16 => "<u2",
        VoxelType::I16 => "<i2",
        VoxelType::U32 => "<u4",
        VoxelType::I32 => "<i4",
        VoxelType::U64 => "<u8",
        VoxelType::I64 => "<i8",
        VoxelType::F32 => "<f4",
        VoxelType::F64 => "<f8",
    };
    let mut shape: String = array.shape.iter().map(|n| format!("{n}, ")).collect();
    if array.shape.len() > 1 {
        shape.truncate(shape.len() - 2);
    }
    let mut text =
        format!("{{'descr': '{name}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    let before = MAGIC.len() + 4;
    let end = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - before - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(text.len()).map_err(|_| Problem::Field {
        field: "the shape of the array",
        found: format!("{} axes", array.shape.len()),
        allowed: "at most 64 axes",
        advice: "reshape the array before saving it",
    })?;
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(array.voxels.to_le_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, text: &str, data: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([version, 0]);
        match version {
            1 => out.extend((text.len() as u16).to_le_bytes()),
            _ => out.extend((text.len() as u32).to_le_bytes()),
        }
        out.extend(text.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn versions_and_half_precision_are_read() {
        let text = "{'descr': '>f2', 'fortran_order': True, 'shape': (2, 2)}\n";
        for version in 1..=3 {
            let bytes = file(version, text, &[0x3c, 0, 0x40, 0, 0xc0, 0, 0x7c, 0]);
            let array = parse_npy(&bytes, &Limits::default()).unwrap();
            assert_eq!(array.voxels, Voxels::F32(vec![1.0, -2.0, 2.0, f32::INFINITY]));
        }
        let message = parse_npy(&file(4, text, &[]), &Limits::default()).unwrap_err().to_string();
        assert!(message.contains("4.0") && message.contains("3.0"), "{message}");
    }

    #[test]
    fn lengths_must_agree() {
        let text = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}\n";
        let message =
            |data: &[u8]| parse_npy(&file(1, text, data), &Limits::default()).unwrap_err().to_string();
        assert!(message(&[1, 0]).contains("needs 3 bytes, but only 2"));
        assert!(message(&[1, 0, 1, 0]).contains("exactly as long"));
        assert!(message(&[1, 0, 2]).contains("2 at value 2"));
    }

    #[test]
    fn a_claim_of_memory_gets_none() {
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000, 1000, 1000)}\n";
        let message = parse_npy(&file(1, huge, &[]), &Limits::default()).unwrap_err().to_string();
        assert!(message.contains("needs 8000000000 bytes"), "{message}");
        let overflow = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}\n";
        let message = parse_npy(&file(1, overflow, &[]), &Limits::default()).unwrap_err().to_string();
        assert!(message.contains("`values`"), "{message}");
    }

    #[test]
    fn arrays_go_round() {
        for shape in [vec![], vec![6], vec![2, 3], vec![1, 2, 3], vec![0, 3]] {
            let count: usize = shape.iter().product();
            for kind in VoxelType::ALL {
                let bytes: Vec<u8> = (0..count * kind.bytes()).map(|i| i as u8).collect();
                let voxels = Voxels::from_bytes(kind, &bytes, ByteOrder::Little);
                let array = Array { voxels, shape: shape.clone() };
                let encoded = encode_npy(&array).unwrap();
                assert_eq!((encoded.len() - bytes.len()) % ALIGNMENT, 0);
                assert_eq!(parse_npy(&encoded, &Limits::default()).unwrap(), array);
            }
        }
        assert!(encode_npy(&Array { voxels: Voxels::U8(vec![1]), shape: vec![2] }).is_err());
    }
}
