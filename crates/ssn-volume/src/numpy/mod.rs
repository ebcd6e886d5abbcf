//! NumPy arrays.
