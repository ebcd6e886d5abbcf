//! Tables and figures out of what `ssn evaluate` wrote.

use std::collections::BTreeMap;
use std::path::Path;

use ssn_data::text::{CsvRow, csv_rows};
use ssn_io::{Error, Limits, Problem, Result, read_bytes};

use crate::ged_samples::ged_samples;
use crate::material::CaseSurvey;
use crate::output::{Drawn, Report};
use crate::reliability::reliability;
use crate::table::{Cell, Row, Table};
use ssn_eval::evaluation::{Evaluation, ScoreMean, default_folder};
use ssn_eval::predictions::Predictions;
use ssn_eval::registry::{GED2, SCORES, ScoreKey, Unit, is_of};
use ssn_eval::unique;

/// An evaluation as it lies in its folder.
#[derive(Debug, Clone)]
pub(crate) struct ReadEvaluation {
    pub(crate) evaluation: Evaluation,
    /// The columns of `cases.csv`.
    keys: Vec<String>,
    /// The cells of `cases.csv`, as many as there are columns.
    rows: Vec<Vec<String>>,
}

impl ReadEvaluation {
    /// The evaluation of a folder of predictions; nothing where there is none.
    pub(crate) fn read(predictions: &Predictions) -> Result<Option<Self>> {
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

    /// Returns a score of a case by its key, of all samples and of the last mask.
    pub(crate) fn of_case(&self, id: &str, key: &str) -> Option<f64> {
        self.cell(id, self.keys.iter().rposition(|name| is_of(name, key))?)
    }

    /// Returns a number about a case by the head of its column.
    pub(crate) fn about_case(&self, id: &str, head: &str) -> Option<f64> {
        self.cell(id, self.keys.iter().position(|key| key == head)?)
    }

    fn cell(&self, id: &str, column: usize) -> Option<f64> {
        let ids = self.keys.iter().position(|key| key == "id")?;
        self.rows.iter().find(|row| row[ids] == id)?[column].parse().ok()
    }

    /// The ids of the cases.
    pub(crate) fn ids(&self) -> Vec<&str> {
        let column = self.keys.iter().position(|key| key == "id");
        column.map_or(vec![], |column| self.rows.iter().map(|row| row[column].as_str()).collect())
    }

    /// How many samples the GED² of all of them is of.
    pub(crate) fn samples(&self) -> Option<usize> {
        ScoreKey::parse(&self.evaluation.last(GED2)?.key)?.samples
    }

    /// The masks that have scores of their own: classes, and unions of classes.
    pub(crate) fn masks(&self) -> Vec<&str> {
        unique(self.evaluation.figures.iter().filter_map(|figure| figure.group.as_deref()))
    }

    /// A row per class and union of classes; nothing where there is only one.
    pub(crate) fn mask_table(&self) -> Option<Table> {
        let masks = self.masks();
        let figure = |mask: &str, key: &str| self.evaluation.of_mask(key, mask);
        let first = masks.first().filter(|_| masks.len() > 1)?;
        let columns = SCORES.iter().filter(|score| score.in_masks);
        let shown: Vec<(&str, &ScoreMean)> =
            columns.filter_map(|score| Some((score.key, figure(first, score.key)?))).collect();
        let mut columns = vec!["class, or union of classes".to_owned()];
        columns.extend(shown.iter().map(|(_, figure)| whole_title(figure)));
        let row = |mask: &&str| {
            let cell = |(key, first): &(&str, &ScoreMean)| with_error(figure(mask, key), first.unit);
            Row::Cells([Cell::name(mask)].into_iter().chain(shown.iter().map(cell)).collect())
        };
        let caption = "Scores of classes and unions of classes".to_owned();
        Some(Table { caption, columns, rows: masks.iter().map(row).collect(), sortable: false })
    }

    /// Means with standard errors: a row per figure.
    pub(crate) fn summary_table(&self) -> Table {
        let count = |n: usize| Cell::name(&n.to_string());
        let rows = grouped(self.evaluation.figures.iter(), |figure| {
            let shown = |value| Cell::number(value, |x| figure.unit.shown(x));
            let error = figure.standard_error.map_or(String::new(), |x| format!("± {}", shown(Some(x)).text));
            let error = Cell { text: error, ..Cell::default() };
            let mean = shown(figure.mean);
            vec![Cell::name(&figure.title), mean, error, count(figure.values), count(figure.cases)]
        });
        let columns = ["score", "mean", "± s.e.", "values", "cases"].map(str::to_owned).to_vec();
        Table { caption: "Means over all cases".to_owned(), columns, rows, sortable: false }
    }

    /// The scores of each case, sorted by a click: at first in the order of all figures. Names of cases lead to `linked` parts of the
    /// page, and each has a button that copies the line `view` gives.
    pub(crate) fn case_table(
        &self,
        surveys: &[CaseSurvey],
        linked: impl Fn(&str) -> Option<String>,
        view: impl Fn(&str) -> String,
    ) -> Option<Table> {
        let id = self.keys.iter().position(|key| key == "id")?;
        let most_samples = self.samples();
        let shown = |(place, name): (usize, &String)| -> Option<(usize, &ScoreMean)> {
            let figure = self.evaluation.figure(name)?;
            let key = ScoreKey::parse(name);
            let wanted = key.is_none_or(|key| {
                key.score.in_cases && (key.samples.is_none() || key.samples == most_samples)
            });
            wanted.then_some((place, figure))
        };
        let chosen: Vec<(usize, &ScoreMean)> = self.keys.iter().enumerate().filter_map(shown).collect();
        let several = self.evaluation.figures.iter().any(|figure| {
            figure.group.is_some() && figure.group != chosen.last().and_then(|(_, last)| last.group.clone())
        });
        let heading = |figure: &ScoreMean| match &figure.group {
            Some(group) if several => format!("{} · {group}", whole_title(figure)),
            _ => whole_title(figure),
        };
        let mut columns = vec!["case".to_owned(), "viewer".to_owned()];
        columns.extend(chosen.iter().map(|(_, figure)| heading(figure)));
        let row = |row: &Vec<String>| {
            let name = Cell { link: linked(&row[id]), ..Cell::name(&row[id]) };
            let mut cells = vec![name, Cell::copy(&view(&row[id]), "Copy line")];
            cells.extend(chosen.iter().map(|(place, figure)| {
                let value = row[*place].parse().ok();
                Cell::number(value, |x| figure.unit.shown(x))
            }));
            Row::Cells(cells)
        };
        let ranks: BTreeMap<&str, usize> =
            surveys.iter().map(|survey| (survey.id.as_str(), survey.rank)).collect();
        let mut ordered: Vec<&Vec<String>> = self.rows.iter().collect();
        ordered.sort_by_key(|row| ranks.get(row[id].as_str()).copied().unwrap_or(usize::MAX));
        let rows = ordered.into_iter().map(row).collect();
        Some(Table { caption: "Scores of each case".to_owned(), columns, rows, sortable: true })
    }
}

/// Shows the figures of evaluations, each with the name of its predictions; nothing for those that were not scored.
pub(crate) fn show_figures(report: &mut Report, evaluations: &[(&str, Option<&Evaluation>)]) {
    let scored: Vec<(&str, &Evaluation)> =
        evaluations.iter().filter_map(|(name, evaluation)| Some((*name, (*evaluation)?))).collect();
    let calibrated: Vec<Drawn> = scored
        .iter()
        .filter_map(|(name, evaluation)| reliability(name, evaluation, scored.len() > 1))
        .collect();
    let drawn: Vec<Drawn> = ged_samples(&scored).into_iter().chain(calibrated).collect();
    if !drawn.is_empty() {
        report.page.folded("Number of samples, and calibration");
        report.show(drawn);
    }
}

/// A mean with its standard error; empty like any number that is not there without a figure.
pub(crate) fn with_error(figure: Option<&ScoreMean>, unit: Unit) -> Cell {
    let shown = |value: Option<f64>| Cell::number(value, |x| unit.shown(x));
    let mut cell = shown(figure.and_then(|figure| figure.mean));
    if let Some(error) = figure.and_then(|figure| figure.standard_error) {
        cell.text += &format!(" ± {}", shown(Some(error)).text);
    }
    cell
}

/// Returns a title that needs no row above it.
fn whole_title(figure: &ScoreMean) -> String {
    let alone = figure.score().and_then(|score| score.alone_title(figure.unit));
    alone.unwrap_or_else(|| figure.title.clone())
}

/// A row per figure, with a heading where the mask changes.
pub(crate) fn grouped<'a>(
    figures: impl Iterator<Item = &'a ScoreMean>,
    cells: impl Fn(&'a ScoreMean) -> Vec<Cell>,
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

fn damaged(path: &Path, reason: &str) -> Error {
    let message = format!("{} cannot be read: {reason}; run `ssn evaluate` again", path.display());
    Error::mismatch(message)
}
