//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod common;
mod exports;
mod frozen_voxels;
mod hostile_requests;
mod load;
mod packages;
mod server;
