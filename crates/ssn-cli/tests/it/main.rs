//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod claims;
mod cli;
mod cli_reference;
mod common;
mod datasets;
mod documented_commands;
mod evaluate;
mod kills;
mod little_memory;
mod odd_files;
mod other_tools;
mod report;
mod sample;
mod shards;
mod view;
