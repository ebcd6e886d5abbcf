//! One file per figure.

pub mod toy;
