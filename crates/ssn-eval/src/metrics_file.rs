//! `metrics.csv` in the folder of a run: a row every few steps and one per validation.

use ssn_data::text::{CsvRow, csv_rows};

/// The name of the file in the folder of a run.
pub const METRICS_FILE: &str = "metrics.csv";

/// The first column.
const STEP: &str = "step";

/// The mean loss since the row before.
pub const LOSS: &str = "loss";
/// The effective number of samples of the likelihood.
pub const ESS: &str = "ess";
/// The norm of the gradient before clipping.
pub const GRADIENT_NORM: &str = "gradient_norm";
/// The learning rate.
pub const LEARNING_RATE: &str = "learning_rate";
/// GED² over the validation cases.
pub const VALIDATION_GED: &str = "validation_ged";
/// The diversity of samples over the validation cases.
pub const VALIDATION_DIVERSITY: &str = "validation_diversity";
/// The diversity of raters over the validation cases.
pub const VALIDATION_RATER_DIVERSITY: &str = "validation_rater_diversity";
/// The Dice of the prediction over the validation cases.
pub const VALIDATION_DICE: &str = "validation_dice";

/// A column behind the step.
#[derive(Debug)]
pub struct RunColumn {
    /// The head of the column.
    pub name: &'static str,
    /// Its figure in reports; none if it is drawn in another one.
    pub figure: Option<ColumnFigure>,
}

/// The figure of a column.
#[derive(Debug)]
pub struct ColumnFigure {
    /// The place among all figures.
    pub place: u8,
    /// The title.
    pub title: &'static str,
    /// The label of the axis.
    pub y: &'static str,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
    /// What it shows.
    pub caption: &'static str,
}

/// All columns behind the step, in the order of the file. To add one, add a row, and its value where training or validation is
/// logged.
pub static RUN_COLUMNS: [RunColumn; 8] = [
    RunColumn {
        name: LOSS,
        figure: Some(ColumnFigure {
            place: 0,
            title: "Loss",
            y: "loss (lower is better)",
            logarithmic: true,
            caption: "The loss of training, the mean over the steps since the row before. Phases of the loss have scales of their own.",
        }),
    },
    RunColumn {
        name: ESS,
        figure: Some(ColumnFigure {
            place: 5,
            title: "Effective sample size",
            y: "samples (higher is better)",
            logarithmic: false,
            caption: "How many of the Monte-Carlo samples carry the likelihood of a rater. Near 1, a single sample does, and the gradient is \
                      that of the best sample alone. Phases without a likelihood have none.",
        }),
    },
    RunColumn {
        name: GRADIENT_NORM,
        figure: Some(ColumnFigure {
            place: 4,
            title: "Gradient norm",
            y: "norm before clipping",
            logarithmic: true,
            caption: "The norm of the gradient of all parameters before it is clipped, the mean over the steps since the row before. \
                      Peaks are steps that changed much; a rise without end is a learning rate that is too large.",
        }),
    },
    RunColumn {
        name: LEARNING_RATE,
        figure: Some(ColumnFigure {
            place: 6,
            title: "Learning rate",
            y: "rate",
            logarithmic: true,
            caption: "The learning rate, by which every step is scaled.",
        }),
    },
    RunColumn {
        name: VALIDATION_GED,
        figure: Some(ColumnFigure {
            place: 1,
            title: "GED² on validation",
            y: "GED² (lower is better)",
            logarithmic: false,
            caption: "How far samples are from raters as distributions, the mean over the validation cases; the checkpoint with the \
                      smallest value is the best.",
        }),
    },
    RunColumn {
        name: VALIDATION_DIVERSITY,
        figure: Some(ColumnFigure {
            place: 2,
            title: "Diversity on validation",
            y: "diversity (that of raters is best)",
            logarithmic: false,
            caption: "The mean distance of two samples. It should come to that of two raters, the curve `raters`.",
        }),
    },
    RunColumn { name: VALIDATION_RATER_DIVERSITY, figure: None },
    RunColumn {
        name: VALIDATION_DICE,
        figure: Some(ColumnFigure {
            place: 3,
            title: "Dice on validation",
            y: "Dice (higher is better)",
            logarithmic: false,
            caption: "How well the mean prediction overlaps with raters, over all foreground classes.",
        }),
    },
];

const VALIDATION: &str = "validation_";

/// Returns the name of a column in TensorBoard.
pub fn tag(name: &str) -> String {
    match name.strip_prefix(VALIDATION) {
        Some(name) => format!("validation/{name}"),
        None => format!("training/{name}"),
    }
}

/// Returns the row of some columns after `step` steps.
pub fn row(step: u64, values: &[(&str, Option<f64>)]) -> String {
    let cell = |column: &RunColumn| {
        let value = values.iter().find(|(name, _)| *name == column.name).and_then(|(_, value)| *value);
        // The shortest text that parses to the same number.
        value.map_or(String::new(), |value| value.to_string())
    };
    format!("{step},{}\n", RUN_COLUMNS.each_ref().map(cell).join(","))
}

fn header() -> String {
    let names: Vec<&str> = [STEP].into_iter().chain(RUN_COLUMNS.iter().map(|column| column.name)).collect();
    names.join(",")
}

/// Returns the file of a run that resumes after `step` steps: `old` without later rows and without a torn last line.
///
/// The validation of `step` itself comes after its checkpoint and is repeated, so its row is dropped too.
pub fn resumed(old: &str, step: u64) -> String {
    let mut text = header() + "\n";
    for line in complete(old).lines().skip(1) {
        // Runs of version 0.2 have a tenth cell, a checksum.
        let cells: Vec<&str> = line.split(',').take(1 + RUN_COLUMNS.len()).collect();
        // Steps that could not be applied leave the cells of a training row empty too.
        let mut named = RUN_COLUMNS.iter().zip(&cells[1..]);
        let is_validation =
            named.any(|(column, cell)| column.name.starts_with(VALIDATION) && !cell.is_empty());
        let row_step = cells[0].parse::<u64>();
        if row_step.is_ok_and(|row_step| row_step < step || row_step == step && !is_validation) {
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}

/// Returns the text without a last line that lacks its end.
fn complete(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricsTable {
    /// Names of the columns; the first is `step`.
    pub columns: Vec<String>,
    /// One cell per column; `None` if the cell is empty.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl MetricsTable {
    /// Parses the file of a run in progress or finished. Ignores a last line without its end, and unknown columns.
    ///
    /// # Errors
    /// A sentence about a first line without the column `step`, or about a line that is not a row of numbers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rows = csv_rows(complete(text))?.into_iter();
        let header = rows.next().map(|row| row.cells).unwrap_or_default();
        let is_known =
            |name: &String| name == STEP || RUN_COLUMNS.iter().any(|column| column.name == name.as_str());
        let (places, columns): (Vec<_>, Vec<_>) =
            header.into_iter().enumerate().filter(|(_, name)| is_known(name)).unzip();
        if places.first() != Some(&0) || columns[0] != STEP {
            return Err("does not begin with the column `step`; is this a run's?".to_owned());
        }
        let numbers = |CsvRow { line, cells }| {
            let numbers: Option<Vec<_>> = places.iter().map(|&place| number(cells.get(place)?)).collect();
            numbers.ok_or_else(|| {
                format!("has a damaged line {line}: expected numbers in {} columns", places.len())
            })
        };
        let rows = rows.map(numbers).collect::<Result<_, _>>()?;
        Ok(Self { columns, rows })
    }
}

/// Parses a cell: `Some(None)` if it is empty, `None` if it is not a number.
fn number(cell: &str) -> Option<Option<f64>> {
    match cell {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str = "step,loss,ess,gradient_norm,learning_rate,validation_ged,validation_diversity,\
                           validation_rater_diversity,validation_dice";

    fn training(step: u64) -> String {
        let values = [(LOSS, 0.75), (LEARNING_RATE, 0.001), (ESS, 3.0), (GRADIENT_NORM, 2.0)];
        row(step, &values.map(|(name, value)| (name, Some(value))))
    }

    fn validation(step: u64) -> String {
        row(step, &[(VALIDATION_GED, Some(0.25)), (VALIDATION_DICE, None)])
    }

    /// Returns a file with rows of the steps 2 and 4.
    fn file() -> String {
        [resumed("", 0), training(2), validation(2), training(4), validation(4)].concat()
    }

    #[test]
    fn rows_are_plain_csv() {
        assert_eq!(training(2), "2,0.75,3,2,0.001,,,,\n");
        assert_eq!(validation(4), "4,,,,,0.25,,,\n");
        assert_eq!([LOSS, VALIDATION_GED].map(tag), ["training/loss", "validation/ged"]);
        let table = MetricsTable::parse(&file()).unwrap();
        assert_eq!(table.columns.join(","), COLUMNS);
        assert_eq!((table.rows.len(), table.rows[1][5]), (4, Some(0.25)));
        assert_eq!(table.rows[2][..3], [Some(4.0), Some(0.75), Some(3.0)]);
    }

    #[test]
    fn a_row_that_is_being_written_is_ignored() {
        let whole = file();
        let last = whole.len() - validation(4).len();
        for end in last..whole.len() {
            let table = MetricsTable::parse(&whole[..end]).unwrap();
            assert_eq!(table.rows.len(), 3, "{:?}", &whole[last..end]);
        }
    }

    #[test]
    fn damaged_files_are_rejected() {
        for (header, message) in [("a,b\n", "`step`"), ("", "`step`"), ("loss,step\n", "`step`")] {
            let error = MetricsTable::parse(header).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        for row in ["2,x,,,,,,,", "2,1"] {
            let error = MetricsTable::parse(&format!("{COLUMNS}\n{row}\n{}", training(4))).unwrap_err();
            assert_eq!(error, "has a damaged line 2: expected numbers in 9 columns", "{row}");
        }
    }

    #[test]
    fn rows_after_the_checkpoint_are_removed() {
        let (header, whole) = (format!("{COLUMNS}\n"), file());
        assert_eq!(resumed("", 7), header);
        assert_eq!(resumed(&whole, 5), whole);
        assert_eq!(
            resumed(&whole, 4),
            [&header, &training(2), &validation(2), &training(4)].map(String::as_str).concat()
        );
        assert_eq!(resumed(&whole, 3), [&header, &training(2), &validation(2)].map(String::as_str).concat());
        assert_eq!(resumed(&format!("{whole}6,1"), 9), whole, "a torn line");
        let not_applied = header.clone() + &row(2, &[]);
        assert_eq!(
            resumed(&not_applied, 2),
            not_applied,
            "a row of steps that were not applied is no validation"
        );
    }

    #[test]
    fn the_checksums_of_version_0_2_are_dropped() {
        let old = format!("{COLUMNS},check\n2,0.75,3,2,0.001,,,,,517e380a\n");
        assert_eq!(MetricsTable::parse(&old).unwrap().rows.len(), 1);
        assert_eq!(resumed(&old, 2), format!("{COLUMNS}\n{}", training(2)));
    }
}
