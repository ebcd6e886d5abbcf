//! Errors and arrays between Rust and Python.

use std::io::ErrorKind;

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use ssn_eval::EvalError;

/// An error as the exception that Python programs expect.
pub fn exception(error: EvalError) -> PyErr {
    let text = error.to_string();
    match error {
        EvalError::System { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::AlreadyExists => PyFileExistsError::new_err(text),
            _ => PyOSError::new_err(text),
        },
        EvalError::Write(_) => PyOSError::new_err(text),
        EvalError::Memory { .. } => PyMemoryError::new_err(text),
        EvalError::Internal(_) => PyRuntimeError::new_err(text),
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
