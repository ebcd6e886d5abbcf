//! How runs learned: their `metrics.csv`.

use std::path::Path;

use ssn_data::text::csv_rows;
use ssn_io::{Limits, read_bytes};

use super::output::Drawn;
use crate::error::{EvalError, Result};
use crate::figures::{Axes, Curve, curves_figure};

pub(super) const METRICS_FILE: &str = "metrics.csv";

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: String,
    columns: Vec<String>,
    /// Numbers, where there are some.
    rows: Vec<Vec<Option<f64>>>,
}

impl Run {
    pub(super) fn read(folder: &Path, name: String) -> Result<Self> {
        let path = folder.join(METRICS_FILE);
        let bytes = read_bytes(&path, &Limits::default())?;
        let text = String::from_utf8_lossy(&bytes);
        let rows = csv_rows(&text)
            .map_err(|error| EvalError::mismatch(format!("{} cannot be read: {error}", path.display())))?;
        let mut rows = rows.into_iter().map(|row| row.cells);
        let columns = rows.next().unwrap_or_default();
        if columns.first().map(String::as_str) != Some("step") {
            return Err(EvalError::mismatch(format!(
                "{} does not begin with the column `step`; is this a run's?",
                path.display()
            )));
        }
        // A run that is still learning may be writing its last row.
        let whole = rows.filter(|row| row.len() == columns.len());
        let rows = whole.map(|row| row.iter().map(|cell| cell.parse().ok()).collect()).collect();
        Ok(Self { name, columns, rows })
    }

    pub(super) fn steps(&self) -> Option<f64> {
        self.rows.last().and_then(|row| row[0])
    }

    /// The points `(step, value)` of a column.
    fn points(&self, column: &str) -> Vec<(f64, f64)> {
        let Some(place) = self.columns.iter().position(|name| name == column) else { return vec![] };
        self.rows.iter().filter_map(|row| Some((row[0]?, row[place]?))).collect()
    }
}

/// One figure: the name of its file, its column, its title, its vertical axis, and the sentence below it.
const FIGURES: [[&str; 5]; 5] = [
    ["loss", "loss", "Loss", "loss", "The loss of training, the mean over the steps since the row before."],
    [
        "learning-rate",
        "learning_rate",
        "Learning rate",
        "rate",
        "The learning rate, by which every step is scaled.",
    ],
    [
        "validation-ged",
        "validation_ged",
        "GED² on validation",
        "GED²",
        "How far samples are from raters as distributions; the checkpoint with the smallest value is the best.",
    ],
    [
        "validation-diversity",
        "validation_diversity",
        "Diversity on validation",
        "diversity",
        "The mean distance of two samples. It should come to that of two raters, the curve `raters`.",
    ],
    [
        "validation-dice",
        "validation_dice",
        "Dice of the prediction on validation",
        "Dice",
        "How well the mean prediction overlaps with raters, over all foreground classes.",
    ],
];
const RATER_DIVERSITY: &str = "validation_rater_diversity";

/// The curves of all runs; figures without a point are left out.
pub(super) fn figures(runs: &[Run]) -> Vec<Drawn> {
    let mut drawn = vec![];
    for [name, column, title, y, caption] in FIGURES {
        let curve = |run: &Run| Curve { name: run.name.clone(), points: run.points(column) };
        let mut curves: Vec<Curve> = runs.iter().map(curve).collect();
        if column == "validation_diversity" {
            let raters = runs.iter().map(|run| run.points(RATER_DIVERSITY));
            // Raters of one dataset are the same for all runs: the longest curve shows them.
            let points = raters.max_by_key(Vec::len).unwrap_or_default();
            curves.push(Curve { name: "raters".to_owned(), points });
        }
        curves.retain(|curve| !curve.points.is_empty());
        if curves.is_empty() {
            continue;
        }
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let logarithmic = ["loss", "learning_rate"].contains(&column) && points().all(|(_, y)| *y > 0.0);
        let svg = curves_figure(Axes { title, x: "step", y, logarithmic }, &curves);
        drawn.push(Drawn { name: format!("training-{name}"), svg, caption: caption.to_owned() });
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_row_and_empty_cells_are_no_points() {
        let folder = tempfile::tempdir().unwrap();
        let header = "step,loss,learning_rate,validation_diversity,validation_rater_diversity";
        let text = format!("{header}\n1,2.5,0.1,,\n1,,,0.25,0.5\n2,1.5,0.1,,\n3,1.");
        std::fs::write(folder.path().join(METRICS_FILE), text).unwrap();
        let run = Run::read(folder.path(), "a".to_owned()).unwrap();
        assert_eq!(run.points("loss"), [(1.0, 2.5), (2.0, 1.5)]);
        assert_eq!(run.steps(), Some(2.0));
        let drawn = figures(&[run]);
        let names: Vec<&str> = drawn.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["training-loss", "training-learning-rate", "training-validation-diversity"]);
        assert!(drawn[2].svg.contains(">raters</text>"));
        std::fs::write(folder.path().join(METRICS_FILE), "a,b\n").unwrap();
        assert!(Run::read(folder.path(), "a".to_owned()).unwrap_err().to_string().contains("`step`"));
    }
}
