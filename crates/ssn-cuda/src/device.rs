//! The device: what it is, its memory, its streams.

use std::ffi::CStr;

use tch::Device;

use crate::error::{CudaError, Result};
use crate::library::call;

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: [i64; 2],
    /// Bytes that nobody uses.
    pub free: i64,
    /// All bytes.
    pub total: i64,
    /// What no other GPU has.
    pub identity: [u8; 16],
}

/// The most memory used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in tensors.
    pub in_tensors: i64,
    /// Bytes taken from the device.
    pub taken: i64,
}

fn index(device: Device) -> Result<i64> {
    match device {
        Device::Cuda(index) => Ok(index as i64),
        other => {
            let found = "it is no CUDA device".to_owned();
            Err(CudaError::NoDevice { wanted: format!("{other:?}"), found })
        }
    }
}

/// What a device is.
pub fn describe(device: Device) -> Result<Description> {
    let index = index(device)?;
    let count = tch::Cuda::device_count();
    if index >= count {
        let found = format!("this machine has {count}, counted from 0");
        return Err(CudaError::NoDevice { wanted: format!("GPU {index}"), found });
    }
    let (mut name, mut memory, mut capability, mut identity) = ([0; 256], [0; 2], [0; 2], [0; 16]);
    // SAFETY: the arrays are as long as the function expects.
    call(|library| unsafe {
        let (memory, capability) = (memory.as_mut_ptr(), capability.as_mut_ptr());
        (library.ssn_describe_device)(index, name.as_mut_ptr(), memory, capability, identity.as_mut_ptr())
    })?;
    // SAFETY: the function has written a string that ends in zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(Description { name, capability, free: memory[0], total: memory[1], identity })
}

/// From now on this thread works on the device.
pub fn use_device(device: Device) -> Result<()> {
    let index = index(device)?;
    // SAFETY: a plain number.
    call(|library| unsafe { (library.ssn_use_device)(index) })
}

/// From now on this thread works on the device, on a stream of its own: what a capture needs.
pub fn enter_stream(device: Device) -> Result<()> {
    let index = index(device)?;
    // SAFETY: plain numbers.
    call(|library| unsafe { (library.ssn_enter_stream)(index) })
}

/// Begins a step: clears the sums that its operators add to.
pub fn begin_step(device: Device) -> Result<()> {
    let index = index(device)?;
    // SAFETY: a plain number.
    call(|library| unsafe { (library.ssn_begin_step)(index) })
}

/// Waits for the work of this thread's stream.
pub fn synchronize() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_synchronize)() })
}

/// The most memory used so far.
pub fn peak_memory(device: Device) -> Result<Memory> {
    let (index, mut peak) = (index(device)?, [0; 2]);
    // SAFETY: the array is as long as the function expects.
    call(|library| unsafe { (library.ssn_peak_memory)(index, peak.as_mut_ptr()) })?;
    Ok(Memory { in_tensors: peak[0], taken: peak[1] })
}

/// Whether convolutions in single precision may round what they read to TF32, ten bits of mantissa. They may unless this
/// forbids it.
pub fn allow_tf32(on: bool) -> Result<()> {
    // SAFETY: a plain number.
    call(|library| unsafe { (library.ssn_allow_tf32)(on.into()) })
}

/// Tells a profiler that waits for it when to look.
pub fn profile(on: bool) -> Result<()> {
    // SAFETY: a plain number.
    call(|library| unsafe { (library.ssn_profile)(on.into()) })
}

/// Gives memory back to the device that was kept for later.
pub fn forget_unused_memory() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_empty_cache)() })
}
