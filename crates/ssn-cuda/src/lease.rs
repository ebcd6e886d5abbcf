//! Who may train: the sums of a step are shared by the process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{CudaError, Result};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The right to train on a GPU, which one trainer of a process has at a time.
#[derive(Debug)]
pub struct Lease(());

impl Lease {
    /// Takes it.
    pub fn take() -> Result<Self> {
        match TAKEN.swap(true, Ordering::AcqRel) {
            false => Ok(Self(())),
            true => Err(CudaError::Call("a process trains one network on a GPU at a time".to_owned())),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one() {
        let first = Lease::take().ok();
        assert!(first.is_some() && Lease::take().is_err());
        drop(first);
        assert!(Lease::take().is_ok());
    }
}
