//! Tests of what the command promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod circles;
mod kernels;
mod layers;
mod setup;
