//! Choice of the part of a dataset.

use clap::ValueEnum;
use ssn_data::Split;

/// Cases of a dataset: those to learn from, those to choose by, those to judge by, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "said above: help would show what stands here")]
pub enum SplitChoice {
    Train,
    Validation,
    Test,
    All,
}

impl SplitChoice {
    /// The part that a folder of predictions says it is of.
    pub fn from_name(name: &str) -> Option<Self> {
        match Split::from_name(name) {
            Some(Split::Train) => Some(Self::Train),
            Some(Split::Validation) => Some(Self::Validation),
            Some(Split::Test) => Some(Self::Test),
            None => (name == "all").then_some(Self::All),
        }
    }

    /// The part of a dataset, or nothing for all of it.
    pub fn split(self) -> Option<Split> {
        match self {
            Self::Train => Some(Split::Train),
            Self::Validation => Some(Split::Validation),
            Self::Test => Some(Split::Test),
            Self::All => None,
        }
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        self.split().map_or("all", Split::name)
    }
}
