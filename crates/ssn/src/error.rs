//! Errors of the library, and panics as errors.

use std::any::Any;

pub use ssn_io::{Error, ErrorKind, Result};
use ssn_nn::error::of_device;

/// Returns the error of a panic whose message was shown. The bindings to libtorch panic where memory does not suffice.
pub fn of_panic(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    of_device(text).unwrap_or_else(|| {
        Error::internal("the program failed as told above; please report it with the command used")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_suffice_has_its_own_code_and_tells_sizes() {
        let message = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which \
                       9.00 GiB is free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF";
        let failure = of_panic(&message.to_owned());
        assert_eq!(failure.kind, ErrorKind::OutOfMemory);
        assert!(
            failure.to_string().contains("20.00 GiB. GPU 0 has a total capacity of 139.80 GiB"),
            "{}",
            failure.to_string()
        );
        assert!(!failure.to_string().contains("PYTORCH"), "{}", failure.to_string());
        assert_eq!(of_panic(&"index out of bounds").kind, ErrorKind::Internal);
    }

    #[test]
    fn a_gpu_that_stops_working_is_told_with_how_to_go_on() {
        let message =
            "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress'";
        let failure = of_panic(&message.to_owned());
        assert_eq!(failure.kind, ErrorKind::Io);
        assert_eq!(74, ssn_cuda::FAILURE_CODE, "the C++ part ends with the same code");
        let beginning =
            "the GPU stopped working (CUDA error: an illegal memory access was encountered). What was saved";
        assert!(failure.to_string().starts_with(beginning), "{}", failure.to_string());
        assert!(
            failure.to_string().contains("--resume") && !failure.to_string().contains("Search"),
            "{}",
            failure.to_string()
        );
        assert_eq!(of_panic(&"CUDA error: out of memory".to_owned()).kind, ErrorKind::OutOfMemory);
    }
}
