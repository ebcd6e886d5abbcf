//! Findings about a dataset: the rows of the table that `ssn check` prints.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use ssn_io::FileError;

use crate::error::DataError;

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
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A file that cannot be read.
    Unreadable,
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
    /// Cases with different numbers of raters.
    RaterCount,
    /// Something about the folder as a whole.
    Layout,
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
    pub advice: &'static str,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        kind: FindingKind,
        reason: impl Into<String>,
        advice: &'static str,
    ) -> Self {
        Self { severity, kind, case: None, file: None, reason: reason.into(), advice }
    }

    /// A problem because of which a case or the dataset cannot be used.
    pub fn error(kind: FindingKind, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::new(Severity::Error, kind, reason, advice)
    }

    /// Something that is probably not what was meant.
    pub fn warning(kind: FindingKind, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::new(Severity::Warning, kind, reason, advice)
    }

    /// Something that is good to know.
    pub fn note(kind: FindingKind, reason: impl Into<String>) -> Self {
        Self::new(Severity::Note, kind, reason, "")
    }

    /// A file that cannot be read.
    pub fn unreadable(error: FileError) -> Self {
        let FileError { path, problem } = error;
        let finding = Self::error(FindingKind::Unreadable, problem.to_string(), "");
        Self { file: Some(path), ..finding }
    }

    /// A case on which the program itself failed.
    pub fn panic(message: &str) -> Self {
        let reason = format!("the program failed: {message}");
        Self::error(FindingKind::Panic, reason, "please report this with the case")
    }

    /// A split that cannot be used.
    pub fn of_split(error: DataError) -> Self {
        match error {
            DataError::Dataset { path, reason, advice } => {
                Self::error(FindingKind::Split, reason, advice).in_file(path)
            }
            other => Self::error(FindingKind::Split, other.to_string(), "correct data.split in the config"),
        }
    }

    /// The same finding about a file.
    pub fn in_file(self, path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), ..self }
    }

    /// The same finding about a case.
    pub fn of_case(self, id: &str) -> Self {
        Self { case: Some(id.to_owned()), ..self }
    }

    /// The finding as the reason why a case cannot be loaded.
    pub fn into_error(self) -> DataError {
        let reason = match &self.file {
            Some(file) => format!("{}: {}", file.display(), self.reason),
            None => self.reason,
        };
        let advice =
            if self.advice.is_empty() { "run `ssn check` to see every problem" } else { self.advice };
        DataError::case(self.case.unwrap_or_default(), reason, advice)
    }
}
