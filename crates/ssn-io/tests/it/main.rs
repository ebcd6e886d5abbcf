//! Tests of what the crate promises, in one program: to link each module by itself would take minutes.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod changed_bytes;
mod dicom;
mod dicom_seg;
mod files;
mod hdf5;
mod hostile_files;
mod metaimage;
mod nifti;
mod npy;
mod nrrd;
mod pickle;
mod raster;
mod seg_nrrd;
mod text_format;
mod torch_file;
