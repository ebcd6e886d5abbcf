//! What an experiment file says, and what is said about mistakes in it.

use ssn_args::{CheckpointChoice, ToyProblem};
use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_data::config::explain;
use ssn_io::{Limits, read_bytes};
use toml::Table;

use crate::error::{Error, Result};

/// An experiment: networks that are compared on one dataset, or the toy problem.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is, above its table.
    pub title: String,
    /// Samples of each case in the scores.
    #[serde(default = "samples")]
    pub samples: usize,
    /// Folds of a cross-validation; 0 for the dataset's own split, predicted on its test part.
    #[serde(default)]
    pub folds: usize,
    /// The checkpoint of each run that is scored.
    #[serde(default = "last")]
    pub checkpoint: CheckpointChoice,
    /// Masks that are scored, as in `ssn evaluate --group`; without them, each class, and all together.
    #[serde(default)]
    pub masks: Vec<String>,
    /// The config of all rows, as `ssn train` reads it.
    pub config: Option<Table>,
    /// The networks.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// The toy problem instead of all that.
    pub toy: Option<Toy>,
    /// What `--reduced` changes.
    pub reduced: Option<Reduced>,
}

/// A row of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The network.
    pub name: String,
    /// What it has in common with other rows, such as the raters that it learns from.
    pub group: Option<String>,
    /// The preset, instead of the one that the config names.
    pub preset: Option<String>,
    /// It is trained once with each.
    #[serde(default = "seeds")]
    pub seeds: Vec<u64>,
    /// Settings over those of the config, as in `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Settings for synthetic images, which have classes of their own, over all others of the file.
    #[serde(default)]
    pub synthetic: Vec<String>,
    /// Score independent categoricals of a deterministic network.
    #[serde(default)]
    pub categorical: bool,
}

/// The version that takes minutes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduced {
    /// Settings over those of all rows.
    #[serde(default)]
    pub set: Vec<String>,
    /// The most seeds of a row.
    pub seeds: Option<usize>,
    /// Samples of each case.
    pub samples: Option<usize>,
    /// The folds of a cross-validation.
    pub folds: Option<usize>,
    /// Synthetic images.
    #[serde(default = "cases")]
    pub cases: usize,
    /// Their size `[d, h, w]`; depth 1 for pictures.
    #[serde(default = "size")]
    pub size: [usize; 3],
    /// Their classes, 2 or 3.
    #[serde(default = "classes")]
    pub classes: usize,
    /// Settings of the toy problem.
    pub toy: Option<Toy>,
}

/// The toy problem: the options of `ssn toy` of the same names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toy {
    seeds: Option<u32>,
    seed: Option<u32>,
    steps: Option<u32>,
    pretrain: Option<u32>,
    samples: Option<u32>,
    eval_samples: Option<u32>,
    learning_rate: Option<f64>,
}

fn samples() -> usize {
    100
}

/// The checkpoint that is scored unless the file names one; also in marks that do not name it.
pub fn last() -> CheckpointChoice {
    CheckpointChoice::Last
}

fn seeds() -> Vec<u64> {
    vec![0]
}

fn cases() -> usize {
    40
}

fn size() -> [usize; 3] {
    [1, 64, 64]
}

fn classes() -> usize {
    2
}

impl Experiment {
    /// Reads an experiment file; gives its text as well.
    ///
    /// # Errors
    /// One sentence about the first thing that is wrong, with its line where it has one.
    pub fn read(path: &Path) -> Result<(Self, String)> {
        let wrong = |reason: &str| Error::data(path, reason);
        let bytes = read_bytes(path, &Limits::default()).map_err(Error::mismatch)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text; name an experiment file"))?;
        let experiment: Self = toml::from_str(&text).map_err(|error| wrong(&explain(&text, &error)))?;
        experiment.check().map_err(|reason| wrong(&reason))?;
        Ok((experiment, text))
    }

    /// Refuses what cannot be an experiment.
    fn check(&self) -> Result<(), String> {
        if self.toy.is_some() {
            let alone = self.config.is_none() && self.rows.is_empty();
            return if alone {
                Ok(())
            } else {
                Err("[toy] stands beside [config] or [[rows]]; remove one of them".into())
            };
        }
        if self.config.is_none() {
            return Err(
                "the section [config] is missing; it is what `ssn train` reads, or [toy] for the toy problem"
                    .into(),
            );
        }
        if self.rows.is_empty() {
            return Err("there are no [[rows]]; each is a network that is trained and scored".into());
        }
        let reduced = self.reduced.iter();
        let counts = reduced
            .flat_map(|r| [r.samples.map(|n| ("reduced.samples", n)), r.folds.map(|n| ("reduced.folds", n))]);
        let counts = counts.flatten().chain([("samples", self.samples), ("folds", self.folds)]);
        for (key, count) in counts {
            if key.ends_with("samples") && !(1..=100_000).contains(&count) {
                return Err(format!("{key} is {count}, but it must be 1 to 100000"));
            }
            if key.ends_with("folds") && count == 1 {
                return Err(format!(
                    "{key} is 1, but it must be 0 for the dataset's own split, or at least 2"
                ));
            }
        }
        if self.checkpoint == CheckpointChoice::Best && self.folds > 0 {
            return Err("checkpoint is \"best\", but with folds the cases that are scored are those of the \
                        validations, which would choose it; leave checkpoint or folds out"
                .into());
        }
        if let Some(mask) = self.masks.iter().find(|mask| !mask.contains('=')) {
            return Err(format!("masks has {mask:?}, but each must be NAME=CLASS+CLASS"));
        }
        let mut taken = BTreeSet::new();
        for row in &self.rows {
            let slug = row.slug();
            if slug.is_empty() {
                return Err(format!("the row name {:?} has neither letters nor digits", row.name));
            }
            if !taken.insert(slug) {
                return Err(format!(
                    "two rows are called {:?}; give them names or groups that differ",
                    row.label()
                ));
            }
            let different: BTreeSet<u64> = row.seeds.iter().copied().collect();
            if row.seeds.is_empty() || different.len() < row.seeds.len() {
                return Err(format!(
                    "the seeds of the row {:?} must be one or more different numbers",
                    row.label()
                ));
            }
        }
        Ok(())
    }
}

impl Row {
    /// Group and name.
    pub fn label(&self) -> String {
        self.group.iter().chain([&self.name]).cloned().collect::<Vec<_>>().join(" ")
    }

    /// The same as the name of a folder.
    pub fn slug(&self) -> String {
        let lower = self.label().to_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-")
    }
}

impl Toy {
    /// The problem, with the settings of the reduced version over these.
    pub fn problem(&self, reduced: Option<&Self>, out: &Path) -> ToyProblem {
        let mut problem = ToyProblem { overwrite: true, ..ToyProblem::new(out) };
        for toy in std::iter::once(self).chain(reduced) {
            problem.seed = toy.seed.map_or(problem.seed, u64::from);
            problem.seeds = toy.seeds.unwrap_or(problem.seeds);
            problem.steps = toy.steps.unwrap_or(problem.steps);
            problem.pretrain = toy.pretrain.unwrap_or(problem.pretrain);
            problem.samples = toy.samples.unwrap_or(problem.samples);
            problem.eval_samples = toy.eval_samples.unwrap_or(problem.eval_samples);
            problem.learning_rate = toy.learning_rate.unwrap_or(problem.learning_rate);
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_folders_of_their_own() {
        let row = |group: Option<&str>, name: &str| Row {
            name: name.to_owned(),
            group: group.map(str::to_owned),
            preset: None,
            seeds: vec![0],
            set: vec![],
            synthetic: vec![],
            categorical: false,
        };
        assert_eq!(row(Some("rater 0"), "U-Net (p. 5)").slug(), "rater-0-u-net-p-5");
        assert_eq!(row(None, "–").slug(), "");
    }

    #[test]
    fn the_reduced_toy_problem_wins() {
        let toy = Toy { seeds: Some(3), steps: Some(100), ..Toy::default() };
        let reduced = Toy { steps: Some(10), eval_samples: Some(5), ..Toy::default() };
        let problem = toy.problem(Some(&reduced), Path::new("out"));
        assert_eq!((problem.seeds, problem.steps, problem.eval_samples), (3, 10, 5));
    }
}
