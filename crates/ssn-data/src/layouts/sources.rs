//! Folders of raters from several sources: `Experts/anna`, `Experts/ben`, `Crowd/worker-1`.
//!
//! The raters of one source are used, `data.annotations` of the config or else the source with the most files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::dataset::{AnnotationSource, Finding, FindingKind};
use crate::layouts::Draft;
use crate::layouts::rater_folder::RaterFolder;
use crate::resolve::files::stem;
use crate::resolve::{CaseNames, Hint, NameMatch, words};
use crate::text::{counted, listed};

/// Name of the source of raters whose folders are next to those of other sources.
const HERE: &str = ".";

/// Returns `true` if a folder is named after several persons.
pub(super) fn is_group(name: &str) -> bool {
    let words = words(name);
    Hint::Group.fits_one(&words) || Hint::Person.fits_plural(&words)
}

/// Replaces folders of sources by the folders of their raters.
///
/// `Experts/anna/case1.png` and `Experts/ben/case1.png` are of two raters. `anna/cup/case1.png` and
/// `anna/disc/case1.png` are two structures: other raters have folders of the same names.
pub(super) fn split(folders: Vec<RaterFolder>, names: &CaseNames) -> Vec<RaterFolder> {
    let deep: Vec<&RaterFolder> = folders.iter().filter(|folder| folder.is_deep()).collect();
    if !are_sources(&deep, names) {
        return folders;
    }
    let mut split = vec![];
    for folder in folders {
        if !folder.is_deep() {
            split.push(folder);
            continue;
        }
        let mut raters = BTreeMap::<String, RaterFolder>::new();
        for (rater, path) in folder.files {
            let Some(rater) = rater else { continue };
            let empty =
                || RaterFolder { source: Some(folder.name.clone()), ..RaterFolder::empty(rater.clone()) };
            raters.entry(rater.clone()).or_insert_with(empty).files.push((None, path));
        }
        split.extend(raters.into_values());
    }
    split
}

/// Returns `true` if the folders in some folders are of raters rather than of structures.
fn are_sources(deep: &[&RaterFolder], names: &CaseNames) -> bool {
    let inner = |folder: &RaterFolder| -> BTreeSet<String> {
        folder.files.iter().filter_map(|(inner, _)| inner.clone()).collect()
    };
    let is_person = |name: &str| Hint::Person.fits_one(&words(name));
    if deep.is_empty() || deep.iter().any(|folder| is_person(&folder.name)) {
        return false;
    }
    if deep.iter().all(|folder| inner(folder).iter().all(|name| is_person(name))) {
        return true;
    }
    let is_named = deep.iter().any(|folder| is_group(&folder.name));
    let spoken = |folder: &&RaterFolder| -> BTreeSet<String> {
        let words = inner(folder).iter().flat_map(|name| words(name)).collect::<Vec<_>>();
        words
            .into_iter()
            .filter(|word| !word.starts_with(char::is_numeric) && !Hint::Kind.fits(word))
            .collect()
    };
    let spoken: Vec<_> = deep.iter().map(spoken).collect();
    let is_shared = (1..spoken.len()).any(|k| spoken[..k].iter().any(|other| !other.is_disjoint(&spoken[k])));
    let have_same = || deep.iter().any(|folder| have_same_cases(folder, names));
    !is_shared && (is_named || deep.len() > 1 && have_same())
}

/// Returns `true` if two folders in a folder have files of the same cases, at least half of those of the smaller one.
fn have_same_cases(folder: &RaterFolder, names: &CaseNames) -> bool {
    let mut cases = BTreeMap::<&String, BTreeSet<&str>>::new();
    for (inner, path) in &folder.files {
        if let Some(inner) = inner
            && let NameMatch::Case(id, _) = names.find_of_rater(&stem(path), &words(inner))
        {
            cases.entry(inner).or_default().insert(id);
        }
    }
    let cases: Vec<_> = cases.into_values().collect();
    let is_same =
        |a: &BTreeSet<&str>, b: &BTreeSet<&str>| 2 * a.intersection(b).count() >= a.len().min(b.len());
    (1..cases.len()).any(|k| cases[..k].iter().any(|other| is_same(other, &cases[k])))
}

/// Returns the source of a folder of a rater.
pub(super) fn of_folder(folder: &RaterFolder) -> String {
    folder.source.clone().unwrap_or_else(|| HERE.to_owned())
}

/// Returns the draft with the most files, with the drafts of other sources in it. Cases without files from a source are
/// left to prediction.
pub(super) fn largest_first(drafts: BTreeMap<String, Draft>) -> Option<Draft> {
    if drafts.len() < 2 {
        return drafts.into_values().next();
    }
    let mut drafts: Vec<Draft> = drafts.into_iter().map(|(name, draft)| of_source(name, draft)).collect();
    let files = |draft: &Draft| draft.source.as_ref().map_or(0, |source| source.files.len());
    drafts.sort_by_key(|draft| usize::MAX - files(draft));
    let first = drafts.remove(0);
    Some(Draft { others: drafts, ..first })
}

fn of_source(name: String, mut draft: Draft) -> Draft {
    let (marked, unmarked) =
        std::mem::take(&mut draft.entries).into_iter().partition(|entry| !entry.files.raters.is_empty());
    draft.entries = marked;
    draft.unlabeled.extend(unmarked);
    let raters = draft.entries.iter().flat_map(|entry| &entry.files.raters);
    let files: Vec<PathBuf> = raters.flat_map(|rater| rater.files()).cloned().collect();
    let raters = draft.rater_names.clone();
    Draft { source: Some(AnnotationSource { name, raters, files }), ..draft }
}

impl Draft {
    /// Returns the draft with the raters of a source, if there is one with this name.
    pub(super) fn with_source(mut self, wanted: Option<&str>) -> Self {
        let is_wanted =
            |draft: &Draft| draft.source.as_ref().is_some_and(|source| Some(&*source.name) == wanted);
        let Some(place) = self.others.iter().position(is_wanted) else { return self };
        let mut others = std::mem::take(&mut self.others);
        let chosen = others.remove(place);
        others.insert(0, self);
        Self { others, ..chosen }
    }

    /// Returns the sources of annotations if there are several, the chosen one first, and notes the choice.
    pub(super) fn take_sources(&mut self) -> Vec<AnnotationSource> {
        let others = std::mem::take(&mut self.others).into_iter().filter_map(|draft| draft.source);
        let sources: Vec<_> = self.source.take().into_iter().chain(others).collect();
        if let [chosen, others @ ..] = &sources[..] {
            let others: Vec<String> = others.iter().map(AnnotationSource::describe).collect();
            let without = match self.unlabeled.len() {
                0 => String::new(),
                count => format!(
                    "; {} without labels from there are for prediction alone",
                    counted(count, "image")
                ),
            };
            let reason = format!(
                "annotations are those of {}; not used: {}{without} (data.annotations chooses)",
                chosen.describe(),
                listed(&others, 8)
            );
            self.findings.push(Finding::note(FindingKind::Layout, reason));
        }
        sources
    }
}
