//! What a config asks of a split, and where the split of a dataset comes from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::split::{Member, Ratios, Split, SplitFile};

/// The section `[data.split]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SplitConfig {
    /// The file that holds the split: read if it is there, written if not. Relative paths start at the config
    /// file.
    pub file: PathBuf,
    /// Shares of training, validation and test, by patients or series.
    pub ratios: Ratios,
    /// A number of folds instead of shares.
    pub folds: Option<usize>,
    /// The fold that is the validation set.
    pub fold: usize,
    /// The seed of the division.
    pub seed: u64,
    /// Use the parts that the dataset itself assigns, where it assigns every case.
    pub given: bool,
}

impl Default for SplitConfig {
    fn default() -> Self {
        let file = PathBuf::from("split.toml");
        Self { file, ratios: Ratios::LIDC, folds: None, fold: 0, seed: 0, given: true }
    }
}

/// Where a split came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitSource {
    /// The split file.
    File,
    /// The dataset itself.
    Dataset,
    /// It was made now; write it to the split file to keep it.
    New(SplitFile),
}

impl SplitConfig {
    /// The part of each case: from the split file if it is there, from the dataset itself if it assigns every
    /// case, or by the ratios or folds.
    ///
    /// # Errors
    /// Ids that are not unique; a file that does not fit the dataset, or that was made with another method or
    /// seed than is asked for. A file without a seed was made by hand and is taken as it is.
    pub fn parts(&self, dataset: &Dataset) -> Result<(Vec<Split>, SplitSource)> {
        let members = dataset.members();
        check_unique(&members)?;
        let given: Option<Vec<Split>> = dataset.entries.iter().map(|entry| entry.split).collect();
        let given = given.filter(|_| self.given && self.folds.is_none());
        if self.file.is_file() {
            let file = SplitFile::read(&self.file)?;
            let parts = file.parts(&self.file, &members, self.fold)?;
            if given.as_ref() != Some(&parts) {
                self.check_method(&file, given.is_some())?;
            }
            return Ok((parts, SplitSource::File));
        }
        if let Some(given) = given {
            return Ok((given, SplitSource::Dataset));
        }
        let made = match self.folds {
            Some(folds) => SplitFile::by_folds(&members, folds, self.seed)?,
            None => SplitFile::by_ratios(&members, self.ratios, self.seed)?,
        };
        Ok((made.parts(&self.file, &members, self.fold)?, SplitSource::New(made)))
    }

    /// The part of each case as in [`SplitConfig::parts`]; a split that was made now is written to its file.
    pub fn keep_parts(&self, dataset: &Dataset) -> Result<Vec<Split>> {
        let (parts, source) = self.parts(dataset)?;
        if let SplitSource::New(made) = source {
            made.write(&self.file)?;
        }
        Ok(parts)
    }

    /// Refuses a file that was made with other settings.
    fn check_method(&self, file: &SplitFile, given: bool) -> Result<()> {
        let Some(seed) = file.seed else { return Ok(()) };
        let method = match self.folds {
            Some(folds) => SplitFile::folds_method(folds),
            None => SplitFile::ratios_method(self.ratios),
        };
        if !given && (&file.method, seed) == (&method, self.seed) {
            return Ok(());
        }
        let asked = match given {
            true => "the division of the dataset itself".to_owned(),
            false => format!("{method} and seed {}", self.seed),
        };
        Err(DataError::Dataset {
            path: self.file.clone(),
            reason: format!(
                "the split was made with {} and seed {seed}, but {asked} is asked for",
                file.method
            ),
            advice: "remove the file to divide anew, or set data.split to what the file was made with",
        })
    }
}

/// Refuses two cases of one name: a split could not tell them apart, nor could files named after them.
pub fn check_unique(members: &[Member<'_>]) -> Result<()> {
    let mut seen = BTreeSet::new();
    match members.iter().find(|member| !seen.insert(member.id)) {
        None => Ok(()),
        Some(member) => Err(DataError::Case {
            id: member.id.to_owned(),
            reason: "another case has the same id".to_owned(),
            advice: "rename or remove all but one",
        }),
    }
}
