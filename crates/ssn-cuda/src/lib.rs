//! What training needs beyond the bindings to libtorch: [`autograd`] nodes, and on a GPU graphs, streams, pinned memory, and
//! operators that do in one pass over memory what libtorch does in several.
//!
//! Nothing of CUDA is linked: [`load`] brings libtorch's CUDA libraries and the C++ part of this crate into the process
//! when somebody asks for a GPU, so that one program serves machines with and without one.

pub mod autograd;
mod device;
mod error;
mod launch;
mod library;
mod nccl;
mod noise;
mod operators;
mod options;
mod table;

pub use autograd::SyncNormReduce;
pub use device::{
    CudaEvent, DeviceProperties, Graph, Number, PinnedBuffer, StepLock, StepSums, allow_tf32, branches,
    copy_async, copy_on_side_stream, device_properties, empty_cache, enter_stream, peak_memory, profile,
    reserved_memory, synchronize, use_device, wait_for_copies, with_side_streams, within_memory,
};
pub use error::{CudaError, FAILURE_ADVICE, FAILURE_CODE, Result, says_failed, says_out_of_memory};
pub use library::{is_built, load};
pub use nccl::{Nccl, wait_for_all_reduce};
pub use noise::{NoiseAddress, normals};
pub use operators::{
    NormTensors, convolution, downsample, is_linear_possible, join, linear, monte_carlo, normalize,
    normalized_convolution, soft_maps, upsample,
};
pub use options::{Activation, DrawOptions, NormOptions, PathOptions};
pub use table::{ParameterRow, ParameterTable, StepResults, UpdateRule, UpdateSettings, Working};

/// Feature maps have a multiple of so many channels: what a thread reads at once, and what tensor cores take.
pub const CHANNEL_UNIT: i64 = 8;

/// The channels of a feature map that has room for so many.
pub fn padded(channels: i64) -> i64 {
    (channels + CHANNEL_UNIT - 1) / CHANNEL_UNIT * CHANNEL_UNIT
}
