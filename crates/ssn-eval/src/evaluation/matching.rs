//! Which prediction belongs to which case of the dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::{EvalError, Result};
use crate::predictions::{Description, Found, Kind, Predictions};
use ssn_data::{DataConfig, Dataset, Split};

use crate::predictions::{is_config, named};

/// Cases of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Those to learn from.
    Train,
    /// Those to choose by.
    Validation,
    /// Those to judge by.
    Test,
    /// All of them.
    All,
}

impl Part {
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

/// A prediction and the case of the dataset that it is of.
pub struct Job {
    /// The prediction.
    pub found: Found,
    /// The place of the case in the dataset.
    pub index: usize,
}

/// What is to be scored.
pub struct Plan {
    /// The dataset.
    pub dataset: Dataset,
    /// The name of the part.
    pub part: &'static str,
    /// In natural order of the ids.
    pub jobs: Vec<Job>,
    /// Cases of the part without a prediction.
    pub missing: Vec<String>,
    /// Predictions of cases of other parts.
    pub others: usize,
    /// The kind of the network.
    pub kind: Kind,
    /// The names of its classes.
    pub classes: Vec<String>,
}

impl Plan {
    /// Opens the dataset and finds the case of every prediction.
    ///
    /// # Errors
    /// Predictions of cases that the dataset does not know, of another number of classes, and none at all.
    pub fn new(predictions: &Predictions, data: &Path, part: Part) -> Result<Self> {
        let (dataset, parts) = open(data, part)?;
        let found = predictions.cases()?;
        check_classes(&dataset, &found)?;
        let places: BTreeMap<&str, usize> =
            dataset.entries.iter().enumerate().map(|(i, entry)| (entry.id.as_str(), i)).collect();
        let unknown: Vec<String> = found
            .iter()
            .filter(|case| !places.contains_key(case.id()))
            .map(|case| case.id().to_owned())
            .collect();
        if !unknown.is_empty() {
            let message = format!(
                "{} of {} predictions in {} are of cases that {} does not have: {}; is this the dataset that was \
                 predicted?",
                unknown.len(),
                found.len(),
                predictions.root().display(),
                dataset.root.display(),
                named(&unknown)
            );
            return Err(EvalError::mismatch(message));
        }
        let wanted = |index: usize| part.split().is_none_or(|split| parts.get(index) == Some(&split));
        let all = found.len();
        let jobs: Vec<Job> = found
            .into_iter()
            .map(|found| Job { index: places[found.id()], found })
            .filter(|job| wanted(job.index))
            .collect();
        let Some(Description { kind, classes, .. }) = jobs.first().map(|job| &job.found.header.description)
        else {
            let message = format!(
                "none of the {all} predictions in {} is of a case of the part {}",
                predictions.root().display(),
                part.name()
            );
            return Err(EvalError::mismatch(message));
        };
        let (kind, classes) = (*kind, classes.clone());
        let predicted: BTreeSet<usize> = jobs.iter().map(|job| job.index).collect();
        let missing = (0..dataset.entries.len())
            .filter(|&index| wanted(index) && !predicted.contains(&index))
            .map(|index| dataset.entries[index].id.clone())
            .collect();
        let others = all - jobs.len();
        Ok(Self { part: part.name(), jobs, missing, others, kind, classes, dataset })
    }
}

/// The dataset, and the part of each of its cases; no parts where all cases are asked for.
pub fn open(data: &Path, part: Part) -> Result<(Dataset, Vec<Split>)> {
    let (dataset, parts) = if is_config(data) {
        let config = DataConfig::read(data)?;
        let dataset = config.open()?;
        let parts = match part {
            Part::All => vec![],
            _ => config.split.parts(&dataset)?,
        };
        (dataset, parts)
    } else {
        let dataset = Dataset::open(data)?;
        let given: Option<Vec<Split>> = dataset.entries.iter().map(|entry| entry.split).collect();
        let parts = match (part, given) {
            (Part::All, _) => vec![],
            (_, Some(parts)) => parts,
            (_, None) => {
                let message = format!(
                    "{} does not say which of its cases are for {}; name its config with --data, or take all \
                     cases with --split all",
                    data.display(),
                    part.name()
                );
                return Err(EvalError::settings(message));
            }
        };
        (dataset, parts)
    };
    dataset.check_unique()?;
    Ok((dataset, parts))
}

/// Refuses predictions of other classes than the dataset has.
pub fn check_classes(dataset: &Dataset, found: &[Found]) -> Result<()> {
    let ours = &dataset.classes;
    let Some(case) = found.iter().find(|case| case.header.description.classes.len() != ours.len()) else {
        return Ok(());
    };
    let theirs = &case.header.description.classes;
    let message = format!(
        "{} has {} classes ({}), but {} has {} ({}); is this the dataset that was predicted?",
        case.path.display(),
        theirs.len(),
        theirs.join(", "),
        dataset.root.display(),
        ours.len(),
        ours.join(", ")
    );
    Err(EvalError::mismatch(message))
}
