//! The arguments of `ssn`, its exit codes, and what its torch-free half does.
//!
//! `ssn` needs no libtorch: it parses, answers what it can, and hands the verbs that learn or predict to
//! `ssn-engine`, which parses the same arguments with the same types.

pub mod answer;
pub mod args;
pub mod engine;
pub mod exit;
pub mod progress;
pub mod shard;
pub mod signals;
pub mod threads;
pub mod verbs;

pub use answer::Answer;
pub use args::{Cli, Verb};
pub use exit::Failure;
