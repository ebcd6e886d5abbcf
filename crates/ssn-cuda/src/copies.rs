//! Copies between host and device that do not hold up the work, and events that say when something is done.

use std::ffi::c_void;
use std::marker::PhantomData;

use tch::Tensor;

use crate::error::Result;
use crate::library::{call, call_for_tensor, loaded, pointer};

/// Numbers in host memory that the device copies by itself.
#[derive(Debug)]
pub struct Pinned<T> {
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

impl<T: Number> Pinned<T> {
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
pub fn copy_later(to: &mut Tensor, from: &Tensor) -> Result<()> {
    // SAFETY: both are tensors.
    call(|library| unsafe { (library.ssn_copy)(to.as_mut_ptr(), pointer(Some(from))) })
}

/// Copies on the stream of the copies, beside the work.
pub fn copy_beside(to: &mut Tensor, from: &Tensor) -> Result<()> {
    // SAFETY: both are tensors.
    call(|library| unsafe { (library.ssn_copy_beside)(to.as_mut_ptr(), pointer(Some(from))) })
}

/// What the work does next waits for the copies begun so far.
pub fn await_copies() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_await_copies)() })
}

/// A moment on a stream.
#[derive(Debug)]
pub struct Event(*mut c_void);

impl Event {
    /// A moment that has not come.
    pub fn new() -> Result<Self> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the event is written to the place given.
        call(|library| unsafe { (library.ssn_event_new)(&mut event) })?;
        Ok(Self(event))
    }

    /// The moment when the work begun so far is done.
    pub fn record(&self) -> Result<()> {
        // SAFETY: the event lives.
        call(|library| unsafe { (library.ssn_event_record)(self.0) })
    }

    /// Seconds from an earlier moment to this one; both must have come.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        let mut milliseconds = 0.0;
        // SAFETY: both events live.
        call(|library| unsafe { (library.ssn_event_between)(earlier.0, self.0, &mut milliseconds) })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: made by the same library, and dropped once.
            unsafe { (library.ssn_event_free)(self.0) }
        }
    }
}
