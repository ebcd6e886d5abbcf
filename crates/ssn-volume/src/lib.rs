//! Image files and their geometry, and the one way in which the project writes files.
//!
//! No torch, no networks: this crate is the bottom of the workspace.

pub mod atomic;

pub use atomic::{WriteError, write_atomically};
