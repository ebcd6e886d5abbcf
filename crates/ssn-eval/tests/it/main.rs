//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod common;
mod distribution_files;
mod evaluation;
mod folders;
mod hostile_files;
mod sampled_files;
mod schema;
mod scores;
