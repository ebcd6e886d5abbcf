//! One file per figure.

pub mod curves;
pub mod strips;
pub mod toy;
