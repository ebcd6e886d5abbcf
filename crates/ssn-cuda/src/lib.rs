//! What training needs beyond the bindings to libtorch: [`autograd`] nodes, and on a GPU graphs, streams, pinned memory, and
//! operators that do in one pass over memory what libtorch does in several.
//!
//! Nothing of CUDA is linked: [`load`] brings libtorch's CUDA libraries and the C++ part of this crate into the process
//! when somebody asks for a GPU, so that one program serves machines with and without one.

pub mod autograd;
mod copies;
mod device;
mod error;
mod graph;
mod lease;
mod library;
mod nccl;
mod operators;
mod shared;
mod table;

pub use copies::{Event, Pinned, await_copies, copy_beside, copy_later};
pub use device::{
    Description, Memory, allow_tf32, begin_step, describe, enter_stream, forget_unused_memory, peak_memory,
    profile, synchronize, use_device,
};
pub use error::{CudaError, FAILURE_ADVICE, FAILURE_CODE, Result, says_failed, says_out_of_memory};
pub use graph::Graph;
pub use lease::Lease;
pub use library::{is_built, load};
pub use nccl::{Nccl, await_sums};
pub use operators::{
    Activation, Dropout, JoinPath, LossOptions, MonteCarlo, NormTensors, Normalization, Part, ascend,
    descend, is_linear_possible, join, linear, monte_carlo, normalize, normalized_convolution,
};
pub use shared::SharedSums;
pub use table::{Entry, Results, Rule, Settings, Table, Working};

/// Feature maps have a multiple of so many channels: what a thread reads at once, and what tensor cores take.
pub const CHANNEL_UNIT: i64 = 8;

/// The channels of a feature map that has room for so many.
pub fn padded(channels: i64) -> i64 {
    (channels + CHANNEL_UNIT - 1) / CHANNEL_UNIT * CHANNEL_UNIT
}
