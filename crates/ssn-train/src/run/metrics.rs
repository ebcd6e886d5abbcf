//! `metrics.csv`: what a run measured, the same bytes however often it was stopped.
//!
//! Rows are means over some steps, or validations. A run that goes on from a checkpoint first removes the rows that
//! came after it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ssn_io::write_atomically;

use crate::checkpoint::interval::Interval;
use crate::error::{Result, TrainError};

const FILE: &str = "metrics.csv";
const HEADER: &str = "step,loss,effective_samples,gradient_norm,learning_rate,\
validation_ged,validation_diversity,validation_rater_diversity,validation_dice";

/// The means of a validation over its cases; nothing where no case defines one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Validation {
    /// GED², the score by which the best checkpoint is chosen.
    pub ged: Option<f64>,
    /// The mean distance of two samples.
    pub diversity: Option<f64>,
    /// The mean distance of two raters.
    pub rater_diversity: Option<f64>,
    /// The Dice of the mean prediction, over all foreground classes and raters.
    pub dice: Option<f64>,
}

impl Validation {
    /// The columns of a row, with their names in TensorBoard.
    pub fn columns(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("validation/ged", self.ged),
            ("validation/diversity", self.diversity),
            ("validation/rater_diversity", self.rater_diversity),
            ("validation/dice", self.dice),
        ]
    }
}

/// The file, open for more rows.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
}

impl Metrics {
    /// Opens the file of a run that stands after `step` steps, and removes what came later. A validation of that very
    /// step comes after its checkpoint, and is done again.
    pub fn open(run: &Path, step: u64) -> Result<Self> {
        let path = run.join(FILE);
        let failed = |source| TrainError::Save { path: path.clone(), source };
        let old = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let keeps = |row: &&str| {
            // A full disk may have cut the last row.
            let number = row.split(',').next().filter(|_| row.ends_with('\n'));
            let number = number.and_then(|step| step.parse::<u64>().ok());
            number.is_some_and(|number| number < step || number == step && !is_validation(row))
        };
        let rows: String = old.split_inclusive('\n').skip(1).filter(keeps).collect();
        write_atomically(&path, |out| write!(out, "{HEADER}\n{rows}"))
            .map_err(|error| failed(error.source))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        Ok(Self { path, file })
    }

    /// Adds the row of the steps up to `step`.
    pub fn training(&mut self, step: u64, interval: &Interval) -> Result<()> {
        let cells = interval.columns().map(|(_, value)| cell(value));
        self.append(format!("{step},{},,,,\n", cells.join(",")))
    }

    /// Adds the row of a validation after `step` steps.
    pub fn validation(&mut self, step: u64, validation: &Validation) -> Result<()> {
        let cells = validation.columns().map(|(_, value)| cell(value));
        self.append(format!("{step},,,,,{}\n", cells.join(",")))
    }

    /// A row in one write, so that a stop never leaves half of one.
    fn append(&mut self, row: String) -> Result<()> {
        self.file
            .write_all(row.as_bytes())
            .map_err(|source| TrainError::Save { path: self.path.clone(), source })
    }

    /// Brings all rows to the disk: a checkpoint relies on the rows before it.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| TrainError::Save { path: self.path.clone(), source })
    }
}

/// The shortest text that gives the same number back.
fn cell(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Steps that could not be applied leave the cells of a training row empty as well.
fn is_validation(row: &str) -> bool {
    row.trim_end().split(',').skip(5).any(|cell| !cell.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::StepReport;

    fn report(step: u64, loss: f64) -> StepReport {
        StepReport { step, loss, effective_samples: Some(3.0), gradient_norm: 2.0, learning_rate: 1e-3 }
    }

    #[test]
    fn rows_after_the_checkpoint_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let text = || std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let mut interval = Interval::default();
        interval.add(&report(0, 1.0));
        interval.add(&report(1, 0.5));
        let mut metrics = Metrics::open(folder.path(), 0).unwrap();
        for step in [2, 4] {
            metrics.training(step, &interval).unwrap();
            metrics.validation(step, &Validation { ged: Some(0.25), ..Validation::default() }).unwrap();
        }
        let row = |step| format!("{step},0.75,3,2,0.001,,,,\n");
        let validation = |step| format!("{step},,,,,0.25,,,\n");
        let whole = format!("{HEADER}\n{}{}{}{}", row(2), validation(2), row(4), validation(4));
        assert_eq!(text(), whole);
        Metrics::open(folder.path(), 5).unwrap();
        assert_eq!(text(), whole);
        Metrics::open(folder.path(), 4).unwrap();
        assert_eq!(text(), format!("{HEADER}\n{}{}{}", row(2), validation(2), row(4)));
        Metrics::open(folder.path(), 3).unwrap();
        assert_eq!(text(), format!("{HEADER}\n{}{}", row(2), validation(2)));
    }

    #[test]
    fn the_row_of_steps_that_were_not_applied_is_no_validation() {
        let folder = tempfile::tempdir().unwrap();
        Metrics::open(folder.path(), 0).unwrap().training(2, &Interval::default()).unwrap();
        Metrics::open(folder.path(), 2).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text, format!("{HEADER}\n2,,,,,,,,\n"));
    }

    #[test]
    fn half_a_row_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), format!("{HEADER}\n10,1,1,1,1,,,,\n2")).unwrap();
        Metrics::open(folder.path(), 20).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text, format!("{HEADER}\n10,1,1,1,1,,,,\n"));
    }
}
