//! The dataset check: every problem at once, with statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use ssn_core::Control;
use ssn_core::labels::{BitPlanes, LabelMap};
use ssn_core::metrics::foreground_distance;

use crate::dataset::{
    Case, CaseEntry, Dataset, Finding, FindingKind, LabelCoding, Layout, MOST_CLASSES, Severity, Split,
    extremes,
};
use crate::layouts::label_values;
use crate::parallel;
use crate::parallel::{CaseCounter, MemoryMeter};
use crate::text::counted;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The folder or file.
    pub root: PathBuf,
    /// The layout of its files.
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

impl CheckReport {
    /// Whether there is neither an error nor a warning.
    pub fn is_clean(&self) -> bool {
        self.errors + self.warnings == 0
    }
}

/// Reads every case of a dataset, in parallel, and reports every problem.
///
/// `parts` is the part of each case where a split was made; without it, the parts that the dataset itself
/// assigns are looked at.
pub fn check(dataset: &Dataset, parts: Option<&[Split]>, progress: CaseCounter<'_>) -> CheckReport {
    let results = parallel::map(dataset.entries.len(), progress, inspection(dataset, parts));
    report_of(dataset, parts, results)
}

/// Like [`check`], with progress and cancellation.
///
/// # Errors
/// [`ErrorKind::Stopped`](ssn_io::ErrorKind::Stopped) if it was stopped.
pub fn check_until(
    dataset: &Dataset,
    parts: Option<&[Split]>,
    control: Control<'_>,
) -> ssn_io::Result<CheckReport> {
    let count = dataset.entries.len();
    let phase = control.phase("checking", count, "cases");
    let results = parallel::map_until(count, &phase, inspection(dataset, parts))?;
    Ok(report_of(dataset, parts, results))
}

/// Facts and findings of a case.
type Inspected = (Option<CaseFacts>, Vec<Finding>);

/// Returns the part of a case.
fn part_of(dataset: &Dataset, parts: Option<&[Split]>, index: usize) -> Option<Split> {
    parts.and_then(|parts| parts.get(index).copied()).or(dataset.entries[index].split)
}

/// Returns the work on a case.
fn inspection<'a>(
    dataset: &'a Dataset,
    parts: Option<&'a [Split]>,
) -> impl Fn(usize, &MemoryMeter) -> Inspected + Sync + 'a {
    move |index, meter| {
        let (case, mut findings) = dataset.inspect(index);
        let entry = &dataset.entries[index];
        let facts = case.map(|case| {
            meter.saw(case.bytes());
            let facts = CaseFacts::of(&case, dataset.classes.len(), entry, part_of(dataset, parts, index));
            findings.extend(
                of_content(dataset, &case, &facts).into_iter().map(|finding| finding.of_case(&entry.id)),
            );
            facts
        });
        (facts, findings)
    }
}

fn report_of(
    dataset: &Dataset,
    parts: Option<&[Split]>,
    results: Vec<Result<Inspected, String>>,
) -> CheckReport {
    let part = |index: usize| part_of(dataset, parts, index);
    let mut findings = dataset.findings.clone();
    findings.extend(dataset.left_out());
    findings.extend(duplicates(dataset));
    findings.extend(leaks(dataset, &part));
    let mut facts = vec![];
    for (result, entry) in results.into_iter().zip(&dataset.entries) {
        match result {
            Ok((of_case, found)) => {
                facts.extend(of_case);
                findings.extend(found);
            }
            Err(message) => {
                let reason = format!("the program failed: {message}");
                let advice = "please report this with the case";
                findings.push(Finding::error(FindingKind::Panic, reason, advice).of_case(&entry.id));
            }
        }
    }
    let statistics = Statistics::of(&facts, &dataset.channels, &dataset.classes);
    findings.extend(missing_raters(dataset));
    findings.extend(implausible_labels(dataset, &statistics));
    findings.extend(inverted_raters(dataset, &facts));
    findings.extend(disjoint_raters(&facts));
    findings.extend(label_channels(dataset, &facts));
    // Sorting is stable: within a kind, cases stay in their order.
    findings.sort_by_key(|finding| (finding.severity, finding.kind));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    CheckReport {
        root: dataset.root.clone(),
        layout: dataset.layout,
        cases: dataset.entries.len(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        findings,
        statistics,
    }
}

fn of_content(dataset: &Dataset, case: &Case, facts: &CaseFacts) -> Vec<Finding> {
    let mut findings = vec![];
    for (name, [low, high]) in dataset.channels.iter().zip(&facts.ranges) {
        if low == high {
            let reason = format!("all values of the channel {name:?} are {low}");
            let advice = "check that the right file is there";
            findings.push(Finding::warning(FindingKind::ConstantChannel, reason, advice));
        }
    }
    if facts.raters > 0 && facts.empty == facts.raters {
        let reason = if facts.raters == 1 {
            "the label map is empty"
        } else {
            "the label maps of all raters are empty"
        };
        findings.push(Finding::note(FindingKind::EmptyLabels, reason));
    }
    let outside = case.mask.as_ref().map_or(0, |mask| {
        let marked = |v: &usize| case.raters.iter().any(|rater| rater[*v] > 0);
        (0..mask.len()).filter(|&v| mask[v] == 0).filter(marked).count()
    });
    if outside > 0 {
        let reason = format!("{outside} marked voxels lie outside the region of interest");
        findings.push(Finding::note(FindingKind::OutsideMask, reason));
    }
    findings
}

/// Reports, rater by rater, the cases that a rater of other cases did not mark, or whose map is taken as empty.
fn missing_raters(dataset: &Dataset) -> Vec<Finding> {
    let all: BTreeSet<usize> = dataset.entries.iter().flat_map(CaseEntry::raters).collect();
    let note = |entry: &CaseEntry, reason: String, advice: &'static str| {
        Finding { advice: advice.to_owned(), ..Finding::note(FindingKind::MissingRater, reason) }
            .of_case(&entry.id)
    };
    let missing = |rater: usize, entry: &CaseEntry| {
        let (name, own) = (dataset.rater_name(rater), entry.raters());
        if entry.empty_raters().contains(&rater) {
            let advice = "so data.missing_rater says; with \"absent\", they did not look at the case";
            return Some(note(entry, format!("there are no files of {name}: taken as empty"), advice));
        }
        let advice = "they count as not having looked; if they looked and marked nothing, set data.missing_rater = \"empty\"";
        // A case without any labels is an error by itself.
        let is_absent = !own.is_empty() && !own.contains(&rater);
        is_absent.then(|| note(entry, format!("there are no labels of {name}"), advice))
    };
    let of_rater = |rater: &usize| {
        let rater = *rater;
        dataset.entries.iter().filter_map(move |entry| missing(rater, entry)).collect::<Vec<_>>()
    };
    all.iter().flat_map(of_rater).collect()
}

/// Labels that can be read, but would train something else than was meant.
fn implausible_labels(dataset: &Dataset, statistics: &Statistics) -> Vec<Finding> {
    let warning = |reason, advice| Finding::warning(FindingKind::ImplausibleLabels, reason, advice);
    let mut findings = vec![];
    let stored = match &dataset.reading.coding {
        LabelCoding::Values(values) => &values[..],
        LabelCoding::Plain | LabelCoding::Threshold(_) => &[],
    };
    // A config that has a threshold was not looked through for values.
    let is_told = |finding: &Finding| finding.kind == FindingKind::ImplausibleLabels;
    if let LabelCoding::Threshold(threshold) = dataset.reading.coding
        && !dataset.findings.iter().any(is_told)
    {
        findings.extend(label_values(&dataset.entries).threshold_note(threshold));
    }
    if stored == [0, 1, 255] {
        let reason = "the labels have the values 0, 1 and 255, each taken for a class".to_owned();
        let advice = "if some masks mark with 1 and others with 255, set label_threshold = 0 in the config";
        findings.push(warning(reason, advice));
    } else if dataset.classes.len() > MOST_CLASSES || (stored.len() > 2 && stored.ends_with(&[255])) {
        let reason =
            format!("the labels have {} different values, each taken for a class", dataset.classes.len());
        let advice =
            "if they are masks that lost their exact values, set label_threshold = 127 in the config";
        findings.push(warning(reason, advice));
    }
    if let [_, foreground] = &statistics.classes[..]
        && foreground.share > 0.5
    {
        let share = 100.0 * foreground.share;
        let reason = format!("{share:.0} % of all voxels are {:?}: are the masks inverted?", foreground.name);
        let advice = match dataset.reading.invert {
            true => "if so, remove invert_labels from the config",
            false => "if so, set invert_labels = true in the config; it goes together with label_threshold",
        };
        findings.push(warning(reason, advice));
    }
    if let [background, _, _, ..] = &statistics.classes[..]
        && background.cases == 0
        && statistics.cases > 0
    {
        let reason = format!("no voxel is {:?}: the labels lack the value 0", background.name);
        let advice = "if another value is the background, list it first in data.label_values of the config, as in [1, 2]";
        findings.push(warning(reason, advice));
    }
    for class in statistics.classes.iter().skip(1).filter(|class| class.cases == 0 && statistics.cases > 0) {
        let reason = format!("the class {:?} occurs in no case", class.name);
        let advice =
            "correct data.classes and data.label_values: a class that nobody marks is learned as absent";
        findings.push(warning(reason, advice));
    }
    findings
}

/// Warns of a rater of two classes who marked most voxels where others marked few.
fn inverted_raters(dataset: &Dataset, facts: &[CaseFacts]) -> Vec<Finding> {
    let mut shares = BTreeMap::<usize, Vec<f64>>::new();
    if dataset.classes.len() == 2 {
        facts.iter().flat_map(|facts| &facts.marked).for_each(|&(rater, share)| {
            shares.entry(rater).or_default().push(share);
        });
    }
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let means: BTreeMap<usize, f64> = shares.iter().map(|(rater, shares)| (*rater, mean(shares))).collect();
    let (inverted, others): (Vec<_>, Vec<_>) = means.into_iter().partition(|(_, mean)| *mean > 0.5);
    if others.is_empty() {
        // `implausible_labels` warns of the dataset as a whole.
        return vec![];
    }
    let usual = 100.0 * mean(&others.iter().map(|(_, mean)| *mean).collect::<Vec<_>>());
    let warn = |(rater, mean): (usize, f64)| {
        let (name, share) = (dataset.rater_name(rater), 100.0 * mean);
        let reason = format!(
            "{name} marks {share:.0} % of all voxels, other raters {usual:.0} %: are the masks of {name} inverted?"
        );
        let advice =
            "if so, invert these files: data.invert_labels in the config inverts those of all raters";
        Finding::warning(FindingKind::ImplausibleLabels, reason, advice)
    };
    inverted.into_iter().map(warn).collect()
}

/// Fewer cases say little about raters.
const FEW_CASES: usize = 2;

/// Warns of raters who mostly marked different voxels, as different structures or instances do.
fn disjoint_raters(facts: &[CaseFacts]) -> Option<Finding> {
    let compared: Vec<bool> = facts.iter().filter_map(|facts| facts.disjoint).collect();
    let apart = compared.iter().filter(|disjoint| **disjoint).count();
    let reason = format!(
        "in {apart} of {} the masks of the raters do not overlap: do they show structures or instances, rather than opinions?",
        counted(compared.len(), "case")
    );
    let advice = "if so, put structures into folders below a rater, as in rater1/cup/case1.png, and join instances into one mask";
    (compared.len() > FEW_CASES && 2 * apart > compared.len())
        .then(|| Finding::warning(FindingKind::ImplausibleLabels, reason, advice))
}

/// Warns of channels that look like label maps next to others that do not: a network would see what it should find.
fn label_channels(dataset: &Dataset, facts: &[CaseFacts]) -> Vec<Finding> {
    let is_like = |channel: usize| {
        !facts.is_empty() && facts.iter().all(|facts| facts.like_labels.get(channel) == Some(&true))
    };
    let (like, others): (Vec<usize>, Vec<usize>) =
        (0..dataset.channels.len()).partition(|&channel| is_like(channel));
    let warn = |channel: usize| {
        let name = &dataset.channels[channel];
        let reason = format!("the channel {name:?} has a few whole numbers alone: is it a label map?");
        let advice = "if so, leave it out with data.channels in the config";
        Finding::warning(FindingKind::ImplausibleLabels, reason, advice)
    };
    if others.is_empty() { vec![] } else { like.into_iter().map(warn).collect() }
}

fn duplicates(dataset: &Dataset) -> Vec<Finding> {
    let mut counts = BTreeMap::<&str, usize>::new();
    dataset.entries.iter().for_each(|entry| *counts.entry(&entry.id).or_default() += 1);
    let twice = counts.into_iter().filter(|(_, count)| *count > 1);
    twice
        .map(|(id, count)| {
            let reason = format!("{count} cases have this id, but ids must differ");
            Finding::error(FindingKind::DuplicateId, reason, "rename or remove all but one").of_case(id)
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
            Finding::warning(FindingKind::SplitLeak, reason, advice)
        })
        .collect()
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseFacts {
    pub group: String,
    pub split: Option<Split>,
    pub shape: [usize; 3],
    /// Along w, h, d; `None` if the files have no geometry.
    pub spacing: Option<[f64; 3]>,
    pub ranges: Vec<[f32; 2]>,
    /// Voxels of each class, summed over raters.
    pub volumes: Vec<u64>,
    pub raters: usize,
    /// Number of each rater, and the share of voxels that the rater marked.
    pub marked: Vec<(usize, f64)>,
    /// How many of them marked nothing.
    pub empty: usize,
    /// Mean of 1 − IoU over all ordered pairs of raters, self pairs included, two empty maps at distance 0.
    pub diversity: f64,
    /// Whether no two raters of two classes marked the same voxel; `None` if fewer than two marked any.
    pub disjoint: Option<bool>,
    /// Whether each channel has a few whole numbers alone, like a label map.
    pub like_labels: Vec<bool>,
}

impl CaseFacts {
    /// Looks at a case whose labels are below `classes`.
    pub fn of(case: &Case, classes: usize, entry: &CaseEntry, split: Option<Split>) -> Self {
        let range = |channel: &[f32]| extremes(channel.iter().copied());
        let maps: Vec<BitPlanes> = case
            .raters
            .iter()
            .filter_map(|rater| LabelMap::new(rater.clone(), classes).ok().map(|map| BitPlanes::new(&map)))
            .collect();
        let mut volumes = vec![0u64; classes];
        for map in &maps {
            volumes.iter_mut().zip(map.volumes()).for_each(|(sum, &volume)| *sum += volume as u64);
        }
        Self {
            group: entry.group.clone(),
            split,
            shape: case.shape,
            spacing: entry.has_geometry().then_some(case.geometry.spacing),
            ranges: case.image.chunks(case.voxels().max(1)).map(range).collect(),
            volumes,
            raters: maps.len(),
            marked: maps
                .iter()
                .enumerate()
                .map(|(place, map)| {
                    let share = 1.0 - map.volume(0) as f64 / map.voxels().max(1) as f64;
                    (case.rater_number(place), share)
                })
                .collect(),
            empty: maps.iter().filter(|map| map.volume(0) == map.voxels()).count(),
            diversity: diversity(&maps),
            disjoint: are_disjoint(&maps).filter(|_| classes == 2),
            like_labels: case.image.chunks(case.voxels().max(1)).map(is_like_labels).collect(),
        }
    }
}

fn are_disjoint(maps: &[BitPlanes]) -> Option<bool> {
    let marked: Vec<&BitPlanes> = maps.iter().filter(|map| map.volume(0) < map.voxels()).collect();
    let is_apart =
        |a: &BitPlanes, b: &BitPlanes| foreground_distance(a, b).is_ok_and(|distance| distance == 1.0);
    let all = || (1..marked.len()).all(|k| marked[..k].iter().all(|other| is_apart(other, marked[k])));
    (marked.len() > 1).then(all)
}

/// Returns `true` for two to five different values, all of them whole numbers from 0.
fn is_like_labels(channel: &[f32]) -> bool {
    const MOST_VALUES: usize = 5;
    let mut values: Vec<f32> = vec![];
    for &x in channel {
        if !values.contains(&x) {
            if x < 0.0 || x.fract() != 0.0 || values.len() == MOST_VALUES {
                return false;
            }
            values.push(x);
        }
    }
    values.len() > 1
}

fn diversity(maps: &[BitPlanes]) -> f64 {
    let mut sum = 0.0;
    for (i, first) in maps.iter().enumerate() {
        sum += maps[i + 1..].iter().filter_map(|second| foreground_distance(first, second).ok()).sum::<f64>();
    }
    2.0 * sum / (maps.len() * maps.len()).max(1) as f64
}

/// Figures of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Cases that could be read.
    pub cases: usize,
    /// Patients or series.
    pub groups: usize,
    /// Sizes `[d, h, w]`, with how many cases have each; the most frequent first.
    pub sizes: Vec<([usize; 3], usize)>,
    /// Smallest and largest spacing along w, h, d, of the cases whose files say it.
    pub spacing: Option<[[f64; 2]; 3]>,
    /// The channels.
    pub channels: Vec<ChannelFigures>,
    /// The classes.
    pub classes: Vec<ClassFigures>,
    /// Fewest and most raters of a case.
    pub raters: [usize; 2],
    /// The raters of all cases.
    pub agreement: Agreement,
    /// The same for each part of the dataset, if it has parts.
    pub parts: Vec<PartFigures>,
}

/// Figures of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelFigures {
    /// The name of the channel.
    pub name: String,
    /// The smallest and the largest value in any case.
    pub range: [f32; 2],
}

/// Figures of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassFigures {
    /// The name of the class.
    pub name: String,
    /// Its share of all voxels of all raters.
    pub share: f64,
    /// Cases in which a rater marked it.
    pub cases: usize,
}

/// How far raters agree.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Agreement {
    /// The share of raters' maps that are empty.
    pub empty_fraction: f64,
    /// Mean over cases of the mean of 1 − IoU over all ordered pairs of raters, self pairs included.
    pub expert_diversity: f64,
}

/// Figures of a part of the dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartFigures {
    /// The part.
    pub split: Split,
    /// The number of cases.
    pub cases: usize,
    /// Patients or series.
    pub groups: usize,
    /// The raters of its cases.
    pub agreement: Agreement,
}

impl Agreement {
    fn of<'a>(facts: impl Iterator<Item = &'a CaseFacts>) -> Self {
        let (mut cases, mut maps, mut empty, mut diversity) = (0usize, 0usize, 0usize, 0.0);
        for fact in facts {
            (cases, maps, empty) = (cases + 1, maps + fact.raters, empty + fact.empty);
            diversity += fact.diversity;
        }
        let mean = |sum: f64, count: usize| sum / count.max(1) as f64;
        Self { empty_fraction: mean(empty as f64, maps), expert_diversity: mean(diversity, cases) }
    }
}

impl Statistics {
    /// Sums up the facts of all cases.
    fn of(facts: &[CaseFacts], channels: &[String], classes: &[String]) -> Self {
        let mut sizes = BTreeMap::<[usize; 3], usize>::new();
        facts.iter().for_each(|fact| *sizes.entry(fact.shape).or_default() += 1);
        let mut sizes: Vec<_> = sizes.into_iter().collect();
        sizes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let voxels: u64 = facts.iter().flat_map(|fact| &fact.volumes).sum();
        let class = |(c, name): (usize, &String)| {
            let of_case = |fact: &CaseFacts| fact.volumes.get(c).copied().unwrap_or(0);
            ClassFigures {
                name: name.clone(),
                share: facts.iter().map(of_case).sum::<u64>() as f64 / voxels.max(1) as f64,
                cases: facts.iter().filter(|fact| of_case(fact) > 0).count(),
            }
        };
        let channel = |(c, name): (usize, &String)| {
            let range = extremes(facts.iter().filter_map(|fact| fact.ranges.get(c)).flatten().copied());
            ChannelFigures { name: name.clone(), range }
        };
        let raters = || facts.iter().map(|fact| fact.raters);
        Self {
            cases: facts.len(),
            groups: groups(facts.iter()),
            sizes,
            spacing: spacing(facts),
            channels: channels.iter().enumerate().map(channel).collect(),
            classes: classes.iter().enumerate().map(class).collect(),
            raters: [raters().min().unwrap_or(0), raters().max().unwrap_or(0)],
            agreement: Agreement::of(facts.iter()),
            parts: Split::ALL.iter().filter_map(|&split| part(facts, split)).collect(),
        }
    }
}

fn groups<'a>(facts: impl Iterator<Item = &'a CaseFacts>) -> usize {
    facts.map(|fact| fact.group.as_str()).collect::<BTreeSet<_>>().len()
}

fn spacing(facts: &[CaseFacts]) -> Option<[[f64; 2]; 3]> {
    let mut all = facts.iter().filter_map(|fact| fact.spacing);
    let first = all.next()?.map(|x| [x, x]);
    Some(all.fold(first, |limits, spacing| {
        std::array::from_fn(|axis| [limits[axis][0].min(spacing[axis]), limits[axis][1].max(spacing[axis])])
    }))
}

fn part(facts: &[CaseFacts], split: Split) -> Option<PartFigures> {
    let of_part = || facts.iter().filter(move |fact| fact.split == Some(split));
    let cases = of_part().count();
    (cases > 0).then(|| PartFigures {
        split,
        cases,
        groups: groups(of_part()),
        agreement: Agreement::of(of_part()),
    })
}

/// Findings of one kind that are printed; the rest is counted, and JSON has all.
const SHOWN: usize = 10;

/// More findings than this are printed in one line if they say the same.
const FEW: usize = 3;

impl fmt::Display for CheckReport {
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
    // The elements of a picture are pixels, and lengths of files that do not say how large these are count them.
    let elements = if flat { "pixels" } else { "voxels" };
    if statistics.spacing.is_none() && statistics.cases > 0 {
        writeln!(f, "  spacing    not in the files: lengths are in {elements}")?;
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
    let channels = statistics.channels.iter().filter(|_| statistics.cases > 0);
    for (number, channel) in channels.enumerate() {
        let head = if number == 0 { "channels" } else { "" };
        let [low, high] = channel.range.map(|x| rounded(f64::from(x)));
        writeln!(f, "  {head:<10} {:<16} {low} to {high}", channel.name)?;
    }
    for (number, class) in statistics.classes.iter().enumerate() {
        let head = if number == 0 { "classes" } else { "" };
        writeln!(
            f,
            "  {head:<10} {:<16} {:.2} % of {elements}, in {}",
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

/// Four digits that count, but never fewer than those of the whole number, and no trailing zeros.
fn rounded(x: f64) -> f64 {
    if x.abs() >= 1000.0 { x.round() } else { format!("{x:.3e}").parse().unwrap_or(x) }
}

fn findings(f: &mut fmt::Formatter<'_>, report: &CheckReport) -> fmt::Result {
    let mut kinds = BTreeMap::<(Severity, FindingKind), Vec<&Finding>>::new();
    for finding in &report.findings {
        kinds.entry((finding.severity, finding.kind)).or_default().push(finding);
    }
    for ((severity, _), found) in kinds {
        writeln!(f)?;
        let (lines, rest) = of_many_cases(&found);
        lines.iter().try_for_each(|line| writeln!(f, "{severity:<8} {line}"))?;
        one_by_one(f, severity, &rest, report)?;
        if let Some(advice) = found.first().map(|finding| &finding.advice).filter(|advice| !advice.is_empty())
        {
            writeln!(f, "{:<8} {advice}", "→")?;
        }
    }
    Ok(())
}

/// Returns a line for each reason that many cases share, and all other findings.
fn of_many_cases<'a>(found: &[&'a Finding]) -> (Vec<String>, Vec<&'a Finding>) {
    let mut shared = BTreeMap::<&str, Vec<&str>>::new();
    for finding in found.iter().filter(|finding| finding.file.is_none()) {
        shared.entry(&finding.reason).or_default().extend(finding.case.as_deref());
    }
    shared.retain(|_, cases| cases.len() > FEW);
    let is_shared = |finding: &&Finding| {
        finding.file.is_none() && finding.case.is_some() && shared.contains_key(finding.reason.as_str())
    };
    let (many, rest): (Vec<&Finding>, Vec<&Finding>) = found.iter().partition(|finding| is_shared(finding));
    let mut lines = vec![];
    for Finding { reason, .. } in many {
        let Some(cases) = shared.remove(reason.as_str()) else { continue };
        let more = if cases.len() > SHOWN { ", …" } else { "" };
        let named = cases[..cases.len().min(SHOWN)].join(", ");
        lines.push(format!("{}: {reason}: {named}{more}", counted(cases.len(), "case")));
    }
    (lines, rest)
}

/// A line per finding.
fn one_by_one(
    f: &mut fmt::Formatter<'_>,
    severity: Severity,
    found: &[&Finding],
    report: &CheckReport,
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
    use crate::dataset::CaseFiles;

    fn entry() -> CaseEntry {
        let files = CaseFiles { images: vec![Some("a.nii".into())], ..CaseFiles::default() };
        CaseEntry { group: "p".into(), ..CaseEntry::of_files("a".into(), None, files) }
    }

    fn case(raters: &[&[u8]]) -> Case {
        Case {
            id: "a".into(),
            channels: 1,
            shape: [1, 1, 4],
            image: vec![0.0, 1.0, -2.0, 3.0],
            raters: raters.iter().map(|rater| rater.to_vec()).collect(),
            ..Case::default()
        }
    }

    #[test]
    fn agreement_by_hand() {
        // Distances: two empty maps 0; an empty and another 1; {0, 1} and {1} ½.
        let case = case(&[&[0; 4], &[0; 4], &[1, 1, 0, 0], &[0, 1, 0, 0]]);
        let facts = CaseFacts::of(&case, 2, &entry(), Some(Split::Train));
        assert_eq!((facts.empty, facts.raters, facts.volumes.as_slice()), (2, 4, &[13, 3][..]));
        assert_eq!(facts.diversity, 2.0 * 4.5 / 16.0);
        assert_eq!(facts.ranges, [[-2.0, 3.0]]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let statistics = Statistics::of(&[facts.clone(), facts], &names(&["ct"]), &names(&["no", "yes"]));
        assert_eq!(statistics.agreement, Agreement { empty_fraction: 0.5, expert_diversity: 0.5625 });
        assert_eq!((statistics.cases, statistics.groups, statistics.parts.len()), (2, 1, 1));
        assert_eq!((statistics.classes[1].share, statistics.classes[1].cases), (3.0 / 16.0, 2));
    }

    #[test]
    fn one_rater_and_no_case_are_no_trouble() {
        assert_eq!(CaseFacts::of(&case(&[&[1; 4]]), 2, &entry(), None).diversity, 0.0);
        let nothing = Statistics::of(&[], &[], &[]);
        assert_eq!((nothing.cases, nothing.agreement), (0, Agreement::default()));
    }

    #[test]
    fn whole_numbers_are_shown_whole() {
        let values = [65535.0, -1024.0, 12345.678, 0.123_456, 255.0, 3.5];
        assert_eq!(values.map(rounded), [65535.0, -1024.0, 12346.0, 0.1235, 255.0, 3.5]);
    }

    #[test]
    fn what_is_true_of_many_cases_takes_one_line() {
        let empty = |case: &str| Finding::note(FindingKind::EmptyLabels, "all maps are empty").of_case(case);
        let mut found: Vec<Finding> = ["a", "b", "c"].map(empty).to_vec();
        let lines = |found: &[Finding]| {
            let (lines, rest) = of_many_cases(&found.iter().collect::<Vec<_>>());
            (lines, rest.len())
        };
        assert_eq!(lines(&found), (vec![], 3), "three lines are not too many");
        found.push(empty("d"));
        assert_eq!(lines(&found), (vec!["4 cases: all maps are empty: a, b, c, d".to_owned()], 0));
        found.extend((0..SHOWN).map(|n| empty(&n.to_string())));
        found[1].reason = "one map is empty".to_owned();
        found.push(empty("e").in_file("e.png"));
        let (line, rest) = lines(&found);
        assert!(line.len() == 1 && line[0].starts_with("13 cases") && line[0].ends_with("6, …"), "{line:?}");
        assert_eq!(rest, 2, "another reason and a file have lines of their own");
    }
}
