//! The authors' index: a CSV with the columns `id`, one per channel, `seg` (or `seg_0`, `seg_1`, … for several
//! raters) and `sampling_mask`; our own columns `group` and `split` may be there too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ssn_io::{Error, Limits, Result, read_bytes};

use crate::dataset::{CaseEntry, CaseFiles, Finding, FindingKind, LabelPolicy, Layout, RaterFiles, Split};
use crate::layouts::Draft;
use crate::resolve::PartPath;
use crate::resolve::files::{ends_in, entries, files_by_part, is_image, name};
use crate::text::{CsvRow, csv_rows};

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Id,
    Channel(String),
    /// The labels of a rater; raters are in the order of these numbers.
    Rater(usize),
    Mask,
    Group,
    Split,
    /// Something else, such as an age.
    Other,
}

impl Column {
    fn of(header: &str) -> Self {
        let lower = header.to_lowercase();
        match lower.as_str() {
            "id" => Self::Id,
            "seg" => Self::Rater(0),
            "sampling_mask" | "mask" => Self::Mask,
            "group" | "patient" | "patient_id" | "series_uid" => Self::Group,
            "split" => Self::Split,
            _ => match lower.strip_prefix("seg_").and_then(|number| number.parse().ok()) {
                Some(rater) => Self::Rater(rater),
                None => Self::Channel(header.to_owned()),
            },
        }
    }
}

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let mut files = files_by_part(root, &[".csv"], &is_index)?;
    files.retain(|(_, path)| is_index(path));
    if files.is_empty() { Ok(None) } else { open(&files, LabelPolicy::Required).map(Some) }
}

/// Whether the first line of a CSV names an index, and not a table of ages or scores.
fn is_index(path: &Path) -> bool {
    let Ok(bytes) = read_bytes(path, &Limits::default()) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let rows = csv_rows(text.lines().next().unwrap_or_default()).unwrap_or_default();
    let columns: Vec<Column> = rows.iter().flat_map(|row| &row.cells).map(|cell| Column::of(cell)).collect();
    columns.contains(&Column::Id) && columns.iter().any(|column| matches!(column, Column::Rater(_)))
}

/// Warns of tables in a folder that list image files and are no index.
pub(super) fn unused(root: &Path) -> Vec<Finding> {
    let tables = entries(root).unwrap_or_default().into_iter();
    let tables = tables.filter(|path| ends_in(path, &[".csv"]) && path.is_file() && !is_index(path));
    let lists_images = |path: &PathBuf| {
        let bytes = read_bytes(path, &Limits::default()).unwrap_or_default();
        let rows = csv_rows(&String::from_utf8_lossy(&bytes)).unwrap_or_default();
        rows.get(1).is_some_and(|row| row.cells.iter().filter(|cell| is_image(Path::new(cell))).count() > 1)
    };
    let warn = |path: PathBuf| {
        let reason = format!(
            "the table {} lists files, but is not used: its columns are not `id`, `seg` and one per channel",
            name(&path)
        );
        let advice = "name its columns so, or move it away if the names of files say the same";
        Finding::warning(FindingKind::Layout, reason, advice).in_file(path)
    };
    tables.filter(lists_images).map(warn).collect()
}

pub(super) fn open(files: &[PartPath], labels: LabelPolicy) -> Result<Draft> {
    let (mut channels, mut entries): (Option<Vec<String>>, _) = (None, vec![]);
    let mut findings = vec![];
    for (split, path) in files {
        let index = Index::read(path, labels)?;
        let own = index.channels();
        if channels.as_ref().is_some_and(|channels| *channels != own) {
            return Err(wrong(
                path,
                format!("the channels are {}, but another file has others", own.join(", ")),
            ));
        }
        channels = Some(own);
        findings.extend(index.note());
        for row in &index.rows {
            entries.push(index.entry(row, *split)?);
        }
    }
    Ok(Draft { channels, findings, ..Draft::new(Layout::Csv, entries) })
}

struct Index<'a> {
    path: &'a Path,
    columns: Vec<Column>,
    rows: Vec<CsvRow>,
    /// Names of the columns that are not used.
    others: Vec<String>,
}

impl<'a> Index<'a> {
    fn read(path: &'a Path, labels: LabelPolicy) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        let text = String::from_utf8(bytes).map_err(|error| wrong(path, error.to_string()))?;
        let mut rows = csv_rows(&text).map_err(|reason| wrong(path, reason))?.into_iter();
        let header = rows.next().map(|row| row.cells).unwrap_or_default();
        let rows: Vec<_> = rows.collect();
        let mut columns: Vec<Column> = header.iter().map(|name| Column::of(name)).collect();
        let mut others = vec![];
        for (place, column) in columns.iter_mut().enumerate() {
            if matches!(column, Column::Channel(_)) && !holds_files(path, &rows, place) {
                *column = Column::Other;
                others.push(header[place].clone());
            }
        }
        let has = |wanted: fn(&Column) -> bool| columns.iter().any(wanted);
        let lacks = match () {
            () if !has(|column| *column == Column::Id) => "the column `id`",
            () if !has(|column| matches!(column, Column::Channel(_))) => {
                "a column for a channel, such as `flair`"
            }
            () if labels == LabelPolicy::Required && !has(|column| matches!(column, Column::Rater(_))) => {
                "the column `seg`, or `seg_0`, `seg_1`, …"
            }
            () => return Ok(Self { path, columns, rows, others }),
        };
        Err(wrong(path, format!("the columns are {}, but {lacks} is missing", header.join(", "))))
    }

    fn note(&self) -> Option<Finding> {
        let names: Vec<String> = self.others.iter().map(|name| format!("{name:?}")).collect();
        let reason = format!("the columns {} hold no files and are not used", names.join(", "));
        let finding = Finding::note(FindingKind::Layout, reason);
        (!names.is_empty()).then(|| finding.in_file(self.path))
    }

    fn channels(&self) -> Vec<String> {
        let name =
            |column: &Column| if let Column::Channel(name) = column { Some(name.clone()) } else { None };
        self.columns.iter().filter_map(name).collect()
    }

    fn entry(&self, CsvRow { line, cells }: &CsvRow, of_file: Option<Split>) -> Result<CaseEntry> {
        if cells.len() != self.columns.len() {
            let reason =
                format!("line {line} has {} cells, but the header has {}", cells.len(), self.columns.len());
            return Err(wrong(self.path, reason));
        }
        let (mut id, mut group, mut split) = (String::new(), None, of_file);
        let (mut files, mut raters) = (CaseFiles::default(), BTreeMap::new());
        for (column, cell) in self.columns.iter().zip(cells) {
            let path = (!cell.is_empty()).then(|| self.path.parent().unwrap_or(Path::new("")).join(cell));
            match (column, path) {
                (Column::Id, _) => id.clone_from(cell),
                (Column::Channel(_), path) => files.images.push(path),
                // A rater who did not look at a case leaves the cell empty.
                (Column::Rater(number), Some(path)) => drop(raters.insert(*number, path)),
                (Column::Mask, path) => files.mask = path,
                (Column::Group, Some(_)) => group = Some(cell.clone()),
                (Column::Split, Some(_)) => {
                    let expected = "train, validation or test";
                    let reason = format!("line {line}: the split is {cell:?}, but it must be {expected}");
                    split = Some(Split::from_name(cell).ok_or_else(|| wrong(self.path, reason))?);
                }
                (Column::Rater(_) | Column::Group | Column::Split, None) | (Column::Other, _) => {}
            }
        }
        if id.is_empty() {
            return Err(wrong(self.path, format!("line {line} has no id")));
        }
        files.raters = raters.into_iter().map(|(number, path)| RaterFiles::new(number, path)).collect();
        let entry = CaseEntry::of_files(id, split, files);
        Ok(CaseEntry { group: group.unwrap_or_else(|| entry.group.clone()), ..entry })
    }
}

/// Whether a column names files: a cell ends as images do, or there is a file of its name; an empty column may.
fn holds_files(index: &Path, rows: &[CsvRow], place: usize) -> bool {
    let folder = index.parent().unwrap_or(Path::new(""));
    let mut cells =
        rows.iter().filter_map(|row| row.cells.get(place)).filter(|cell| !cell.is_empty()).peekable();
    cells.peek().is_none() || cells.any(|cell| is_image(Path::new(cell)) || folder.join(cell).is_file())
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::data(path, reason).advise("correct the CSV file")
}
