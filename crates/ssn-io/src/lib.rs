//! Image files and their geometry, and the one way in which the project writes files.
//!
//! No torch, no networks: only `ssn-core` is below this crate. Each format is a module with `parse`, from bytes
//! to an [`Image`] or a [`Problem`], and `encode`; [`read`] and [`write()`] choose the format of a file by its name. A reader never
//! panics, allocates for what arrives and not for what a header claims, and refuses what it does not understand.
//!
//! ```
//! use ssn_io::{Geometry, Image, Limits, Voxels, read, write};
//!
//! // A label map of 2 × 3 pixels becomes a NIfTI file and comes back as it was.
//! let labels = Voxels::U8(vec![0, 1, 1, 0, 0, 2]);
//! let image = Image::new(labels, [1, 1, 2, 3], Geometry::default(), &Limits::default())?;
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("labels.nii.gz");
//! write(&path, &image)?;
//! let found = read(&path, &Limits::default())?.to_labels()?;
//! assert_eq!((found.shape, found.data), ([1, 1, 2, 3], vec![0, 1, 1, 0, 0, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod array;
pub mod atomic;
pub mod error;
pub mod formats;
pub mod geometry;
pub mod hex;
pub mod limits;
pub mod memory;
pub mod open;
pub mod own_files;
pub mod problem;
pub mod volume;

pub use array::Array;
pub use atomic::{
    UNFINISHED, WriteError, WriteSeek, open_own, remove_unfinished, write_atomically, write_folder_atomically,
};
pub use error::{Error, ErrorKind, Place, Result};
#[cfg(feature = "hdf5")]
pub use formats::hdf5;
pub use formats::seg_nrrd::Segment;
pub use formats::{Format, files_of, read, read_bytes, read_segments, write, write_labels};
pub use formats::{dicom, gzip, metaimage, nifti, npy, nrrd, pickle, raster, seg_nrrd, torch_file};
pub use geometry::{Difference, Differences, Geometry, Tolerance};
pub use limits::Limits;
pub use open::{open_file, read_file, read_text};
pub use own_files::{OWN_FILES, claim, own_files};
pub use problem::{FileError, Problem};
pub use volume::{ByteOrder, Image, Volume, VoxelType, Voxels};
