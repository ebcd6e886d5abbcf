//! Tables out of what `ssn evaluate` wrote.

use std::path::Path;

use ssn_data::text::{CsvRow, csv_rows};
use ssn_io::{Limits, Problem, read_bytes};

use crate::error::{EvalError, Result};
use crate::evaluation::{Evaluation, Figure, Unit, default_folder};
use crate::figures::html::{Cell, Row, Table};
use crate::predictions::Predictions;

/// Figures of `cases.csv` that the table of cases leaves out: those that only refine others.
const LEFT_OUT: [&str; 11] = [
    "cross_distance",
    "variance_ncc",
    "s_ncc",
    "foreground_ece",
    "effective_samples",
    "dsc_nod",
    "sample_dsc_05",
    "sample_dsc_50",
    "assd",
    "sample_volume_05",
    "sample_volume_95",
];

/// Which way scores are better.
pub(super) const DIRECTIONS: &str = "GED², the distance of samples to raters, ECE, Brier score, HD95 and ASSD are better when they \
                                     are small; DSC, IoU, NCC, surface Dice and log-likelihood when they are large. The diversity of \
                                     samples should be that of raters.";

/// An evaluation as it lies in its folder.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    pub(super) evaluation: Evaluation,
    /// The columns of `cases.csv`.
    keys: Vec<String>,
    /// The cells of `cases.csv`, as many as there are columns.
    rows: Vec<Vec<String>>,
}

impl Scores {
    /// The evaluation of a folder of predictions; nothing where there is none.
    pub(super) fn read(predictions: &Predictions) -> Result<Option<Self>> {
        let folder = default_folder(predictions.root());
        let summary = folder.join("summary.json");
        let Some(bytes) = read_if_there(&summary)? else { return Ok(None) };
        let evaluation =
            serde_json::from_slice(&bytes).map_err(|error| damaged(&summary, &error.to_string()))?;
        let cases = folder.join("cases.csv");
        let text = match read_if_there(&cases)? {
            Some(bytes) => String::from_utf8(bytes).map_err(|error| damaged(&cases, &error.to_string()))?,
            None => String::new(),
        };
        let rows = csv_rows(&text).map_err(|error| damaged(&cases, &error))?;
        let mut rows = rows.into_iter();
        let keys = rows.next().map(|row| row.cells).unwrap_or_default();
        let whole = |CsvRow { line, cells }: CsvRow| match cells.len() == keys.len() {
            true => Ok(cells),
            false => {
                let reason =
                    format!("line {line} has {} cells, but there are {} columns", cells.len(), keys.len());
                Err(damaged(&cases, &reason))
            }
        };
        let rows = rows.map(whole).collect::<Result<_, _>>()?;
        Ok(Some(Self { evaluation, keys, rows }))
    }

    /// A figure of a case by its key; `ged2` is that of all samples.
    pub(super) fn of_case(&self, id: &str, key: &str) -> Option<f64> {
        let place = |wanted: &str| self.keys.iter().rposition(|key| key == wanted);
        let column = match key {
            "ged2" => self.keys.iter().rposition(|key| key.starts_with("ged2_"))?,
            key => place(key)?,
        };
        let ids = place("id")?;
        self.rows.iter().find(|row| row[ids] == id)?[column].parse().ok()
    }

    /// Means with standard errors: a row per figure.
    pub(super) fn summary_table(&self) -> Table {
        let count = |n: usize| Cell::name(&n.to_string());
        let rows = grouped(self.evaluation.figures.iter(), |figure| {
            let shown = |value| Cell::number(value, |x| figure.unit.shown(x));
            let error = figure.standard_error.map_or(String::new(), |x| format!("± {}", shown(Some(x)).text));
            let error = Cell { text: error, key: String::new() };
            let mean = shown(figure.mean);
            vec![Cell::name(&figure.title), mean, error, count(figure.values), count(figure.cases)]
        });
        let columns = ["score", "mean", "± s.e.", "values", "cases"].map(str::to_owned).to_vec();
        Table { caption: "Means over all cases".to_owned(), columns, rows, sortable: false }
    }

    /// The scores of each case, sorted by a click.
    pub(super) fn case_table(&self) -> Option<Table> {
        let id = self.keys.iter().position(|key| key == "id")?;
        let last_ged = self.keys.iter().rfind(|key| key.starts_with("ged2_"));
        let shown = |(place, key): (usize, &String)| -> Option<(usize, &Figure)> {
            let figure = self.evaluation.figure(key)?;
            let plain = key.split(' ').next().unwrap_or_default();
            let wanted = !LEFT_OUT.contains(&plain) && (!plain.starts_with("ged2_") || Some(key) == last_ged);
            wanted.then_some((place, figure))
        };
        let chosen: Vec<(usize, &Figure)> = self.keys.iter().enumerate().filter_map(shown).collect();
        let several = self.evaluation.figures.iter().any(|figure| {
            figure.group.is_some() && figure.group != chosen.last().and_then(|(_, last)| last.group.clone())
        });
        let heading = |figure: &Figure| match &figure.group {
            Some(group) if several => format!("{} · {group}", whole_title(figure)),
            _ => whole_title(figure),
        };
        let mut columns = vec!["case".to_owned()];
        columns.extend(chosen.iter().map(|(_, figure)| heading(figure)));
        let row = |row: &Vec<String>| {
            let mut cells = vec![Cell::name(&row[id])];
            cells.extend(chosen.iter().map(|(place, figure)| {
                let value = row[*place].parse().ok();
                Cell::number(value, |x| figure.unit.shown(x))
            }));
            Row::Cells(cells)
        };
        let rows = self.rows.iter().map(row).collect();
        Some(Table { caption: "Scores of each case".to_owned(), columns, rows, sortable: true })
    }
}

/// Titles that go on from the row above say what they are of.
fn whole_title(figure: &Figure) -> String {
    match (figure.title.strip_prefix('…'), figure.unit) {
        (None, _) => figure.title.clone(),
        (Some(rest), Unit::Milliliters) => format!("volume{rest}, ml"),
        (Some(rest), Unit::VoxelCount) => format!("volume{rest}, px"),
        (Some(rest), _) => format!("DSC of samples,{rest}"),
    }
}

/// A row per figure, with a heading where the mask changes.
pub(super) fn grouped<'a>(
    figures: impl Iterator<Item = &'a Figure>,
    cells: impl Fn(&'a Figure) -> Vec<Cell>,
) -> Vec<Row> {
    let (mut rows, mut group) = (vec![], &None);
    for figure in figures {
        if figure.group != *group {
            rows.push(Row::Heading(figure.group.clone().unwrap_or_default()));
            group = &figure.group;
        }
        rows.push(Row::Cells(cells(figure)));
    }
    rows
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match read_bytes(path, &Limits::default()) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match &error.problem {
            Problem::Io(io) if io.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Err(error.into()),
        },
    }
}

fn damaged(path: &Path, reason: &str) -> EvalError {
    let message = format!("{} cannot be read: {reason}; run `ssn evaluate` again", path.display());
    EvalError::mismatch(message)
}
