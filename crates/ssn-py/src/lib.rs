//! The native half of the Python package `ssn`: distributions, their samples, and scores.
//!
//! Functions here take arrays that the Python half has checked and made contiguous, and fill arrays that it has made: so
//! an array that is too large is Python's `MemoryError`. Long work is done beside the interpreter, which looks for Ctrl-C
//! meanwhile ([`work`]).

mod convert;
mod distribution;
mod image;
mod score;
mod verb;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _ssn {
    #[pymodule_export]
    use super::distribution::Distribution;
    #[pymodule_export]
    use super::score::score;
    #[pymodule_export]
    use super::verb::run_verb;

    #[pymodule_export]
    const CLASS_COLORS: [[u8; 3]; 7] = ssn_core::labels::CLASS_COLORS;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
