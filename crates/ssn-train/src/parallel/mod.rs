//! Data-parallel training: the sums of gradients over ranks, on CPUs and GPUs.

mod gpu;
mod gradients;
#[cfg(feature = "mpi")]
pub mod mpi;

pub use gpu::{GpuAllReduce, GpuGradientReducer};
pub use gradients::GradientReducer;
