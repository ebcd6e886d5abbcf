//! NRRD.
