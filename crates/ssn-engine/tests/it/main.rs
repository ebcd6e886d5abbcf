//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod common;
mod disk_full;
mod experiment;
mod guard;
mod import;
mod kills;
mod new_users;
mod nothing_silent;
mod pipeline;
mod quick_start;
mod ranks;
mod resume;
mod run_folder;
mod shards;
mod toy;
