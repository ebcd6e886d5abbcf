//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod bad_datasets;
mod common;
mod dicom_labels;
mod images;
mod implausible_labels;
mod layouts;
mod one_folder;
mod prepare;
mod rater_folders;
mod shared_data;
mod sources;
mod splits;
mod synthetic_files;
mod template;
