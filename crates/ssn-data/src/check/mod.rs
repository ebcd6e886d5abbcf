//! Every problem of a dataset at once, with its figures.

mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::case::Case;
use crate::dataset::{Dataset, Layout};
use crate::finding::{Finding, Kind, Severity};
use crate::parallel::{self, Progress};
use crate::split::Split;
use crate::statistics::{CaseFacts, Statistics};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The folder or file.
    pub root: PathBuf,
    /// How its files lie.
    pub layout: Layout,
    /// All cases, readable or not.
    pub cases: usize,
    /// How many findings are errors.
    pub errors: usize,
    /// How many are warnings.
    pub warnings: usize,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// Figures of the cases that could be read.
    pub statistics: Statistics,
}

impl Report {
    /// Whether there is neither an error nor a warning.
    pub fn is_clean(&self) -> bool {
        self.errors + self.warnings == 0
    }
}

/// Reads every case of a dataset, in parallel, and tells what is wrong.
///
/// `parts` is the part of each case where a split was made; without it, the parts that the dataset itself
/// assigns are looked at.
pub fn check(dataset: &Dataset, parts: Option<&[Split]>, progress: Progress<'_>) -> Report {
    let part =
        |index: usize| parts.and_then(|parts| parts.get(index).copied()).or(dataset.entries[index].split);
    let results = parallel::map(dataset.entries.len(), progress, |index, meter| {
        let (case, mut findings) = dataset.inspect(index);
        let entry = &dataset.entries[index];
        let facts = case.map(|case| {
            meter.saw(case.bytes());
            let facts = CaseFacts::of(&case, dataset.classes.len(), entry, part(index));
            findings.extend(
                of_content(dataset, &case, &facts).into_iter().map(|finding| finding.of_case(&entry.id)),
            );
            facts
        });
        (facts, findings)
    });
    let mut findings = dataset.findings.clone();
    findings.extend(duplicates(dataset));
    findings.extend(leaks(dataset, &part));
    let mut facts = vec![];
    for (result, entry) in results.into_iter().zip(&dataset.entries) {
        match result {
            Ok((of_case, found)) => {
                facts.extend(of_case);
                findings.extend(found);
            }
            Err(message) => findings.push(Finding::panic(&message).of_case(&entry.id)),
        }
    }
    let statistics = Statistics::of(&facts, &dataset.channels, &dataset.classes);
    findings.extend(of_raters(&statistics));
    // Sorting is stable: within a kind, cases stay in their order.
    findings.sort_by_key(|finding| (finding.severity, finding.kind));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    Report {
        root: dataset.root.clone(),
        layout: dataset.layout,
        cases: dataset.entries.len(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        findings,
        statistics,
    }
}

/// What the values of a readable case tell.
fn of_content(dataset: &Dataset, case: &Case, facts: &CaseFacts) -> Vec<Finding> {
    let mut findings = vec![];
    for (name, [low, high]) in dataset.channels.iter().zip(&facts.ranges) {
        if low == high {
            let reason = format!("all values of the channel {name:?} are {low}");
            let advice = "check that the right file is there";
            findings.push(Finding::new(Severity::Warning, Kind::ConstantChannel, reason, advice));
        }
    }
    if facts.raters > 0 && facts.empty == facts.raters {
        let reason = if facts.raters == 1 {
            "the label map is empty"
        } else {
            "the label maps of all raters are empty"
        };
        findings.push(Finding::new(Severity::Note, Kind::EmptyLabels, reason, ""));
    }
    let outside = case.mask.as_ref().map_or(0, |mask| {
        let marked = |v: &usize| case.raters.iter().any(|rater| rater[*v] > 0);
        (0..mask.len()).filter(|&v| mask[v] == 0).filter(marked).count()
    });
    if outside > 0 {
        let reason = format!("{outside} marked voxels lie outside the region of interest");
        findings.push(Finding::new(Severity::Note, Kind::OutsideMask, reason, ""));
    }
    findings
}

fn duplicates(dataset: &Dataset) -> Vec<Finding> {
    let mut counts = BTreeMap::<&str, usize>::new();
    dataset.entries.iter().for_each(|entry| *counts.entry(&entry.id).or_default() += 1);
    let twice = counts.into_iter().filter(|(_, count)| *count > 1);
    twice
        .map(|(id, count)| {
            let reason = format!("{count} cases have this id, but ids must differ");
            Finding::new(Severity::Error, Kind::DuplicateId, reason, "rename or remove all but one")
                .of_case(id)
        })
        .collect()
}

/// Groups that are in more than one part.
fn leaks(dataset: &Dataset, part: &dyn Fn(usize) -> Option<Split>) -> Vec<Finding> {
    let mut found = BTreeMap::<&str, BTreeMap<Split, &str>>::new();
    for (index, entry) in dataset.entries.iter().enumerate() {
        if let Some(split) = part(index) {
            found.entry(&entry.group).or_default().entry(split).or_insert(&entry.id);
        }
    }
    found.retain(|_, parts| parts.len() > 1);
    found
        .into_iter()
        .map(|(group, parts)| {
            let places: Vec<String> = parts.iter().map(|(split, id)| format!("{split} ({id})")).collect();
            let reason = format!("the patient or series {group:?} is in {}", places.join(" and "));
            let advice = "put all cases of a patient into one part, or scores will be too good";
            Finding::new(Severity::Warning, Kind::SplitLeak, reason, advice)
        })
        .collect()
}

fn of_raters(statistics: &Statistics) -> Option<Finding> {
    let [fewest, most] = statistics.raters;
    let reason = format!("cases have {fewest} to {most} raters");
    (fewest != most).then(|| Finding::new(Severity::Note, Kind::RaterCount, reason, ""))
}
