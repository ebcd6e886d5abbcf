//! NIfTI-1 and NIfTI-2.
