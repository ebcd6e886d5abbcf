//! Errors and arrays between Rust and Python.

use std::error::Error as _;
use std::io;

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use ssn_io::{Error, ErrorKind};

/// An error as the exception that Python programs expect.
pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match (error.kind, cause.map(io::Error::kind)) {
        (ErrorKind::Io, Some(io::ErrorKind::NotFound)) => PyFileNotFoundError::new_err(text),
        (ErrorKind::Io, Some(io::ErrorKind::AlreadyExists)) => PyFileExistsError::new_err(text),
        (ErrorKind::Io, _) => PyOSError::new_err(text),
        (ErrorKind::OutOfMemory, _) => PyMemoryError::new_err(text),
        (ErrorKind::Internal, _) => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// Why an array from Python cannot be used as a slice.
pub fn not_a_slice(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The lengths of the axes of an array, which must be `N`.
pub fn shape<const N: usize>(array: &PyReadonlyArrayDyn<'_, f32>) -> PyResult<[usize; N]> {
    let found = array.shape();
    found
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("an array has {} axes, but {N} are needed", found.len())))
}
