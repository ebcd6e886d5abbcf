//! Standard normal numbers by address, on the GPU.

use std::ops::Range;

use tch::{Kind, Tensor};

use crate::error::{CudaError, Result};
use crate::launch::{Arguments, Kernel};

/// The place of numbers in a stream of noise: see `fill_normals_from` of `ssn-core`.
#[derive(Debug, Clone)]
pub struct NoiseAddress {
    /// The stream.
    pub stream: u32,
    /// The draws.
    pub draws: Range<i64>,
    /// The rows of a draw.
    pub rows: i64,
    /// The numbers of a row.
    pub length: i64,
    /// The number of the first row.
    pub first_row: i64,
    /// The range of each row that is returned.
    pub range: Range<i64>,
}

/// Returns standard normal numbers, to the bit those that the CPU draws from the same seed.
///
/// The seed is read on the GPU when the work is done: in a CUDA graph, every replay reads it again.
///
/// # Shapes
/// `seed` `[1]` of int64 on the GPU → `[draws, rows, range]` in single precision.
///
/// # Errors
/// Addresses of 2³² numbers or more.
pub fn normals(seed: &Tensor, address: &NoiseAddress) -> Result<Tensor> {
    const THREADS: i64 = 256;
    const MAX_BLOCKS: i64 = 1 << 16;
    let NoiseAddress { stream, draws, rows, length, first_row, range } = address;
    let (count, draw_count) = (range.end - range.start, draws.end - draws.start);
    let end = (first_row + rows).checked_mul(*length);
    if end.is_none_or(|end| end > i64::from(u32::MAX)) {
        let reason = format!(
            "a draw of noise has {} numbers, more than 2³²",
            (first_row + rows) as f64 * *length as f64
        );
        return Err(CudaError::Call(reason));
    }
    let out = Tensor::f_empty([draw_count, *rows, count], (Kind::Float, seed.device()))?;
    let total = draw_count * rows * count;
    if total == 0 {
        return Ok(out);
    }
    let mut arguments = Arguments::default();
    arguments.tensor(Some(seed)).tensor(Some(&out)).number(*stream).number(draws.start as u32).number(*rows);
    arguments.number(*length).number(first_row * length + range.start).number(count).number(total);
    let blocks = ((total + THREADS - 1) / THREADS).min(MAX_BLOCKS) as u32;
    let kernel = Kernel { file: "noise.cu", options: "", name: "normals" };
    // SAFETY: the arguments are those of the kernel; memory of tensors is reused in the order of the stream.
    unsafe { kernel.launch(blocks, THREADS as u32, &mut arguments)? };
    Ok(out)
}
