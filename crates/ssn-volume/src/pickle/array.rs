//! NumPy's arrays and numbers, from the parts that a pickle stores.

use half::f16;

use super::heap::{Heap, Id, Node};
use super::machine::malformed;
use crate::array::Array;
use crate::error::Problem;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// Bytes of an array beyond this size are moved out of the object that holds them and shorter ones are
/// copied, since Python shares short `bytes` between arrays.
const MOVED_FROM: usize = 4096;

/// An array that was named but not filled yet.
#[derive(Debug)]
pub(super) struct Pending;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dtype {
    kind: Kind,
    /// Nothing until the pickle says it.
    order: Option<ByteOrder>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Bool,
    Half,
    Plain(VoxelType),
}

impl Dtype {
    /// From NumPy's short name, such as `f8`.
    pub(super) fn from_name(name: &str) -> Result<Self, Problem> {
        let (order, rest) = match name.as_bytes().first() {
            Some(b'<') => (Some(ByteOrder::Little), &name[1..]),
            Some(b'>') => (Some(ByteOrder::Big), &name[1..]),
            Some(b'|') => (None, &name[1..]),
            _ => (None, name),
        };
        let kind = match rest {
            "b1" => Kind::Bool,
            "f2" => Kind::Half,
            "u1" => Kind::Plain(VoxelType::U8),
            "i1" => Kind::Plain(VoxelType::I8),
            "u2" => Kind::Plain(VoxelType::U16),
            "i2" => Kind::Plain(VoxelType::I16),
            "u4" => Kind::Plain(VoxelType::U32),
            "i4" => Kind::Plain(VoxelType::I32),
            "u8" => Kind::Plain(VoxelType::U64),
            "i8" => Kind::Plain(VoxelType::I64),
            "f4" => Kind::Plain(VoxelType::F32),
            "f8" => Kind::Plain(VoxelType::F64),
            _ => {
                return Err(Problem::Unsupported {
                    what: format!("the NumPy dtype {:?}", name.chars().take(40).collect::<String>()),
                    advice: "save arrays of bool, whole numbers of 8 to 64 bits, or floats of 16 to 64 bits",
                });
            }
        };
        Ok(Self { kind, order })
    }

    /// Takes over the state that the pickle gives: version, byte order, and five or six fields that are only
    /// in use for types made of others.
    pub(super) fn set_state(&mut self, heap: &Heap, state: Id) -> Result<(), Problem> {
        let bad = || malformed("a NumPy dtype whose state is not as NumPy writes it");
        let fields = heap.tuple(state).filter(|fields| (8..=9).contains(&fields.len())).ok_or_else(bad)?;
        // Sub-array, names and fields are nothing for plain numbers.
        if !fields[2..5].iter().all(|&field| matches!(heap.get(field), Node::None)) {
            return Err(bad());
        }
        self.order = match heap.text(fields[1]) {
            Some("<") => Some(ByteOrder::Little),
            Some(">") => Some(ByteOrder::Big),
            Some("|") => None,
            _ => return Err(bad()),
        };
        Ok(())
    }

    fn bytes(self) -> usize {
        match self.kind {
            Kind::Bool => 1,
            Kind::Half => 2,
            Kind::Plain(kind) => kind.bytes(),
        }
    }

    fn read(self, bytes: Vec<u8>) -> Result<Voxels, Problem> {
        let order = match (self.order, self.bytes()) {
            (Some(order), _) => order,
            (None, 1) => ByteOrder::Little,
            (None, _) => return Err(malformed("a NumPy dtype without a byte order")),
        };
        match self.kind {
            Kind::Bool => truth_values(bytes),
            Kind::Half => Ok(Voxels::F32(widen(&bytes, order, f16::from_bits))),
            Kind::Plain(VoxelType::U8) => Ok(Voxels::U8(bytes)),
            Kind::Plain(kind) => Ok(Voxels::from_bytes(kind, &bytes, order)),
        }
    }
}

/// Truth values, which are 0 or 1.
pub(super) fn truth_values(bytes: Vec<u8>) -> Result<Voxels, Problem> {
    match bytes.iter().find(|&&b| b > 1) {
        None => Ok(Voxels::U8(bytes)),
        Some(b) => Err(Problem::Field {
            field: "a value of type bool",
            found: b.to_string(),
            allowed: "0 or 1",
            advice: "the file is damaged: save the array again",
        }),
    }
}

/// Numbers of two bytes in single precision.
pub(super) fn widen<T: Into<f32>>(bytes: &[u8], order: ByteOrder, number: fn(u16) -> T) -> Vec<f32> {
    let bits = |pair: &[u8]| match order {
        ByteOrder::Little => u16::from_le_bytes([pair[0], pair[1]]),
        ByteOrder::Big => u16::from_be_bytes([pair[0], pair[1]]),
    };
    bytes.chunks_exact(2).map(|pair| number(bits(pair)).into()).collect()
}

/// An array from its shape, its type, and the object that holds its bytes.
///
/// `axes` says in which order the axes lie in the bytes, slowest first.
pub(super) fn build(
    heap: &mut Heap,
    shape: Vec<usize>,
    dtype: Dtype,
    data: Id,
    axes: &[usize],
) -> Result<Array, Problem> {
    let count = heap.budget.count(&shape)?;
    let needed = count.checked_mul(dtype.bytes());
    let found = match heap.get(data) {
        Node::Bytes(bytes) | Node::OldText(bytes) => bytes.len(),
        Node::Moved => return Err(malformed("two arrays in the same bytes")),
        Node::List(_) => return Err(malformed("an array of numbers whose content is a list")),
        _ => return Err(malformed("an array whose content is no bytes")),
    };
    if needed != Some(found) {
        return Err(Problem::Field {
            field: "the content of a NumPy array",
            found: format!("{found} bytes for the shape {shape:?}"),
            allowed: "as many bytes as shape and dtype ask for",
            advice: "the file is damaged: save the array again",
        });
    }
    let bytes = if found >= MOVED_FROM {
        let (Node::Bytes(bytes) | Node::OldText(bytes)) = heap.take(data) else {
            return Err(malformed("no bytes"));
        };
        if dtype.kind == Kind::Half {
            heap.budget.add(found as u64)?;
        }
        bytes
    } else {
        heap.budget.add(2 * found as u64)?;
        let (Node::Bytes(bytes) | Node::OldText(bytes)) = heap.get(data) else {
            return Err(malformed("no bytes"));
        };
        bytes.clone()
    };
    let stored: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    // Distance in the bytes between neighbours along each axis of the array.
    let mut strides = vec![0; shape.len()];
    let mut step = 1usize;
    for (&axis, &length) in axes.iter().zip(&stored).rev() {
        strides[axis] = step;
        step = step.saturating_mul(length);
    }
    let values = dtype.read(bytes)?;
    let values = if axes.is_sorted() { values } else { gather(&values, &shape, &strides, 0) };
    Ok(Array { voxels: values, shape })
}

/// A row-major copy of the values at `offset + Σ index · stride`. The caller has checked that all of them
/// exist.
pub(super) fn gather(values: &Voxels, shape: &[usize], strides: &[usize], offset: usize) -> Voxels {
    macro_rules! each {
        ($($kind:ident),*) => {
            match values {
                $(Voxels::$kind(values) => Voxels::$kind(gather_slice(values, shape, strides, offset)),)*
            }
        };
    }
    each!(U8, I8, U16, I16, U32, I32, U64, I64, F32, F64)
}

fn gather_slice<T: Copy>(values: &[T], shape: &[usize], strides: &[usize], offset: usize) -> Vec<T> {
    let mut out = vec![];
    if shape.contains(&0) {
        return out;
    }
    let (outer, length, stride) = match (shape.split_last(), strides.last()) {
        (Some((&length, outer)), Some(&stride)) => (outer, length, stride),
        _ => (&[][..], 1, 1),
    };
    let mut index = vec![0; outer.len()];
    let mut start = offset;
    loop {
        out.extend((0..length).filter_map(|i| values.get(start + i * stride)));
        // Counts up like a milometer: the last axis that is not at its end moves on.
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return out;
            }
            axis -= 1;
            index[axis] += 1;
            start += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            start -= strides[axis] * index[axis];
            index[axis] = 0;
        }
    }
}

/// A NumPy number as one of Python's.
pub(super) fn scalar(dtype: Dtype, bytes: &[u8]) -> Result<Node, Problem> {
    if bytes.len() != dtype.bytes() {
        return Err(malformed("a NumPy number whose bytes do not fit its dtype"));
    }
    let too_large = || Problem::Unsupported {
        what: "a whole number beyond 64 bits with sign".into(),
        advice: "save it as a float or as text",
    };
    Ok(match (dtype.kind, dtype.read(bytes.to_vec())?) {
        (Kind::Bool, Voxels::U8(x)) => Node::Bool(x == [1]),
        (_, Voxels::F32(x)) => Node::Float(x[0].into()),
        (_, Voxels::F64(x)) => Node::Float(x[0]),
        (_, Voxels::U8(x)) => Node::Int(x[0].into()),
        (_, Voxels::I8(x)) => Node::Int(x[0].into()),
        (_, Voxels::U16(x)) => Node::Int(x[0].into()),
        (_, Voxels::I16(x)) => Node::Int(x[0].into()),
        (_, Voxels::U32(x)) => Node::Int(x[0].into()),
        (_, Voxels::I32(x)) => Node::Int(x[0].into()),
        (_, Voxels::I64(x)) => Node::Int(x[0]),
        (_, Voxels::U64(x)) => Node::Int(i64::try_from(x[0]).map_err(|_| too_large())?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_followed() {
        let values = Voxels::U8((0..12).collect());
        // [2, 3] seen transposed, from the second value on.
        let got = gather(&values, &[3, 2], &[1, 3], 1);
        assert_eq!(got, Voxels::U8(vec![1, 4, 2, 5, 3, 6]));
        assert_eq!(gather(&values, &[], &[], 7), Voxels::U8(vec![7]));
        assert_eq!(gather(&values, &[2, 2, 2], &[6, 0, 1], 0), Voxels::U8(vec![0, 1, 0, 1, 6, 7, 6, 7]));
        assert_eq!(gather(&values, &[2, 0], &[1, 1], 0), Voxels::U8(vec![]));
    }

    #[test]
    fn dtypes_that_are_no_numbers_are_named() {
        for name in ["O8", "U5", "S3", "c16", "V8", "M8", "f16", "", "é"] {
            let message = Dtype::from_name(name).unwrap_err().to_string();
            assert!(message.contains(&format!("{name:?}")), "{message}");
        }
    }
}
