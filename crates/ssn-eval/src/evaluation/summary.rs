//! Means over cases, with their standard errors and the counts behind them.

use serde::{Deserialize, Serialize};
use ssn_core::metrics::Summary;

use super::observations::{Unit, observations};
use crate::error::Result;
use crate::predictions::description::{Kind, ModelId};
use crate::scores::{CaseScores, ScoreConfig};

/// A case with its scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// The id of the case.
    pub id: String,
    /// Its scores.
    pub scores: CaseScores,
}

/// What an evaluation is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The model.
    pub model: ModelId,
    /// How it describes its uncertainty.
    pub kind: Kind,
    /// The dataset.
    pub dataset: String,
    /// The part of the dataset.
    pub split: String,
    /// What was scored.
    pub scores: ScoreConfig,
}

/// An evaluation: what `summary.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What it is of.
    pub settings: Settings,
    /// Cases that were scored.
    pub cases: usize,
    /// Cases of the part without a prediction.
    pub missing: Vec<String>,
    /// The figures, in the order of the table.
    pub figures: Vec<Figure>,
}

/// One figure over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name in files.
    pub key: String,
    /// Its name in tables.
    pub title: String,
    /// The mask that it is about.
    pub group: Option<String>,
    /// How it is shown.
    pub unit: Unit,
    /// The mean over all values; none without one.
    pub mean: Option<f64>,
    /// Its standard error; none below two values.
    pub standard_error: Option<f64>,
    /// The values: one per case, or one per case and rater.
    pub values: usize,
    /// Those that are undefined and left out.
    pub undefined: usize,
    /// Cases that have a value.
    pub cases: usize,
}

impl Evaluation {
    /// Pools the values of all cases, figure by figure.
    pub fn new(settings: Settings, cases: &[Scored], missing: Vec<String>) -> Result<Self> {
        let mut pooled: Vec<(Figure, Vec<Option<f64>>)> = vec![];
        for case in cases {
            for found in observations(&case.scores) {
                let place = pooled.iter().position(|(figure, _)| figure.key == found.key);
                let place = place.unwrap_or_else(|| {
                    pooled.push((Figure::empty(found.key, found.title, found.group, found.unit), vec![]));
                    pooled.len() - 1
                });
                let (figure, values) = &mut pooled[place];
                figure.cases += usize::from(found.values.iter().any(Option::is_some));
                values.extend(found.values);
            }
        }
        let figures = pooled.into_iter().map(|(figure, values)| figure.of(&values)).collect::<Result<_>>()?;
        Ok(Self { settings, cases: cases.len(), missing, figures })
    }

    /// A figure by its name in files.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

impl Figure {
    fn empty(key: String, title: String, group: Option<String>, unit: Unit) -> Self {
        let (mean, standard_error) = (None, None);
        Self { key, title, group, unit, mean, standard_error, values: 0, undefined: 0, cases: 0 }
    }

    fn of(self, values: &[Option<f64>]) -> Result<Self> {
        let Summary { mean, standard_error, count, skipped } = Summary::of(values)?;
        Ok(Self { mean, standard_error, values: count, undefined: skipped, ..self })
    }
}
