//! The folder of a rater, with its label files.

use std::path::{Path, PathBuf};

use ssn_io::Result;
use ssn_io::dicom::has_labels;

use crate::resolve::files::{name, stem};
use crate::resolve::{Hint, Tree, words};

/// The label files of a rater.
pub(super) struct RaterFolder {
    pub(super) name: String,
    /// The folder of raters above, if there may be several.
    pub(super) source: Option<String>,
    /// Each with the folder of its structure, if there are such folders.
    pub(super) files: Vec<(Option<String>, PathBuf)>,
    /// The name says that it holds labels, and not whose; no folders are inside.
    pub(super) is_labels: bool,
}

impl RaterFolder {
    pub(super) fn empty(name: String) -> Self {
        Self { name, source: None, files: vec![], is_labels: false }
    }

    /// Returns `true` if all files are in folders of their own.
    pub(super) fn is_deep(&self) -> bool {
        self.files.iter().all(|(inner, _)| inner.is_some())
    }

    /// Takes the files in a folder, or else in the folders of structures below.
    pub(super) fn new(tree: &Tree<'_>, rater: String, folder: &Path, is_labels: bool) -> Result<Self> {
        let mut files: Vec<_> = label_files(tree, folder)?.into_iter().map(|path| (None, path)).collect();
        if files.is_empty() {
            for inner in tree.folders(folder)? {
                files.extend(label_files(tree, &inner)?.into_iter().map(|path| (Some(name(&inner)), path)));
            }
        }
        Ok(Self { files, is_labels, ..Self::empty(rater) })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|(_, path)| path)
    }
}

/// Returns the files of a folder that may be label maps, and folders of a DICOM segmentation; folders of slices are images, and previews next to label
/// maps are left out.
pub(super) fn label_files(tree: &Tree<'_>, folder: &Path) -> Result<Vec<PathBuf>> {
    let files = tree.images(folder)?.into_iter().filter(|path| path.is_file() || has_labels(path));
    let (made, own) = files.partition::<Vec<_>, _>(|path| Hint::Made.fits_one(&words(&stem(path))));
    Ok(if own.is_empty() { made } else { own })
}
