//! Statistics that normalizations share with other ranks.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::Tensor;
use torch_sys::C_tensor;

use crate::error::Result;
use crate::library::{call, loaded};

/// Sums a tensor over ranks, in place, as work of the current stream; or says why not.
type Sum = dyn Fn(&Tensor) -> std::result::Result<(), String> + Send + Sync;

/// How normalizations of a [`Part`](crate::Part) sum their statistics over ranks, for as long as this lives.
pub struct SharedSums(*mut Box<Sum>);

// SAFETY: a pointer to something that may be sent, and that this value alone frees.
unsafe impl Send for SharedSums {}

impl std::fmt::Debug for SharedSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedSums")
    }
}

impl SharedSums {
    /// Sums in this way from now on. One value of a process at a time.
    pub fn new(
        sum: impl Fn(&Tensor) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let sum: Box<Sum> = Box::new(sum);
        let shared = Self(Box::into_raw(Box::new(sum)));
        // SAFETY: the state lives until it is forgotten below.
        call(|library| unsafe { (library.ssn_set_sum)(Some(add_up), shared.0.cast()) })?;
        Ok(shared)
    }
}

impl Drop for SharedSums {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: to forget takes no state; it cannot fail.
            let _ = unsafe { (library.ssn_set_sum)(None, std::ptr::null_mut()) };
        }
        // SAFETY: made by `new`, and nobody calls it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

extern "C" fn add_up(state: *mut c_void, numbers: *const C_tensor, message: *mut c_char, room: i64) -> c_int {
    let work = || {
        // SAFETY: the state is that of a `SharedSums` that lives.
        let sum = unsafe { &*state.cast::<Box<Sum>>() };
        // SAFETY: the tensor lives during this call, and a clone shares its memory.
        sum(&unsafe { Tensor::clone_from_ptr(numbers.cast_mut()) })
    };
    // Panics must not pass through C++.
    let answer = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a sum over ranks failed, as told above".to_owned()));
    let Err(text) = answer else { return 0 };
    // The text ends with 0 within the room.
    let length = text.len().min((room.max(1) - 1) as usize);
    // SAFETY: there is room for so many bytes and the last 0.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), message, length);
        message.add(length).write(0);
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_within_its_room() {
        let refuse = |_: &Tensor| Err("rank 1 is gone".to_owned());
        let panic = |_: &Tensor| panic!("on purpose");
        let add = |numbers: &Tensor| {
            let _ = numbers.shallow_clone().f_add_scalar_(1.0);
            Ok(())
        };
        let numbers = Tensor::from_slice(&[1.0f64, 2.0]);
        let told = |sum: Box<Sum>, room: usize| {
            let mut message = vec![1u8; room];
            let state = std::ptr::from_ref(&sum).cast_mut().cast();
            let code = add_up(state, numbers.as_ptr(), message.as_mut_ptr().cast(), room as i64);
            let text: Vec<u8> = message.into_iter().take_while(|&byte| byte != 0).collect();
            (code, String::from_utf8_lossy(&text).into_owned())
        };
        assert_eq!(told(Box::new(refuse), 64), (1, "rank 1 is gone".to_owned()));
        assert_eq!(told(Box::new(refuse), 5), (1, "rank".to_owned()));
        assert_eq!(told(Box::new(panic), 64).0, 1);
        assert_eq!(told(Box::new(add), 64).0, 0);
        assert_eq!(Vec::<f64>::try_from(&numbers).ok(), Some(vec![2.0, 3.0]));
    }
}
