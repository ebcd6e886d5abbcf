//! A row with those of its trainings that are scored.

use ssn_eval::{Evaluated, Scored};

use super::averages::{Average, averages};
use super::file::Row;
use super::job::Job;
use super::record::{Cost, Record};
use crate::error::Result;

/// A row with its figures.
pub struct Finished<'a> {
    /// The row.
    pub row: &'a Row,
    /// Those of its seeds that are scored, with all their folds.
    pub seeds: Vec<u64>,
    /// Its figures over all seeds, by name, in the order of tables.
    pub averages: Vec<(String, Average)>,
    /// What its networks cost.
    pub cost: Cost,
    /// Cases that it was scored on.
    pub cases: usize,
    /// Its trainings.
    pub runs: Vec<Run<'a>>,
}

/// A training with its scores.
pub struct Run<'a> {
    pub job: &'a Job,
    pub record: Record,
    pub evaluated: Evaluated,
}

impl<'a> Finished<'a> {
    /// Puts the trainings of a row together: folds of a seed are pooled, seeds are averaged. A seed without some of
    /// its `folds` is left out, since other cases are other scores.
    pub fn new(row: &'a Row, mut runs: Vec<Run<'a>>, folds: usize) -> Result<Self> {
        let count = |seed: u64| runs.iter().filter(|run| run.job.seed == seed).count();
        let seeds: Vec<u64> = row.seeds.iter().copied().filter(|&seed| count(seed) == folds.max(1)).collect();
        runs.retain(|run| seeds.contains(&run.job.seed));
        let of_seed = |seed: &u64| -> Vec<&Scored> {
            let folds = runs.iter().filter(|run| run.job.seed == *seed);
            folds.flat_map(|run| &run.evaluated.cases).collect()
        };
        let scored: Vec<Vec<&Scored>> = seeds.iter().map(of_seed).collect();
        let averages = averages(&scored)?;
        let cases = scored.first().map_or(0, Vec::len);
        let records: Vec<Record> = runs.iter().map(|run| run.record.clone()).collect();
        Ok(Self { row, seeds, averages, cost: Cost::of(&records), cases, runs })
    }

    /// A figure by its name.
    pub fn average(&self, name: &str) -> Option<&Average> {
        self.averages.iter().find(|(key, _)| key == name).map(|(_, average)| average)
    }

    /// GED² of all samples, the last of its kind.
    pub fn ged(&self) -> Option<&Average> {
        self.averages.iter().rfind(|(key, _)| key.starts_with("ged2_")).map(|(_, average)| average)
    }

    /// The masks that are scored.
    pub fn masks(&self) -> impl Iterator<Item = &str> {
        self.averages.iter().filter_map(|(key, _)| key.strip_prefix("dsc "))
    }

    /// Steps of its trainings.
    pub fn steps(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.record.steps).max()
    }

    /// Raters and samples of its cases, the most there are.
    pub fn counts(&self) -> (usize, usize) {
        let scores = || self.runs.iter().flat_map(|run| &run.evaluated.cases).map(|case| &case.scores);
        (scores().map(|s| s.raters).max().unwrap_or(0), scores().map(|s| s.samples).max().unwrap_or(0))
    }
}
