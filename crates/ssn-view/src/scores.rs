//! The scores of a case as the page shows them: three by which its list is sorted, and a table.

use serde::Serialize;
use ssn_eval::CaseScores;
use ssn_eval::registry::{DSC, GED2, Observations, SAMPLE_DIVERSITY, ScoreKey, observations};

/// The scores by which cases are listed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Headline {
    /// GED² of all samples.
    pub ged2: Option<f64>,
    /// The Dice of the prediction with the raters, on average: of all classes as one mask, or of the last mask that was
    /// scored.
    pub dice: Option<f64>,
    /// The mean distance between two samples.
    pub diversity: Option<f64>,
}

impl Headline {
    /// The three of all scores.
    pub fn new(scores: &CaseScores) -> Self {
        let all = observations(scores);
        let last = |key| all.iter().rfind(|found| found.is(key)).and_then(Observations::mean);
        Self { ged2: last(GED2), dice: last(DSC), diversity: last(SAMPLE_DIVERSITY) }
    }
}

/// A score in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ScoreRow {
    title: String,
    value: String,
}

/// The scores of a case without those that only refine others: GED² of fewer samples, and quantiles.
pub(crate) fn score_rows(scores: &CaseScores) -> Vec<ScoreRow> {
    let all = observations(scores);
    let several = scores.groups.len() > 1;
    let refines = |found: &Observations| {
        ScoreKey::parse(&found.key).is_some_and(|key| {
            key.score.refines() || key.samples.is_some_and(|samples| samples != scores.samples)
        })
    };
    let row = |found: &Observations| {
        let title = match &found.group {
            Some(group) if several => format!("{}, {group}", found.title),
            _ => found.title.clone(),
        };
        Some(ScoreRow { title, value: found.unit.shown(found.mean()?) })
    };
    all.iter().filter(|found| !refines(found)).filter_map(row).collect()
}
