//! Datasets: one type for all layouts, whose cases are loaded one by one.

pub mod case;
pub mod finding;
pub mod labels;
pub mod normalize;
pub mod preprocessing;
pub mod records;
pub mod source;
pub mod split;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::case::{Case, Cases};
use crate::dataset::finding::{Finding, FindingKind, Severity};
use crate::dataset::preprocessing::Preprocessing;
use crate::dataset::source::{CaseFiles, CaseSource, ExpectedContent, LabelPolicy, ReadOptions};
use crate::dataset::split::{Split, SplitMember};
use crate::error::Result;

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
    /// A folder of images beside a folder of labels.
    FolderPair,
    /// One file made by `ssn prepare lidc`.
    Cache,
    /// Images that were found by their names alone, for prediction.
    #[serde(skip_deserializing)]
    Images,
}

impl Layout {
    /// The name in config files.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What it is, in words.
    pub fn describe(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Csv => ("csv", "a CSV index with the files of each case"),
            Self::NnUnet => ("nn-unet", "an nnU-Net v2 dataset"),
            Self::Decathlon => ("decathlon", "a dataset of the Medical Segmentation Decathlon"),
            Self::Qubiq => ("qubiq", "a QUBIQ dataset, a folder per case with several raters"),
            Self::LidcPickle => ("lidc-pickle", "a pickle of images with several raters, as of LIDC"),
            Self::LidcHdf5 => ("lidc-hdf5", "an HDF5 file of images with several raters, as of LIDC"),
            Self::LidcPng => ("lidc-png", "PNG crops with a mask per reader, as of LIDC"),
            Self::LidcJpeg => ("lidc-jpeg", "a folder per slice with JPEG image and masks, as of LIDC"),
            Self::CaseFolders => ("case-folders", "a folder per case"),
            Self::FolderPair => ("folder-pair", "a folder of images and one of labels"),
            Self::Cache => ("cache", "a cache made by `ssn prepare lidc`"),
            Self::Images => ("images", "a set of images"),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A case before it is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseEntry {
    /// The name of the case.
    pub id: String,
    /// The patient or series that it belongs to; splits keep groups together.
    pub group: String,
    /// The part that the dataset itself assigns it to.
    pub split: Option<Split>,
    /// Where it comes from.
    pub source: CaseSource,
}

impl CaseEntry {
    /// A case with files of its own, which is the only one of its group.
    pub fn of_files(id: String, split: Option<Split>, files: CaseFiles) -> Self {
        Self { group: id.clone(), id, split, source: CaseSource::Files(files) }
    }
}

/// A recognized dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The folder or file that it was found in; the first of several.
    pub root: PathBuf,
    /// The layout of its files.
    pub layout: Layout,
    /// Names of the channels that are used.
    pub channels: Vec<String>,
    /// Names of the channels in the files.
    pub stored_channels: Vec<String>,
    /// Names of the classes, the background first.
    pub classes: Vec<String>,
    /// How its files are read.
    pub reading: ReadOptions,
    /// What happens to cases after that.
    pub preprocessing: Preprocessing,
    /// The cases, in natural order of their files.
    pub entries: Vec<CaseEntry>,
    /// What recognition noticed.
    pub findings: Vec<Finding>,
}

/// The names of channels that nothing names.
pub(crate) fn unnamed_channels(count: usize) -> Vec<String> {
    match count {
        1 => vec!["image".to_owned()],
        _ => (0..count).map(|channel| format!("channel_{channel}")).collect(),
    }
}

impl Dataset {
    /// Whether its channels are red, green and blue: three that one file holds, so that nothing names them.
    pub fn is_color(&self) -> bool {
        self.channels.len() == 3 && self.channels == unnamed_channels(3)
    }

    /// Reads a case without preprocessing, with everything that is wrong with it.
    pub fn inspect(&self, index: usize) -> (Option<Case>, Vec<Finding>) {
        let (entry, mut findings) = (&self.entries[index], vec![]);
        let expected = ExpectedContent { channels: &self.stored_channels, classes: self.classes.len() };
        let case = entry.source.assemble(&entry.id, &self.reading, expected, &mut findings);
        (case, findings)
    }

    /// Loads a case before any preprocessing.
    pub fn load_raw(&self, index: usize) -> Result<Case> {
        let (case, findings) = self.inspect(index);
        let error = findings.into_iter().find(|finding| finding.severity == Severity::Error);
        match (case, error) {
            (Some(case), None) => Ok(case),
            (_, Some(error)) => Err(error.into_error()),
            (None, None) => {
                let finding = Finding::error(FindingKind::Unreadable, "nothing was read", "");
                Err(finding.of_case(&self.entries[index].id).into_error())
            }
        }
    }

    /// The same for prediction: a case without labels loads with no raters. Training and scores need the others.
    pub fn with_optional_labels(mut self) -> Self {
        self.reading.labels = LabelPolicy::Optional;
        self
    }

    /// The cases as a split sees them.
    pub fn members(&self) -> Vec<SplitMember<'_>> {
        self.entries.iter().map(|entry| SplitMember { id: &entry.id, group: &entry.group }).collect()
    }

    /// The cases of one part, given the part of each.
    pub fn subset(self: &Arc<Self>, parts: &[Split], split: Split) -> Subset {
        let indices = (0..self.entries.len()).filter(|&i| parts.get(i) == Some(&split)).collect();
        Subset { dataset: self.clone(), indices }
    }
}

impl Cases for Dataset {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn id(&self, index: usize) -> &str {
        &self.entries[index].id
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.preprocessing.apply(self.load_raw(index)?)
    }
}

/// Some cases of a dataset.
#[derive(Debug, Clone)]
pub struct Subset {
    dataset: Arc<Dataset>,
    indices: Vec<usize>,
}

impl Subset {
    /// The dataset that the cases are from.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Places of the cases in the dataset.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl Cases for Subset {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn id(&self, index: usize) -> &str {
        self.dataset.id(self.indices[index])
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.dataset.load(self.indices[index])
    }
}
