//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod challenge_scores;
mod metrics_brute_force;
mod metrics_golden;
mod metrics_properties;
mod published_cases;
mod sampling_properties;
mod sampling_specification;
mod sampling_statistics;
mod summary;
