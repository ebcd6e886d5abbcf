//! Tensors: views with strides on storages, copied to arrays of their own.

use half::{bf16, f16};

use crate::array::Array;
use crate::error::Problem;
use crate::pickle::array::{gather, truth_values, widen};
use crate::pickle::budget::Budget;
use crate::pickle::heap::{Heap, Id, Node};
use crate::pickle::machine::malformed;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// The type of a storage's elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::pickle) enum Element {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

/// A storage, as the pickle names it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::pickle) struct Storage {
    pub(in crate::pickle) element: Element,
    /// The record of the archive that holds the content.
    pub(in crate::pickle) key: String,
    /// Elements in the storage.
    pub(in crate::pickle) count: usize,
}

/// A tensor, as the pickle names it: all of its elements lie in its storage.
#[derive(Debug)]
pub(in crate::pickle) struct Tensor {
    pub(in crate::pickle) storage: Storage,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    /// The elements of a storage. Half precision is widened.
    pub(in crate::pickle) fn read(self, bytes: Vec<u8>, order: ByteOrder) -> Result<Voxels, Problem> {
        let kind = match self {
            Self::Bool => return truth_values(bytes),
            Self::F16 => return Ok(Voxels::F32(widen(&bytes, order, f16::from_bits))),
            Self::Bf16 => return Ok(Voxels::F32(widen(&bytes, order, bf16::from_bits))),
            Self::F64 => VoxelType::F64,
            Self::F32 => VoxelType::F32,
            Self::I64 => VoxelType::I64,
            Self::I32 => VoxelType::I32,
            Self::I16 => VoxelType::I16,
            Self::I8 => VoxelType::I8,
            Self::U8 => VoxelType::U8,
        };
        Ok(Voxels::from_bytes(kind, &bytes, order))
    }
}

impl Storage {
    /// Bytes of the record.
    pub(in crate::pickle) fn bytes(&self) -> Option<u64> {
        self.count.checked_mul(self.element.bytes()).map(|bytes| bytes as u64)
    }
}

impl Tensor {
    /// Checks the parts of a tensor.
    pub(in crate::pickle) fn new(
        heap: &mut Heap,
        storage: Id,
        offset: Id,
        shape: Id,
        strides: Id,
    ) -> Result<Self, Problem> {
        let bad = || malformed("a PyTorch tensor whose parts are not as PyTorch writes them");
        let Node::Storage(storage) = heap.get(storage) else { return Err(bad()) };
        let (storage, offset) = (Storage::clone(storage), heap.size(offset).ok_or_else(bad)?);
        let (shape, strides) = heap.sizes(shape).zip(heap.sizes(strides)).ok_or_else(bad)?;
        if shape.len() != strides.len() {
            return Err(bad());
        }
        heap.budget.add((storage.key.len() + 16 * shape.len() + size_of::<Self>()) as u64)?;
        heap.budget.count(&shape)?;
        let last = shape.iter().zip(&strides).try_fold(offset, |place, (&length, &stride)| {
            length.saturating_sub(1).checked_mul(stride).and_then(|step| place.checked_add(step))
        });
        let empty = shape.contains(&0);
        if !empty && last.is_none_or(|last| last >= storage.count) {
            return Err(Problem::Field {
                field: "a PyTorch tensor",
                found: format!("of shape {shape:?} and strides {strides:?} from element {offset}"),
                allowed: "inside its storage",
                advice: "the file is damaged: save it again",
            });
        }
        Ok(Self { storage, offset, shape, strides })
    }

    /// The tensor's values in row-major order, out of those of its storage.
    pub(in crate::pickle) fn copy(&self, storage: &Voxels, budget: &mut Budget) -> Result<Array, Problem> {
        let count = budget.count(&self.shape)?;
        // A storage that is shared or repeated can ask for more than the file holds.
        budget.add_content((count as u64).saturating_mul(storage.kind().bytes() as u64))?;
        let voxels = gather(storage, &self.shape, &self.strides, self.offset);
        Ok(Array { voxels, shape: self.shape.clone() })
    }
}
