//! Devices, streams and events, pinned memory and asynchronous copies, CUDA graphs.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tch::{Device, Tensor};

use crate::error::{CudaError, Result};
use crate::library::{call, call_for_tensor, loaded, pointer};

/// The properties of a GPU, as `torch.cuda.get_device_properties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: [i64; 2],
    /// Bytes that nobody uses.
    pub free: i64,
    /// All bytes.
    pub total: i64,
    /// Its UUID.
    pub identity: [u8; 16],
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

/// The properties of a device.
pub fn device_properties(device: Device) -> Result<DeviceProperties> {
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
    Ok(DeviceProperties { name, capability, free: memory[0], total: memory[1], identity })
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

/// Waits for the work of this thread's stream.
pub fn synchronize() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_synchronize)() })
}

/// The peaks so far of the bytes allocated in tensors and of those reserved on the device.
pub fn peak_memory(device: Device) -> Result<[i64; 2]> {
    let (index, mut peak) = (index(device)?, [0; 2]);
    // SAFETY: the array is as long as the function expects.
    call(|library| unsafe { (library.ssn_peak_memory)(index, peak.as_mut_ptr()) })?;
    Ok(peak)
}

/// Runs work with at most so many bytes taken from the device. Work that needs more fails as if the device had no more.
pub fn within_memory<T>(device: Device, bytes: i64, work: impl FnOnce() -> T) -> Result<T> {
    let number = index(device)?;
    let share = bytes as f64 / device_properties(device)?.total as f64;
    // SAFETY: plain numbers.
    let limit = |share: f64| call(|library| unsafe { (library.ssn_limit_memory)(number, share) });
    limit(share.min(1.0))?;
    // Where the limit cannot be lifted, what the work met tells more.
    then(|| Ok(work()), || limit(1.0).or(Ok(())))
}

/// Bytes that this process has taken from the device.
pub fn reserved_memory(device: Device) -> Result<i64> {
    let (index, mut bytes) = (index(device)?, 0);
    // SAFETY: the number is written to the place given.
    call(|library| unsafe { (library.ssn_reserved_memory)(index, &mut bytes) })?;
    Ok(bytes)
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

/// Returns cached memory to the device, as `torch.cuda.empty_cache`.
pub fn empty_cache() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_empty_cache)() })
}

/// Numbers in host memory that the device copies by itself.
#[derive(Debug)]
pub struct PinnedBuffer<T> {
    tensor: Tensor,
    count: usize,
    values: PhantomData<T>,
}

/// Plain numbers.
pub trait Number: Copy + tch::kind::Element {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u8 {}
impl Number for half::f16 {}

impl<T: Number> PinnedBuffer<T> {
    /// Room for so many numbers, all zero.
    pub fn new(count: usize) -> Result<Self> {
        let bytes = (count * size_of::<T>()).max(1) as i64;
        // SAFETY: the tensor is written to the place given.
        let mut tensor = call_for_tensor(|library, out| unsafe { (library.ssn_pinned)(bytes, out) })?;
        let _ = tensor.f_zero_()?;
        Ok(Self { tensor, count, values: PhantomData })
    }

    /// The numbers. No copy that was begun may still be under way.
    pub fn values(&mut self) -> &mut [T] {
        // SAFETY: the tensor has `count` numbers of this size, aligned far more than they need, and is borrowed with us.
        unsafe { std::slice::from_raw_parts_mut(self.tensor.data_ptr() as *mut T, self.count) }
    }

    /// The numbers as a tensor of this shape, sharing memory.
    pub fn tensor(&self, shape: &[i64]) -> Result<Tensor> {
        let bytes = (self.count * size_of::<T>()) as i64;
        Ok(self.tensor.f_narrow(0, 0, bytes)?.f_view_dtype(T::KIND)?.f_view(shape)?)
    }
}

/// Copies on the stream of the work, without waiting; the host's side must be pinned and stay as it is until then.
pub fn copy_async(to: &mut Tensor, from: &Tensor) -> Result<()> {
    // SAFETY: both are tensors.
    call(|library| unsafe { (library.ssn_copy)(to.as_mut_ptr(), pointer(Some(from))) })
}

/// Copies on the side stream.
pub fn copy_on_side_stream(to: &mut Tensor, from: &Tensor) -> Result<()> {
    // SAFETY: both are tensors.
    call(|library| unsafe { (library.ssn_copy_on_side_stream)(to.as_mut_ptr(), pointer(Some(from))) })
}

/// What the work does next waits for the copies begun so far.
pub fn wait_for_copies() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_wait_for_copies)() })
}

/// A CUDA event: a point in the work of a stream.
#[derive(Debug)]
pub struct CudaEvent(*mut c_void);

impl CudaEvent {
    /// An event that is not recorded yet.
    pub fn new() -> Result<Self> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the event is written to the place given.
        call(|library| unsafe { (library.ssn_event_new)(&mut event) })?;
        Ok(Self(event))
    }

    /// Records the end of the work launched so far.
    pub fn record(&self) -> Result<()> {
        // SAFETY: the event lives.
        call(|library| unsafe { (library.ssn_event_record)(self.0) })
    }

    /// Seconds from an earlier event to this one; both must have completed.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        let mut milliseconds = 0.0;
        // SAFETY: both events live.
        call(|library| unsafe { (library.ssn_event_between)(earlier.0, self.0, &mut milliseconds) })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: made by the same library, and dropped once.
            unsafe { (library.ssn_event_free)(self.0) }
        }
    }
}

/// A captured CUDA graph: work that is replayed as a whole, without a launch for every kernel. Every tensor that it reads
/// or writes keeps its address.
#[derive(Debug)]
pub struct Graph(*mut c_void);

impl Graph {
    /// Captures the work of a function on this thread's stream; nothing is computed.
    ///
    /// The memory of tensors made inside belongs to the graph.
    pub fn record<T, E: From<CudaError>>(
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<(Self, T), E> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the graph is written to the place given.
        call(|library| unsafe { (library.ssn_graph_begin)(&mut graph) })?;
        let graph = Self(graph);
        // SAFETY: the graph lives.
        let end = || call(|library| unsafe { (library.ssn_graph_end)(graph.0) });
        let result = then(work, end)?;
        Ok((graph, result))
    }

    /// Launches the captured work.
    pub fn replay(&self) -> Result<()> {
        // SAFETY: the graph lives and was recorded.
        call(|library| unsafe { (library.ssn_graph_replay)(self.0) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: made by the same library, and dropped once.
            unsafe { (library.ssn_graph_free)(self.0) }
        }
    }
}

/// Runs forward and backward passes that are being captured, with streams beside that of the step: weight gradients run beside
/// the rest of the backward pass, and branches beside each other. Kernels and results are the same.
///
/// The caller holds the lock of steps. Gradients must not be used before this returns.
pub fn with_side_streams<T, E: From<CudaError>>(
    _lock: &StepLock,
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    // SAFETY: a plain number.
    let turn = |on: bool| call(|library| unsafe { (library.ssn_side_streams)(on.into()) });
    turn(true)?;
    then(work, || turn(false))
}

/// Does some work, and then what must be done even if it failed or panicked, as the bindings do where memory lacks.
fn then<T, E: From<CudaError>>(
    work: impl FnOnce() -> std::result::Result<T, E>,
    end: impl Fn() -> Result<()>,
) -> std::result::Result<T, E> {
    struct OnPanic<F: Fn() -> Result<()>>(F);
    impl<F: Fn() -> Result<()>> Drop for OnPanic<F> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                // The panic tells more.
                let _ = (self.0)();
            }
        }
    }
    let guard = OnPanic(&end);
    let result = work();
    drop(guard);
    let ended = end();
    let result = result?;
    ended?;
    Ok(result)
}

/// Runs branches that do not depend on each other, the last one on the current stream and the others on streams of their own
/// inside [`with_side_streams`]; elsewhere one after the other.
pub fn branches<I, T, E: From<CudaError>>(
    device: Device,
    inputs: impl ExactSizeIterator<Item = I>,
    mut branch: impl FnMut(I) -> std::result::Result<T, E>,
) -> std::result::Result<Vec<T>, E> {
    if device == Device::Cpu {
        return inputs.map(branch).collect();
    }
    // SAFETY: no arguments.
    let enter = || call(|library| unsafe { (library.ssn_enter_branch)() });
    // SAFETY: no arguments.
    let leave = || call(|library| unsafe { (library.ssn_leave_branch)() });
    // SAFETY: no arguments.
    let join = || call(|library| unsafe { (library.ssn_join_branches)() });
    let mut results = vec![];
    let last = inputs.len().saturating_sub(1);
    for (i, input) in inputs.enumerate() {
        if i < last {
            enter()?;
            results.push(then(|| branch(input), leave)?);
        } else {
            results.push(branch(input)?);
        }
    }
    join()?;
    Ok(results)
}

/// The sums that the operators of a trainer's steps add to. A captured step keeps their addresses.
#[derive(Debug)]
pub struct StepSums(*mut c_void);

static STEPS: Mutex<()> = Mutex::new(());

impl StepSums {
    /// None yet: the first step says how many there are.
    pub fn new() -> Result<Self> {
        let mut sums = std::ptr::null_mut();
        // SAFETY: the sums are written to the place given.
        call(|library| unsafe { (library.ssn_sums_new)(&mut sums) })?;
        Ok(Self(sums))
    }

    /// Begins a step: clears the sums that its operators add to. The operators find them by the process, so that the caller holds
    /// the lock of steps until all of them were launched.
    pub fn begin_step(&self, device: Device, _lock: &StepLock) -> Result<()> {
        let index = index(device)?;
        // SAFETY: the sums live.
        call(|library| unsafe { (library.ssn_begin_step)(self.0, index) })
    }
}

impl Drop for StepSums {
    fn drop(&mut self) {
        let _lock = StepLock::acquire();
        if let Some(library) = loaded() {
            // SAFETY: made by the same library, and dropped once.
            unsafe { (library.ssn_sums_free)(self.0) }
        }
    }
}

/// Trainers of one process launch their steps in turns.
#[derive(Debug)]
pub struct StepLock(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl StepLock {
    /// Waits for its turn.
    pub fn acquire() -> Self {
        Self(STEPS.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
