//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

#[path = "../../../ssn-nn/tests/it/common.rs"]
mod common;
mod config;
mod config_reference;
mod gpu;
mod latent;
mod memory;
mod own_likelihood;
mod ranks;
mod tiles;
mod training;
