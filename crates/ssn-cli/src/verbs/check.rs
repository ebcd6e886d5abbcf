//! `ssn check`: every problem of a dataset at once, as a table or as JSON.

use ssn_data::{DataConfig, Dataset, check};

use crate::args::{CheckArgs, Global};
use crate::exit::{Exit, Failure, json, print, style};
use crate::progress;
use ssn_core::Phase;

/// Checks a dataset, or the one that a config names.
pub fn run(args: &CheckArgs, global: &Global) -> Result<Exit, Failure> {
    let (dataset, parts) = if ssn_eval::is_config(&args.dataset) {
        let config = DataConfig::read(&args.dataset)?;
        let mut dataset = config.open()?;
        let parts = config.parts_or_finding(&mut dataset);
        (dataset, parts)
    } else {
        (Dataset::open(&args.dataset)?, None)
    };
    let show = progress::show(global.quiet);
    let phase = Phase::new(&show, dataset.entries.len(), "cases");
    let report = check(&dataset, parts.as_deref(), &|done| phase.reached(done));
    drop(phase);
    let text = if global.json { json(&report)? } else { report.to_string().lines().map(colored).collect() };
    print(&text)?;
    Ok(if report.is_clean() { Exit::Ok } else { Exit::ProblemsFound })
}

/// A line of the report, with the word for how bad a finding is in its color.
fn colored(line: &str) -> String {
    let words = [("error", style::ERROR), ("warning", style::WARNING), ("note", style::NOTE)];
    // Findings begin with the word, padded to a column.
    let found = words.into_iter().find_map(|(word, style)| {
        line.strip_prefix(word)
            .filter(|_| line.starts_with(&format!("{word:<8} ")))
            .map(|rest| (word, style, rest))
    });
    match found {
        Some((word, style, rest)) => format!("{style}{word}{style:#}{rest}\n"),
        None => format!("{line}\n"),
    }
}
