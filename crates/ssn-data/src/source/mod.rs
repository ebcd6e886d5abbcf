//! Where the arrays of a case come from, and how they are put together.
//!
//! Loading and checking go the same way: every problem becomes a [`Finding`], loading stops at the first error
//! and checking collects all.

mod assembly;
mod grid;

use std::path::PathBuf;
use std::sync::Arc;

use crate::case::Case;
use crate::finding::{Finding, Severity};
use crate::labels::LabelCoding;
use crate::records::Records;
use assembly::Assembly;
use grid::is_picture;

/// Where a case comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Files of its own.
    Files(Files),
    /// A place in a file of many cases.
    Record(Arc<Records>, usize),
}

/// The files of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// One file per channel, or one with all channels; nothing for a channel that the case lacks.
    pub images: Vec<Option<PathBuf>>,
    /// The files of each rater who looked at the case, in the order of their numbers.
    pub raters: Vec<Rater>,
    /// The region of interest.
    pub mask: Option<PathBuf>,
}

/// The files of a rater.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rater {
    /// Which of the dataset's raters this is: the same number in all cases, from 0.
    pub number: usize,
    /// What this rater marked.
    pub maps: Maps,
}

/// How a rater's marks are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maps {
    /// One file with labels.
    Labels(PathBuf),
    /// A mask for each class. Where masks overlap, the later class counts.
    Masks(Vec<(u8, PathBuf)>),
}

impl Rater {
    /// A rater with one file of labels.
    pub fn new(number: usize, labels: PathBuf) -> Self {
        Self { number, maps: Maps::Labels(labels) }
    }

    /// The files.
    pub fn files(&self) -> Vec<&PathBuf> {
        match &self.maps {
            Maps::Labels(path) => vec![path],
            Maps::Masks(masks) => masks.iter().map(|(_, path)| path).collect(),
        }
    }
}

/// Whether a case must have labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Labels {
    /// A case without labels is an error, as for training and evaluation.
    #[default]
    Needed,
    /// Labels are read where they are there, as for prediction.
    Optional,
}

/// How the files of a dataset are read, the same for all its cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The rule from stored labels to classes.
    pub coding: LabelCoding,
    /// The third axis of images holds channels, not slices.
    pub depth_is_channels: bool,
    /// Only the center of this many pixels a side is used.
    pub center_crop: Option<usize>,
    /// Only these channels are used, in this order; nothing means all.
    pub pick: Option<Vec<usize>>,
    /// Whether cases must have labels.
    pub labels: Labels,
}

/// What a case must have.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Names of the channels, before any are picked.
    pub channels: &'a [String],
    /// The number of classes.
    pub classes: usize,
}

impl Source {
    /// Whether the file of the grid says where voxels lie; pictures and records do not.
    pub fn has_geometry(&self) -> bool {
        match self {
            Self::Files(files) => files.images.iter().flatten().next().is_some_and(|path| !is_picture(path)),
            Self::Record(..) => false,
        }
    }

    /// Puts a case together; nothing if there is an error among the findings.
    pub fn assemble(
        &self,
        id: &str,
        reading: &Reading,
        expected: Expected<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<Case> {
        let mut assembly = Assembly { reading, expected, findings: vec![] };
        let case = match self {
            Self::Files(files) => assembly.of_files(files),
            Self::Record(records, index) => assembly.of_record(&records.path, &records.items[*index]),
        };
        let usable = assembly.findings.iter().all(|finding| finding.severity != Severity::Error);
        findings.extend(assembly.findings.into_iter().map(|finding| finding.of_case(id)));
        case.filter(|_| usable).map(|case| Case { id: id.to_owned(), ..case })
    }
}
