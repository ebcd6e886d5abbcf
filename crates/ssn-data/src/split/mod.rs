//! Which cases are for learning, which for choosing, which for judging.
//!
//! A split never cuts through a group (a patient, a series): all cases of a group are on one side. It is a
//! function of the seed and the names, not of the order in which cases were found, and is kept in a file.

mod divide;
mod file;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use divide::{Ratios, divide, fold};
pub(crate) use file::quoted;
pub use file::{Assignment, Member, SplitFile};

/// One of the three parts of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Cases to learn from.
    Train,
    /// Cases to choose settings and checkpoints by.
    Validation,
    /// Cases for the final figures.
    Test,
}

impl Split {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The part that a folder, file or cell is named after: `train`, `Training`, `val`, `valid`, `dev`, `test`
    /// …
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_lowercase().as_str() {
            "train" | "training" | "tr" | "trainset" => Some(Self::Train),
            "val" | "valid" | "validation" | "validating" | "dev" | "valset" => Some(Self::Validation),
            "test" | "testing" | "ts" | "testset" => Some(Self::Test),
            _ => None,
        }
    }

    /// The part that one of the words of a name says, such as `data_index_train`; nothing if none or several do.
    pub fn from_words(name: &str) -> Option<Self> {
        let mut found = name.split(|c: char| !c.is_alphanumeric()).filter_map(Self::from_name);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_are_understood() {
        assert_eq!(Split::from_name("Training"), Some(Split::Train));
        assert_eq!(Split::from_name("valid"), Some(Split::Validation));
        assert_eq!(Split::from_name("contrast"), None);
        assert_eq!(Split::from_words("data_index_test"), Some(Split::Test));
        assert_eq!(Split::from_words("train_vs_test"), None);
        assert_eq!(Split::from_words("index"), None);
    }
}
