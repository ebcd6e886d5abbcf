//! The numbers of a dataset, decoded in their place: a second copy would double the memory.

use super::bytes::File;
use super::dataset::Dataset;
use crate::error::Problem;
use crate::voxels::{ByteOrder, VoxelType, Voxels};

/// All `count` numbers of a dataset.
pub(super) fn read(file: &File, dataset: &Dataset, kind: VoxelType, count: usize) -> Result<Voxels, Problem> {
    let order = match dataset.datatype.get(1).is_some_and(|flags| flags & 1 != 0) {
        true => ByteOrder::Big,
        false => ByteOrder::Little,
    };
    if !dataset.fill.is_empty() && dataset.fill.len() != kind.bytes() {
        let reason = "it has another length than the values".to_owned();
        return Err(Problem::Damaged { part: "a fill value", reason });
    }
    macro_rules! numbers {
        ($variant:ident, $type:ty) => {{
            let number = |bytes: &[u8]| match order {
                ByteOrder::Little => <$type>::from_le_bytes(bytes.try_into().unwrap_or_default()),
                ByteOrder::Big => <$type>::from_be_bytes(bytes.try_into().unwrap_or_default()),
            };
            let mut values = vec![number(dataset.fill); count];
            let runs = &mut |first: usize, bytes: &[u8]| {
                let places = values[first..].iter_mut();
                places.zip(bytes.chunks_exact(size_of::<$type>())).for_each(|(to, from)| *to = number(from));
                Ok(())
            };
            if count > 0 {
                dataset.runs(file, runs)?;
            }
            Voxels::$variant(values)
        }};
    }
    Ok(match kind {
        VoxelType::U8 => numbers!(U8, u8),
        VoxelType::I8 => numbers!(I8, i8),
        VoxelType::U16 => numbers!(U16, u16),
        VoxelType::I16 => numbers!(I16, i16),
        VoxelType::U32 => numbers!(U32, u32),
        VoxelType::I32 => numbers!(I32, i32),
        VoxelType::U64 => numbers!(U64, u64),
        VoxelType::I64 => numbers!(I64, i64),
        VoxelType::F32 => numbers!(F32, f32),
        VoxelType::F64 => numbers!(F64, f64),
    })
}
