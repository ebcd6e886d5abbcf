//! NIfTI-1 and NIfTI-2: single files, plain or gzipped, and pairs of a header and a data file.
//!
//! [`parse`] and [`parse_pair`] go from bytes to an [`Image`](crate::Image), [`encode`] and [`encode_gz`] back. The
//! module knows nothing of paths and names: whether bytes are compressed is seen from the bytes. The rules are those
//! of the public headers `nifti1.h` and `nifti2.h`; where these leave a choice, the choice is nibabel's, and where
//! nibabel repairs a header or another reader would understand it differently, the file is refused.
//!
//! Decided here:
//! - The affine is the sform if its code is positive, else the qform if its code is positive, else the voxel sizes
//!   with the origin at the middle of the image and x pointing left, as nibabel's `get_best_affine` has it.
//! - `xyzt_units` is kept for writing but not applied, as in nibabel: lengths are taken to be millimetres.
//! - Data must end where the header says, to the byte: a longer file is a header of another image.
//! - Slope 0, infinite or not a number means that values are as stored; a valid slope needs a finite intercept.

mod extensions;
mod fields;
mod forms;
mod header;
mod layout;
mod quaternion;
mod read;
mod shape;
mod write;

pub use layout::Version;
pub use read::{parse, parse_pair};
pub use write::{DEFAULT_GZIP_LEVEL, encode, encode_gz};
