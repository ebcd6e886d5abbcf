//! NumPy arrays: `.npy`, one array, and `.npz`, a zip archive of named arrays.
//!
//! Knows the public description of the format (`numpy.lib.format`, versions 1.0 to 3.0) and nothing about
//! images. Arrays of numbers and booleans are read. Arrays of objects are refused: they hold pickles, which are
//! programs.

mod header;
mod npy;
mod npz;
mod order;

pub use npy::{encode_npy, parse_npy};
pub use npz::{encode_npz, parse_npz};
