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
    /// What it holds, in documentation and below its figure.
    pub caption: &'static str,
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
}

/// All columns behind the step, in the order of the file. To add one, add a row, and its value where training or validation is
/// logged.
pub static RUN_COLUMNS: &[RunColumn] = &[
    RunColumn {
        name: LOSS,
        caption: "The loss of training, the mean over the steps since the row before. Phases of the loss have scales of their own.",
        figure: Some(ColumnFigure {
            place: 0,
            title: "Loss",
            y: "loss (lower is better)",
            logarithmic: true,
        }),
    },
    RunColumn {
        name: ESS,
        caption: "How many of the Monte-Carlo samples carry the likelihood of a rater. Near 1, a single sample does, and the gradient is \
                  that of the best sample alone. Phases without a likelihood have none.",
        figure: Some(ColumnFigure {
            place: 5,
            title: "Effective sample size",
            y: "samples (higher is better)",
            logarithmic: false,
        }),
    },
    RunColumn {
        name: GRADIENT_NORM,
        caption: "The norm of the gradient of all parameters before it is clipped, the mean over the steps since the row before. \
                  Peaks are steps that changed much; a rise without end is a learning rate that is too large.",
        figure: Some(ColumnFigure {
            place: 4,
            title: "Gradient norm",
            y: "norm before clipping",
            logarithmic: true,
        }),
    },
    RunColumn {
        name: LEARNING_RATE,
        caption: "The learning rate, by which every step is scaled.",
        figure: Some(ColumnFigure { place: 6, title: "Learning rate", y: "rate", logarithmic: true }),
    },
    RunColumn {
        name: VALIDATION_GED,
        caption: "How far samples are from raters as distributions, the mean over the validation cases; the checkpoint with the \
                  smallest value is the best.",
        figure: Some(ColumnFigure {
            place: 1,
            title: "GED² on validation",
            y: "GED² (lower is better)",
            logarithmic: false,
        }),
    },
    RunColumn {
        name: VALIDATION_DIVERSITY,
        caption: "The mean distance of two samples. It should come to that of two raters, the curve `raters`.",
        figure: Some(ColumnFigure {
            place: 2,
            title: "Diversity on validation",
            y: "diversity (that of raters is best)",
            logarithmic: false,
        }),
    },
    RunColumn {
        name: VALIDATION_RATER_DIVERSITY,
        caption: "The mean distance of two raters over the validation cases.",
        figure: None,
    },
    RunColumn {
        name: VALIDATION_DICE,
        caption: "How well the mean prediction overlaps with raters, over all foreground classes.",
        figure: Some(ColumnFigure {
            place: 3,
            title: "Dice on validation",
            y: "Dice (higher is better)",
            logarithmic: false,
        }),
    },
];

const VALIDATION: &str = "validation_";

/// Returns the table of columns in `docs/reference/training.md`.
pub fn reference() -> String {
    let row = |column: &RunColumn| format!("| `{}` | {} |\n", column.name, column.caption);
    let rows: String = RUN_COLUMNS.iter().map(row).collect();
    format!("| column | content |\n|---|---|\n| `{STEP}` | Steps done. |\n{rows}")
}

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
    format!("{step},{}\n", RUN_COLUMNS.iter().map(cell).collect::<Vec<_>>().join(","))
}

fn header() -> String {
    let names: Vec<&str> = [STEP].into_iter().chain(RUN_COLUMNS.iter().map(|column| column.name)).collect();
    names.join(",")
}

/// Returns the file of a run that resumes after `step` steps: `old` without later rows and without a torn last line.
///
/// Its columns are those of this version: cells move to the column of their name, and columns without one are dropped, such as the
/// checksums of version 0.2. The validation of `step` itself comes after its checkpoint and is repeated, so its row is dropped too.
pub fn resumed(old: &str, step: u64) -> String {
    let mut text = header() + "\n";
    let mut lines = complete(old).lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |column: &RunColumn| names.iter().position(|name| *name == column.name);
    let places: Vec<Option<usize>> = RUN_COLUMNS.iter().map(place).collect();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell =
            |place: &Option<usize>| place.and_then(|place| cells.get(place)).copied().unwrap_or_default();
        let values: Vec<&str> = places.iter().map(cell).collect();
        // Steps that could not be applied leave the cells of a training row empty too.
        let mut named = RUN_COLUMNS.iter().zip(&values);
        let is_validation =
            named.any(|(column, cell)| column.name.starts_with(VALIDATION) && !cell.is_empty());
        let row_step = cells[0].parse::<u64>();
        if row_step.is_ok_and(|row_step| row_step < step || row_step == step && !is_validation) {
            // A damaged row stays damaged: whoever reads the file names it.
            let kept = if cells.len() == names.len() { &values } else { &cells[1..].to_vec() };
            text += &format!("{},{}\n", cells[0], kept.join(","));
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

    /// Returns what is said of a second line that is not a row.
    fn damaged() -> String {
        format!("has a damaged line 2: expected numbers in {} columns", 1 + RUN_COLUMNS.len())
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
        for row in [training(2).replace("0.75", "x"), "2,1\n".to_owned()] {
            let error = MetricsTable::parse(&format!("{COLUMNS}\n{row}{}", training(4))).unwrap_err();
            assert_eq!(error, damaged(), "{row}");
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
    fn cells_of_other_versions_move_to_the_column_of_their_name() {
        let old = format!("{COLUMNS},check\n{},517e380a\n", training(2).trim_end());
        assert_eq!(MetricsTable::parse(&old).unwrap().rows.len(), 1);
        assert_eq!(resumed(&old, 2), format!("{COLUMNS}\n{}", training(2)), "checksums of version 0.2");
        let fewer = "step,loss,validation_ged\n2,0.5,\n2,,0.25\n4,0.5,\n";
        let kept = [row(2, &[(LOSS, Some(0.5))]), row(2, &[(VALIDATION_GED, Some(0.25))])].concat();
        assert_eq!(resumed(fewer, 3), format!("{COLUMNS}\n{kept}"));
        assert_eq!(resumed(fewer, 2), format!("{COLUMNS}\n{}", row(2, &[(LOSS, Some(0.5))])), "a validation");
    }

    #[test]
    fn a_damaged_row_stays_damaged() {
        let kept = resumed(&format!("{COLUMNS}\n2,1\n{}", training(4)), 9);
        assert_eq!(MetricsTable::parse(&kept).unwrap_err(), damaged());
    }

    #[test]
    fn the_reference_lists_them() {
        ssn_testing::assert_table_is_up_to_date("training.md", "columns", &reference());
    }
}
