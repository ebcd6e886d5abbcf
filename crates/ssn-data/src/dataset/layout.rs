//! The known layouts of datasets, with a description of each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// A folder of images and a folder per rater.
    RaterFolders,
    /// A folder of images and a folder of labels.
    FolderPair,
    /// Images and label maps in one folder, by the ends of their names.
    OneFolder,
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
    /// Returns a description of the layout, such as "a folder per case".
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
            Self::OneFolder => "images and label maps in one folder",
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
