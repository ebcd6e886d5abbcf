//! Layouts of datasets, one or a few in each file, which return a [`Draft`].
//!
//! A new layout is a file and four rows here: its module, a variant of [`Layout`], its description, and its place in
//! one of the lists of recognizers.

mod bids;
mod cache;
mod case_folders;
mod csv_index;
mod dataset_json;
mod draft;
pub(crate) mod files;
mod folder_pair;
mod images;
mod known_labels;
mod label_sets;
mod left_out;
mod lidc;
mod qubiq;
mod rater_folders;
mod recognize;

pub use cache::{CACHE_ENDING, encode as encode_cache};
pub(crate) use draft::label_values;
pub use label_sets::{FileContent, FilesByCase};
pub use recognize::DatasetOverrides;

use std::fmt;
use std::path::Path;

use draft::Draft;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::resolve::{PartPath, Tree};

/// The known dataset layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A CSV file with the paths of each case, as in the authors' code.
    Csv,
    /// `imagesTr`, `labelsTr` and `dataset.json` of nnU-Net v2.
    NnUnet,
    /// `dataset.json` with a list `training`, of the Medical Segmentation Decathlon.
    Decathlon,
    /// A JSON file with a list `training` of images and labels, of MONAI.
    Datalist,
    /// `sub-NN/anat` with `derivatives/NAME/sub-NN/anat`, of the Brain Imaging Data Structure.
    Bids,
    /// `caseNN/image.nii.gz` with `taskNN_segMM.nii.gz`, of the QUBIQ challenge.
    Qubiq,
    /// A pickle of name → image, masks and series, of LIDC.
    LidcPickle,
    /// An HDF5 file with images, labels and uids in three groups, of LIDC.
    LidcHdf5,
    /// Folders of PNG crops with one mask per reader, of LIDC.
    LidcPng,
    /// A folder per slice with `image_N.jpg` and `labelN_.jpg`, of LIDC.
    LidcJpeg,
    /// A folder per case with files of common names.
    CaseFolders,
    /// A folder of images beside a folder per rater.
    RaterFolders,
    /// A folder of images beside a folder of labels.
    FolderPair,
    /// One file made by `ssn prepare lidc`.
    Cache,
    /// Images that were found by their names alone, for prediction.
    #[serde(skip_deserializing)]
    Images,
    /// Label maps of raters without images.
    #[serde(skip_deserializing)]
    LabelFiles,
}

impl Layout {
    /// Returns what the layout is, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Csv => "a CSV index with the files of each case",
            Self::NnUnet => "an nnU-Net v2 dataset",
            Self::Decathlon => "a dataset of the Medical Segmentation Decathlon",
            Self::Datalist => "a datalist of MONAI",
            Self::Bids => "a BIDS dataset with derivatives, each of a rater",
            Self::Qubiq => "a QUBIQ dataset, a folder per case with several raters",
            Self::LidcPickle => "a pickle of images with several raters, as of LIDC",
            Self::LidcHdf5 => "an HDF5 file of images with several raters, as of LIDC",
            Self::LidcPng => "PNG crops with a mask per reader, as of LIDC",
            Self::LidcJpeg => "a folder per slice with JPEG image and masks, as of LIDC",
            Self::CaseFolders => "a folder per case",
            Self::LabelFiles => "label maps without images",
            Self::RaterFolders => "a folder of images and one per rater",
            Self::FolderPair => "a folder of images and one of labels",
            Self::Cache => "a cache made by `ssn prepare lidc`",
            Self::Images => "a set of images",
        }
    }
}

/// The name in config files.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Recognizes one layout of many files: returns a draft if the folder has it.
type Attempt = fn(&Tree<'_>, &Path) -> Result<Option<Draft>>;

/// Recognizes one layout with a description or an index.
type DescribedAttempt = fn(&Path) -> Result<Option<Draft>>;

/// Opens files that hold many cases; `None` if there are none, or several where one holds all parts.
type Open = fn(&[PartPath]) -> Result<Option<Draft>>;

/// Layouts with a description or an index, the most specific ones first.
const DESCRIBED: [DescribedAttempt; 2] = [dataset_json::recognize, csv_index::recognize];
/// Layouts of files with many cases, by how they are named. Such a file may also be next to a dataset of another layout.
const PACKED: [(&[&str], Open); 3] = [
    (&[CACHE_ENDING], |files| alone(files, cache::open)),
    (&[".pickle", ".pickle.gz", ".pkl", ".pkl.gz"], |files| {
        files.first().map(|_| lidc::open_pickle(files)).transpose()
    }),
    (&[".hdf5", ".h5"], |files| alone(files, lidc::open_hdf5)),
];
/// Layouts of many files, the most specific ones first.
const OF_FOLDERS: [Attempt; 6] = [
    bids::recognize,
    qubiq::recognize,
    lidc::recognize_png,
    lidc::recognize_jpeg,
    rater_folders::recognize,
    folder_pair::recognize,
];
/// Layout of a folder per case, after all others; prediction finds folders per case by the channels of the model.
const PER_CASE: Attempt = case_folders::recognize;

fn alone(files: &[PartPath], open: fn(&Path) -> Result<Draft>) -> Result<Option<Draft>> {
    let [(_, file)] = files else { return Ok(None) };
    open(file).map(Some)
}
