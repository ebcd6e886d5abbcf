//! `cargo xtask docs`: the tables of the documentation, written from the records of measurements.
//!
//! A table stands in its page between `<!-- table: NAME -->` and `<!-- end -->`.

use std::fs;

use serde_json::Value;

use crate::checkout;
use crate::error::{Error, Exit};

/// Write the tables of the documentation from the records under `experiments` and `benches`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write nothing; fail if a page differs from its records.
    #[arg(long)]
    pub check: bool,
}

/// A table of a page.
struct Table {
    name: &'static str,
    page: &'static str,
    content: Content,
}

enum Content {
    /// Rows of JSON records, in this order: `(record, row)`.
    Rows { rows: &'static [(&'static str, &'static str)], columns: &'static [Column] },
    /// The first table of a record in Markdown, as the benchmarks print it.
    Markdown(&'static str),
}

struct Column {
    head: &'static str,
    cell: Cell,
    /// Marks the best cell.
    best: Option<Best>,
}

#[derive(Clone, Copy)]
enum Best {
    Lowest,
    Highest,
}

/// A cell, from the row of a record.
enum Cell {
    /// The mean of a score, with its standard error if the record has one: score, factor, digits.
    Mean(&'static str, f64, usize),
    /// The mean alone.
    MeanOnly(&'static str, f64, usize),
    /// The lowest and highest mean of the seeds.
    Seeds(&'static str),
    /// A number by its JSON pointer.
    Number(&'static str, f64, usize),
    /// A number of the paper's row of the same name.
    Paper(&'static str, usize),
}

const PAPER: &str = "experiments/paper.json";

const fn column(head: &'static str, cell: Cell) -> Column {
    Column { head, cell, best: None }
}

const fn lowest(head: &'static str, cell: Cell) -> Column {
    Column { head, cell, best: Some(Best::Lowest) }
}

const fn highest(head: &'static str, cell: Cell) -> Column {
    Column { head, cell, best: Some(Best::Highest) }
}

const LIDC: &str = "experiments/runs/lidc-sim.json";
const RANK: &str = "experiments/runs/rank.json";
const GENERAL: &str = "experiments/runs/general.json";
const GROWTH: &str = "experiments/runs/brain-growth.json";
const BRATS: &str = "experiments/runs/brats2015.json";
const COST: &str = "experiments/runs/cost.json";
const DEMO: &str = "experiments/runs/demo.json";

const TABLES: &[Table] = &[
    Table {
        name: "lidc",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[
                (LIDC, "deterministic U-Net"),
                (LIDC, "probabilistic U-Net"),
                (LIDC, "PHiSeg, other widths"),
                (LIDC, "PHiSeg"),
                (LIDC, "SSN diagonal, likelihood"),
                (LIDC, "SSN low-rank, likelihood"),
                (LIDC, "SSN low-rank, energy"),
                (LIDC, "SSN low-rank, lidc-energy"),
            ],
            columns: &[
                highest("DSC %", Cell::Mean("dsc nodule", 100.0, 1)),
                highest("DSC_nod %", Cell::Mean("dsc_nod nodule", 100.0, 1)),
                lowest("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("seeds", Cell::Seeds("ged2")),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                highest("HM-IoU", Cell::MeanOnly("hm_iou", 1.0, 3)),
                highest("at 16 samples", Cell::MeanOnly("hm_iou_of_16_samples", 1.0, 3)),
                column("paper: DSC %", Cell::Paper("dsc %", 1)),
                column("DSC_nod %", Cell::Paper("dsc_nod %", 1)),
                column("GED²", Cell::Paper("ged2", 3)),
                column("diversity", Cell::Paper("diversity", 3)),
            ],
        },
    },
    Table {
        name: "rank",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[
                (RANK, "rank 1"),
                (RANK, "rank 2"),
                (RANK, "rank 5"),
                (RANK, "rank 10"),
                (RANK, "rank 15"),
                (RANK, "rank 20"),
            ],
            columns: &[
                column("DSC %", Cell::Mean("dsc nodule", 100.0, 1)),
                column("DSC_nod %", Cell::Mean("dsc_nod nodule", 100.0, 1)),
                column("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                column("HM-IoU", Cell::MeanOnly("hm_iou", 1.0, 3)),
                column("log-likelihood", Cell::Mean("log_likelihood", 1.0, 1)),
            ],
        },
    },
    Table {
        name: "general",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[(GENERAL, "energy"), (GENERAL, "likelihood")],
            columns: &[
                highest("DSC %", Cell::Mean("dsc nodule", 100.0, 1)),
                highest("DSC_nod %", Cell::Mean("dsc_nod nodule", 100.0, 1)),
                lowest("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                highest("HM-IoU", Cell::MeanOnly("hm_iou", 1.0, 3)),
                lowest("ECE", Cell::MeanOnly("ece", 1.0, 3)),
            ],
        },
    },
    Table {
        name: "brain-growth",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[
                (GROWTH, "deterministic U-Net"),
                (GROWTH, "SSN diagonal"),
                (GROWTH, "SSN low-rank"),
                (GROWTH, "SSN low-rank, M = 4"),
                (GROWTH, "SSN low-rank, energy"),
                (GROWTH, "SSN low-rank, energy after likelihood"),
            ],
            columns: &[
                highest("DSC %", Cell::Mean("dsc growth", 100.0, 1)),
                lowest("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                highest("HM-IoU", Cell::MeanOnly("hm_iou", 1.0, 3)),
                lowest("ECE", Cell::MeanOnly("ece", 1.0, 3)),
            ],
        },
    },
    Table {
        name: "brats2015",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[
                (BRATS, "deterministic DeepMedic"),
                (BRATS, "SSN low-rank, 60 mm"),
                (BRATS, "SSN low-rank, 30 mm"),
                (BRATS, "SSN low-rank, 30 mm, energy"),
            ],
            columns: &[
                column("DSC whole tumour %", Cell::Mean("dsc whole tumour", 100.0, 1)),
                column("DSC enhancing %", Cell::Mean("dsc enhancing", 100.0, 1)),
                lowest("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                column("paper (BraTS 2017): DSC whole %", Cell::Paper("dsc whole tumour %", 1)),
                column("enhancing %", Cell::Paper("dsc enhancing %", 1)),
                column("GED²", Cell::Paper("ged2", 3)),
                column("diversity", Cell::Paper("diversity", 3)),
            ],
        },
    },
    Table {
        name: "cost",
        page: "docs/results.md",
        content: Content::Rows {
            rows: &[
                (COST, "deterministic U-Net"),
                (COST, "probabilistic U-Net"),
                (COST, "PHiSeg"),
                (COST, "SSN diagonal"),
                (COST, "SSN low-rank"),
            ],
            columns: &[
                column("parameters", Cell::Number("/cost/parameters", 1.0, 0)),
                column("ms per training step", Cell::Number("/cost/step_milliseconds", 1.0, 2)),
                column("samples of an image", Cell::Number("/cost/samples", 1.0, 0)),
                column("ms per image with them", Cell::Number("/cost/image_seconds", 1000.0, 1)),
            ],
        },
    },
    Table {
        name: "demo",
        page: "docs/concepts/synthetic.md",
        content: Content::Rows {
            rows: &[
                (DEMO, "seed 0, deterministic"),
                (DEMO, "seed 0, diagonal"),
                (DEMO, "seed 0, low-rank"),
                (DEMO, "seed 1, deterministic"),
                (DEMO, "seed 1, diagonal"),
                (DEMO, "seed 1, low-rank"),
            ],
            columns: &[
                column("GED²", Cell::Mean("ged2", 1.0, 3)),
                column("HM-IoU", Cell::Mean("hm_iou", 1.0, 3)),
                column("diversity", Cell::MeanOnly("sample_diversity", 1.0, 3)),
                column("of raters", Cell::MeanOnly("rater_diversity", 1.0, 3)),
            ],
        },
    },
    Table {
        name: "step-cpu",
        page: "docs/performance.md",
        content: Content::Markdown("benches/runs/step-cpu.md"),
    },
    Table {
        name: "step-gpu",
        page: "docs/performance.md",
        content: Content::Markdown("benches/runs/step-gpu.md"),
    },
    Table {
        name: "sampling",
        page: "docs/performance.md",
        content: Content::Markdown("benches/runs/sampling.md"),
    },
    Table {
        name: "augment",
        page: "docs/performance.md",
        content: Content::Markdown("benches/runs/augment.md"),
    },
];

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Error> {
    let mut differing = vec![];
    for table in TABLES {
        let path = checkout::root().join(table.page);
        let page = read(table.page)?;
        let new = with_table(&page, table.name, &table.text(&|record| read(record))?)
            .ok_or_else(|| Error::data(format!("{} has no table {}", table.page, table.name)))?;
        if new != page {
            differing.push(format!("the table {} of {}", table.name, table.page));
            if !args.check {
                fs::write(&path, new).map_err(|error| Error::data(format!("{}: {error}", path.display())))?;
            }
        }
    }
    match (differing.is_empty(), args.check) {
        (true, _) => println!("all {} tables are those of their records", TABLES.len()),
        (false, false) => println!("wrote {}", differing.join(", ")),
        (false, true) => {
            return Err(Error::data(format!(
                "{} differs from its record; run `cargo xtask docs`",
                differing.join(", ")
            )));
        }
    }
    Ok(Exit::Success)
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(checkout::root().join(path)).map_err(|error| Error::data(format!("{path}: {error}")))
}

/// Returns `page` with `text` between the marks of a table; `None` if it has no such marks.
fn with_table(page: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- table: {name} -->\n"))?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}<!-- table: {name} -->\n{text}<!-- end -->{after}"))
}

impl Table {
    fn text(&self, read: &dyn Fn(&str) -> Result<String, Error>) -> Result<String, Error> {
        match &self.content {
            Content::Markdown(record) => {
                let text = read(record)?;
                let lines = text.lines().skip_while(|line| !line.starts_with('|'));
                let lines: Vec<&str> = lines.take_while(|line| line.starts_with('|')).collect();
                Ok(lines.join("\n") + "\n")
            }
            Content::Rows { rows, columns } => {
                let records = rows.iter().map(|(record, name)| row(&read(record)?, record, name));
                let records = records.collect::<Result<Vec<Value>, Error>>()?;
                let paper = row_list(&read(PAPER)?, PAPER)?;
                Ok(markdown(rows, &records, &paper, columns))
            }
        }
    }
}

fn row_list(text: &str, record: &str) -> Result<Vec<Value>, Error> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Error::data(format!("{record}: {error}")))?;
    let rows = value["rows"].as_array().cloned();
    rows.ok_or_else(|| Error::data(format!("{record} has no rows")))
}

fn row(text: &str, record: &str, name: &str) -> Result<Value, Error> {
    let found = row_list(text, record)?.into_iter().find(|row| row["name"] == name);
    found.ok_or_else(|| Error::data(format!("{record} has no row {name:?}")))
}

fn markdown(rows: &[(&str, &str)], records: &[Value], paper: &[Value], columns: &[Column]) -> String {
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut text = format!("| | {} |\n|{}\n", heads.join(" | "), "---|".repeat(columns.len() + 1));
    let best: Vec<Option<usize>> = columns.iter().map(|column| column.best_of(records)).collect();
    for (number, ((_, name), record)) in rows.iter().zip(records).enumerate() {
        let of_paper = paper.iter().find(|row| row["name"] == *name);
        let cells = columns.iter().zip(&best).map(|(column, best)| {
            let cell = column.cell.text(record, of_paper);
            if *best == Some(number) { format!("**{cell}**") } else { cell }
        });
        let cells: Vec<String> = cells.collect();
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    text
}

impl Column {
    /// Returns the place of the best row of a column that marks it.
    fn best_of(&self, records: &[Value]) -> Option<usize> {
        let sign = match self.best? {
            Best::Lowest => 1.0,
            Best::Highest => -1.0,
        };
        let (Cell::Mean(score, ..) | Cell::MeanOnly(score, ..)) = self.cell else { return None };
        let means = records
            .iter()
            .enumerate()
            .filter_map(|(number, record)| Some((number, sign * figure(record, score)?["mean"].as_f64()?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number)
    }
}

/// Returns a score of a row; `ged2` is the one of the most samples.
fn figure<'a>(record: &'a Value, score: &str) -> Option<&'a Value> {
    let figures = record["figures"].as_object()?;
    if score != "ged2" {
        return figures.get(score);
    }
    let samples = |key: &str| key.strip_prefix("ged2_")?.parse::<usize>().ok();
    figures
        .iter()
        .filter_map(|(key, value)| Some((samples(key)?, value)))
        .max_by_key(|(n, _)| *n)
        .map(|(_, v)| v)
}

impl Cell {
    /// Returns the text of the cell, empty if the row lacks the number.
    fn text(&self, record: &Value, paper: Option<&Value>) -> String {
        let text = match *self {
            Self::Mean(score, factor, digits) => figure(record, score).and_then(|figure| {
                let mean = number(&figure["mean"], factor, digits)?;
                let error = number(&figure["standard_error"], factor, digits);
                Some(error.map_or(mean.clone(), |error| format!("{mean} ± {error}")))
            }),
            Self::MeanOnly(score, factor, digits) => {
                figure(record, score).and_then(|figure| number(&figure["mean"], factor, digits))
            }
            Self::Seeds(score) => figure(record, score).map(|figure| {
                match [&figure["lowest"], &figure["highest"]].map(|end| number(end, 1.0, 3)) {
                    [Some(low), Some(high)] if low != high => format!("{low}–{high}"),
                    _ => "one seed".to_owned(),
                }
            }),
            Self::Number(pointer, factor, digits) => {
                record.pointer(pointer).and_then(|value| number(value, factor, digits))
            }
            Self::Paper(key, digits) => paper.and_then(|row| number(&row[key], 1.0, digits)),
        };
        text.unwrap_or_default()
    }
}

/// Formats a number with thousands separators.
fn number(value: &Value, factor: f64, digits: usize) -> Option<String> {
    let text = format!("{:.digits$}", value.as_f64()? * factor);
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("−", rest));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    Some(format!("{sign}{grouped}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_the_tables_of_its_records() {
        run(&Args { check: true }).unwrap();
    }

    #[test]
    fn a_table_is_written_between_its_marks() {
        let page = "a\n<!-- table: x -->\nold\n<!-- end -->\nb\n<!-- table: y -->\n<!-- end -->\n";
        let new = with_table(page, "x", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(with_table(page, "z", ""), None);
    }

    #[test]
    fn cells_are_rounded_and_the_best_is_marked() {
        let record = |name: &str, mean: f64| {
            serde_json::json!({ "name": name, "figures": { "ged2_8": { "mean": 9.0 },
                "ged2_16": { "mean": mean, "standard_error": 0.0123, "lowest": 0.1, "highest": 0.25 } } })
        };
        let records = [record("a", -1234.5678), record("b", 0.5)];
        let columns = [lowest("GED²", Cell::Mean("ged2", 1.0, 2)), column("seeds", Cell::Seeds("ged2"))];
        let text = markdown(&[("", "a"), ("", "b")], &records, &[], &columns);
        let expected = "| | GED² | seeds |\n|---|---|---|\n| a | **−1,234.57 ± 0.01** | 0.100–0.250 |\n\
                        | b | 0.50 ± 0.01 | 0.100–0.250 |\n";
        assert_eq!(text, expected);
    }
}
