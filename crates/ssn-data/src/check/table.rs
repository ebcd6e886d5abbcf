//! The report as text.

use std::collections::BTreeMap;
use std::fmt;

use super::Report;
use crate::finding::{Finding, Kind, Severity};
use crate::statistics::{Agreement, Statistics};

/// Findings of one kind that are printed; the rest is counted, and JSON has all.
const SHOWN: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.root.display(), self.layout.describe())?;
        figures(f, &self.statistics, self.cases)?;
        findings(f, self)?;
        match self.errors + self.warnings {
            0 => writeln!(f, "\nno problems found"),
            _ => writeln!(f, "\n{} and {}", counted(self.errors, "error"), counted(self.warnings, "warning")),
        }
    }
}

fn figures(f: &mut fmt::Formatter<'_>, statistics: &Statistics, cases: usize) -> fmt::Result {
    let unreadable = cases - statistics.cases;
    let rest = if unreadable > 0 { format!(", {unreadable} of them unusable") } else { String::new() };
    writeln!(
        f,
        "  cases      {cases}{rest}, in {} (patients or series)",
        counted(statistics.groups, "group")
    )?;
    let flat = statistics.sizes.iter().all(|([d, ..], _)| *d == 1);
    let axes = if flat { "height × width" } else { "depth × height × width" };
    let size = |([d, h, w], count): &([usize; 3], usize)| match flat {
        true => format!("{h} × {w} ({})", counted(*count, "case")),
        false => format!("{d} × {h} × {w} ({})", counted(*count, "case")),
    };
    let sizes: Vec<String> = statistics.sizes.iter().take(3).map(size).collect();
    let more = if statistics.sizes.len() > 3 {
        format!(", {} other sizes", statistics.sizes.len() - 3)
    } else {
        String::new()
    };
    if !sizes.is_empty() {
        writeln!(f, "  size       {}{more}; {axes}", sizes.join(", "))?;
    }
    if let Some([w, h, d]) = statistics.spacing {
        let axis = |[low, high]: [f64; 2]| match low == high {
            true => format!("{}", rounded(low)),
            false => format!("{}–{}", rounded(low), rounded(high)),
        };
        let along = if flat { vec![h, w] } else { vec![d, h, w] };
        let along: Vec<String> = along.into_iter().map(axis).collect();
        writeln!(f, "  spacing    {} mm; {axes}", along.join(" × "))?;
    }
    for (number, channel) in statistics.channels.iter().enumerate() {
        let head = if number == 0 { "channels" } else { "" };
        let [low, high] = channel.range.map(|x| rounded(f64::from(x)));
        writeln!(f, "  {head:<10} {:<16} {low} to {high}", channel.name)?;
    }
    for (number, class) in statistics.classes.iter().enumerate() {
        let head = if number == 0 { "classes" } else { "" };
        writeln!(
            f,
            "  {head:<10} {:<16} {:.2} % of voxels, in {}",
            class.name,
            100.0 * class.share,
            counted(class.cases, "case")
        )?;
    }
    let [fewest, most] = statistics.raters;
    let raters = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
    writeln!(f, "  raters     {raters}; {}", agreement(&statistics.agreement))?;
    for part in &statistics.parts {
        writeln!(
            f,
            "  {:<10} {} in {}; {}",
            part.split,
            counted(part.cases, "case"),
            counted(part.groups, "group"),
            agreement(&part.agreement)
        )?;
    }
    Ok(())
}

/// A number with its noun.
fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn agreement(agreement: &Agreement) -> String {
    let Agreement { empty_fraction, expert_diversity } = agreement;
    format!("empty maps {empty_fraction:.3}, expert diversity {expert_diversity:.3}")
}

/// Four digits that count, and no trailing zeros.
fn rounded(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

fn findings(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let mut kinds = BTreeMap::<(Severity, Kind), Vec<&Finding>>::new();
    for finding in &report.findings {
        kinds.entry((finding.severity, finding.kind)).or_default().push(finding);
    }
    for ((severity, _), found) in kinds {
        writeln!(f)?;
        for finding in found.iter().take(SHOWN) {
            let case = finding.case.as_ref().map_or(String::new(), |case| format!("{case}: "));
            let file = finding.file.as_ref().map_or(String::new(), |file| {
                let inside = file.strip_prefix(&report.root).ok().filter(|path| !path.as_os_str().is_empty());
                format!("{}: ", inside.unwrap_or(file).display())
            });
            writeln!(f, "{severity:<8} {case}{file}{}", finding.reason)?;
        }
        if found.len() > SHOWN {
            writeln!(f, "{severity:<8} … and {} more of this kind", found.len() - SHOWN)?;
        }
        if let Some(advice) = found.first().map(|finding| finding.advice).filter(|advice| !advice.is_empty())
        {
            writeln!(f, "{:<8} {advice}", "→")?;
        }
    }
    Ok(())
}
