//! The scores of a case as the page shows them: those by which its list is sorted, and a table.

use std::collections::BTreeMap;

use serde::Serialize;
use ssn_eval::CaseScores;
use ssn_eval::registry::{SCORES, ScoreDef, ScoreKey};
use ssn_eval::scores::{CaseValues, observations};

/// The scores by which cases are listed, by their keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CaseHeadline(BTreeMap<String, Option<f64>>);

impl CaseHeadline {
    /// Takes from all scores of a case those that the list shows: of all samples, and of all classes together.
    pub fn new(scores: &CaseScores) -> Self {
        let all = observations(scores);
        let last = |key| all.iter().rfind(|found: &&CaseValues| found.is(key)).and_then(CaseValues::mean);
        listed().map(|score| (score.key.to_owned(), last(score.key))).collect()
    }
}

impl FromIterator<(String, Option<f64>)> for CaseHeadline {
    fn from_iter<I: IntoIterator<Item = (String, Option<f64>)>>(scores: I) -> Self {
        Self(scores.into_iter().collect())
    }
}

fn listed() -> impl Iterator<Item = &'static ScoreDef> {
    SCORES.iter().filter(|score| !score.listed.is_empty())
}

/// A column of the list of cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ScoreColumn {
    key: &'static str,
    name: &'static str,
    title: String,
    /// What values are multiplied by, and the digits behind their point.
    factor: f64,
    digits: usize,
}

/// Returns the columns of the list, in their order.
pub(crate) fn columns() -> Vec<ScoreColumn> {
    let column = |score: &'static ScoreDef| {
        let (factor, digits) = score.quantity.in_tables();
        let better = score.better.arrow().map_or(String::new(), |(_, meaning)| format!("; {meaning}"));
        let title = format!("{}{better}", score.listed);
        ScoreColumn { key: score.key, name: score.heading, title, factor, digits }
    };
    listed().map(column).collect()
}

/// A score in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ScoreRow {
    title: String,
    value: String,
}

/// Returns the scores of a case without those that only refine others: GED² of fewer samples, and quantiles.
pub(crate) fn score_rows(scores: &CaseScores) -> Vec<ScoreRow> {
    let all = observations(scores);
    let several = scores.masks.len() > 1;
    let refines = |found: &CaseValues| {
        ScoreKey::parse(&found.key).is_some_and(|key| {
            key.score.refines() || key.samples.is_some_and(|samples| samples != scores.samples)
        })
    };
    let row = |found: &CaseValues| {
        let title = match &found.group {
            Some(group) if several => format!("{}, {group}", found.title),
            _ => found.title.clone(),
        };
        Some(ScoreRow { title, value: found.unit.shown(found.mean()?) })
    };
    all.iter().filter(|found| !refines(found)).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_say_which_values_are_better() {
        let columns = columns();
        let names: Vec<(&str, f64, usize)> =
            columns.iter().map(|column| (column.name, column.factor, column.digits)).collect();
        assert_eq!(names, [("GED²", 1.0, 3), ("diversity", 1.0, 3), ("DSC %", 100.0, 1)]);
        assert!(columns[0].title.ends_with("; lower is better"), "{}", columns[0].title);
    }
}
