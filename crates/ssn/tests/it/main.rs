//! The library as its users call it: every combination of what is said to work, from training to report.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod combinations;
mod lab;
mod matrix;
mod meetings;
mod own_backbone;
mod predictor;
mod typed;
