//! Findings about a dataset: the rows of the table that `ssn check` prints.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use ssn_io::{Error, FileError, Problem};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The case cannot be used.
    Error,
    /// The case can be used, but is probably not what was meant.
    Warning,
    /// Good to know, and no problem.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A file that cannot be read.
    Unreadable,
    /// A file for which this machine has too little memory now.
    Memory,
    /// A case without one of its channels.
    MissingChannel,
    /// A case without any rater's label map.
    MissingLabels,
    /// Values that are not finite.
    NotFinite,
    /// A channel in which all values are the same.
    ConstantChannel,
    /// Arrays of one case with different sizes.
    SizeMismatch,
    /// Files of one case with different places in space.
    GeometryMismatch,
    /// Labels that no class has.
    LabelRange,
    /// A region of interest without voxels.
    EmptyMask,
    /// Label maps of all raters without foreground.
    EmptyLabels,
    /// Foreground outside the region of interest.
    OutsideMask,
    /// Two cases of one name.
    DuplicateId,
    /// A patient or series in more than one split.
    SplitLeak,
    /// A case on which the program itself fails.
    Panic,
    /// A split that cannot be used.
    Split,
    /// A case that some of the raters did not look at.
    MissingRater,
    /// Labels that can be read, but are probably not what they seem.
    ImplausibleLabels,
    /// A config that cannot be used for training.
    Config,
    /// Something about the folder as a whole.
    Layout,
    /// Files that belong to no case.
    LeftOut,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub kind: FindingKind,
    /// The case, if it is about one.
    pub case: Option<String>,
    /// The file, if it is about one.
    pub file: Option<PathBuf>,
    /// What was found and what was expected.
    pub reason: String,
    /// What to do next; empty for notes.
    pub advice: String,
}

impl Finding {
    /// A problem because of which a case or the dataset cannot be used.
    pub fn error(kind: FindingKind, reason: impl Into<String>, advice: impl Into<String>) -> Self {
        let (reason, advice) = (reason.into(), advice.into());
        Self { severity: Severity::Error, kind, case: None, file: None, reason, advice }
    }

    /// Something that is probably not what was meant.
    pub fn warning(kind: FindingKind, reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(kind, reason, advice) }
    }

    /// Something that is good to know.
    pub fn note(kind: FindingKind, reason: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(kind, reason, "") }
    }

    /// A file that cannot be read.
    pub fn unreadable(FileError { path, problem }: FileError) -> Self {
        let kind = match problem {
            Problem::Memory { .. } => FindingKind::Memory,
            _ => FindingKind::Unreadable,
        };
        Self::error(kind, problem.to_string(), "").in_file(path)
    }

    /// The same about one file.
    pub fn in_file(self, path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), ..self }
    }

    pub(crate) fn of_case(self, id: &str) -> Self {
        Self { case: Some(id.to_owned()), ..self }
    }

    /// The finding as the reason why a case cannot be loaded.
    pub fn into_error(self) -> Error {
        let reason = match &self.file {
            Some(file) => format!("{}: {}", file.display(), self.reason),
            None => self.reason,
        };
        let advice = if self.advice.is_empty() {
            "run `ssn check` to see every problem".to_owned()
        } else {
            self.advice
        };
        Error::case(self.case.unwrap_or_default(), reason).advise(advice)
    }
}
