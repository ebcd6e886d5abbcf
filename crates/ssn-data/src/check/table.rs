//! The report as text.

use std::collections::BTreeMap;
use std::fmt;

use crate::text::counted;

use super::Report;
use crate::finding::{Finding, Kind, Severity};
use crate::statistics::{Agreement, Statistics};

/// Findings of one kind that are printed; the rest is counted, and JSON has all.
const SHOWN: usize = 10;

/// More findings than this are told in one line if they say the same.
const FEW: usize = 3;

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
    writeln!(f, "  raters     {raters}; {}", agreement(&statistics.agreement, most))?;
    for part in &statistics.parts {
        writeln!(
            f,
            "  {:<10} {} in {}; {}",
            part.split,
            counted(part.cases, "case"),
            counted(part.groups, "group"),
            agreement(&part.agreement, most)
        )?;
    }
    Ok(())
}

/// How often raters marked nothing, and, of several, how much they differ.
fn agreement(agreement: &Agreement, raters: usize) -> String {
    let Agreement { empty_fraction, expert_diversity } = agreement;
    let empty = format!("{:.1} % of maps are empty", 100.0 * empty_fraction);
    if raters < 2 { empty } else { format!("{empty}, diversity of raters {expert_diversity:.3}") }
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
        match of_many_cases(&found) {
            Some(line) => writeln!(f, "{severity:<8} {line}")?,
            None => one_by_one(f, severity, &found, report)?,
        }
        if let Some(advice) = found.first().map(|finding| finding.advice).filter(|advice| !advice.is_empty())
        {
            writeln!(f, "{:<8} {advice}", "→")?;
        }
    }
    Ok(())
}

/// One line for many cases of which the very same is true.
fn of_many_cases(found: &[&Finding]) -> Option<String> {
    let [first, .., _] = found else { return None };
    let same = |finding: &&Finding| finding.reason == first.reason && finding.file.is_none();
    let cases: Vec<&str> = found.iter().filter_map(|finding| finding.case.as_deref()).collect();
    if found.len() <= FEW || cases.len() < found.len() || !found.iter().all(same) {
        return None;
    }
    let more = if cases.len() > SHOWN { ", …" } else { "" };
    let named = cases[..cases.len().min(SHOWN)].join(", ");
    Some(format!("{}: {}: {named}{more}", counted(cases.len(), "case"), first.reason))
}

/// A line per finding.
fn one_by_one(
    f: &mut fmt::Formatter<'_>,
    severity: Severity,
    found: &[&Finding],
    report: &Report,
) -> fmt::Result {
    for finding in found.iter().take(SHOWN) {
        let case = finding.case.as_ref().map_or(String::new(), |case| format!("{case}: "));
        let file = finding.file.as_ref().map_or(String::new(), |file| {
            let inside = file.strip_prefix(&report.root).ok().filter(|path| !path.as_os_str().is_empty());
            format!("{}: ", inside.unwrap_or(file).display())
        });
        writeln!(f, "{severity:<8} {case}{file}{}", finding.reason)?;
    }
    match found.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(f, "{severity:<8} … and {more} more of this kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_true_of_many_cases_takes_one_line() {
        let empty = |case: &str| {
            Finding::new(Severity::Note, Kind::EmptyLabels, "all maps are empty", "").of_case(case)
        };
        let mut found: Vec<Finding> = ["a", "b", "c"].map(empty).to_vec();
        let line = |found: &[Finding]| of_many_cases(&found.iter().collect::<Vec<_>>());
        assert_eq!(line(&found), None, "three lines are not too many");
        found.push(empty("d"));
        assert_eq!(line(&found).as_deref(), Some("4 cases: all maps are empty: a, b, c, d"));
        found.extend((0..SHOWN).map(|n| empty(&n.to_string())));
        assert!(line(&found).is_some_and(|line| line.starts_with("14 cases") && line.ends_with("5, …")));
        found[1].reason = "one map is empty".to_owned();
        assert_eq!(line(&found), None, "another reason needs a line of its own");
    }
}
