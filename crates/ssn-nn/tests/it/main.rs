//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod common;
#[path = "../golden/compare.rs"]
mod compare;
mod energy;
mod extremes;
mod foreign;
mod gradcheck;
mod loss;
mod network;
mod optim;
mod parity;
mod python_losses;
mod unet_parity;
mod weights;
