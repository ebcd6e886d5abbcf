//! An evaluation as tables: for people, a row per figure; for programs, a row per case.

use std::fmt;

use ssn_data::text::csv_text;

use super::observations::observations;
use super::summary::{Evaluation, Figure, Scored};
use crate::predictions::description::Kind;
use crate::scores::{ScoreConfig, mean};

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let of_all = match self.missing.len() {
            0 => String::new(),
            missing => format!(" of {}", self.cases + missing),
        };
        let samples = match (settings.kind, settings.scores.categorical) {
            (Kind::Stochastic | Kind::Sampled, _) => {
                let ScoreConfig { samples, temperature, diagonal_noise, .. } = settings.scores;
                let hot =
                    if temperature == 1.0 { String::new() } else { format!(" at temperature {temperature}") };
                let smooth = if diagonal_noise { "" } else { " without the noise of single voxels" };
                format!("{samples} samples{hot}{smooth}")
            }
            (Kind::Deterministic, false) => "its prediction as the only sample".to_owned(),
            (Kind::Deterministic, true) => {
                format!("{} samples of independent voxels", settings.scores.samples)
            }
        };
        writeln!(
            f,
            "{} on {}: {}{of_all} cases, {samples}, seed {}\n",
            settings.model.name, settings.split, self.cases, settings.scores.seed
        )?;
        writeln!(f, "{:<34}{:>10}   {:<10}{:>8}{:>8}", "", "mean", "± s.e.", "values", "cases")?;
        let mut group = &None;
        for figure in &self.figures {
            if figure.group != *group {
                writeln!(f, "\n{}", figure.group.as_deref().unwrap_or_default())?;
                group = &figure.group;
            }
            row(f, figure)?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, figure: &Figure) -> fmt::Result {
    let shown =
        |value: Option<f64>, none: &str| value.map_or(none.to_owned(), |value| figure.unit.shown(value));
    let (mean, error) = (shown(figure.mean, "–"), shown(figure.standard_error, ""));
    let error = if error.is_empty() { error } else { format!("± {error}") };
    writeln!(f, "{:<34}{mean:>10}   {error:<10}{:>8}{:>8}", figure.title, figure.values, figure.cases)
}

/// A row per case: the mean over its raters of every figure, empty where there is none.
pub fn cases_csv(cases: &[Scored]) -> String {
    let mut keys: Vec<String> = vec![];
    let rows: Vec<_> = cases.iter().map(|case| observations(&case.scores)).collect();
    for found in rows.iter().flatten() {
        if !keys.contains(&found.key) {
            keys.push(found.key.clone());
        }
    }
    let mut table = vec![["id", "samples", "raters"].map(str::to_owned).to_vec()];
    table[0].extend_from_slice(&keys);
    for (case, row) in cases.iter().zip(&rows) {
        let mut cells =
            vec![case.id.clone(), case.scores.samples.to_string(), case.scores.raters.to_string()];
        cells.extend(keys.iter().map(|key| {
            let value = row.iter().find(|found| found.key == *key).and_then(|found| mean(&found.values));
            value.map_or(String::new(), |value| value.to_string())
        }));
        table.push(cells);
    }
    csv_text(&table)
}
