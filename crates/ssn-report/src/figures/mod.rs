//! One file per figure.

pub mod strips;
pub mod toy;
