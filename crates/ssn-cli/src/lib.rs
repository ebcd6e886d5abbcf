//! The arguments of `ssn`, its exit codes, and what its torch-free half does.
//!
//! `ssn` needs no libtorch: it parses, answers what it can, and hands the verbs that learn or predict to
//! `ssn-engine`, which parses the same arguments with the same types.

pub mod args;
pub mod check;
pub mod engine;
pub mod evaluate;
pub mod exit;
pub mod info;
pub mod init;
pub mod libtorch;
pub mod loader;
pub mod prepare;
pub mod progress;
pub mod report;
pub mod sample;
pub mod shard;
pub mod view;

pub use args::{Cli, Verb};
pub use exit::{Exit, Failure};
