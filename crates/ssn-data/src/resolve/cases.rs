//! Cases that a layout found, and the numbers and names of their raters.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::dataset::{CaseEntry, CaseFiles, Finding, FindingKind, RaterFiles, RaterMaps, Split};
use crate::resolve::{Hint, RaterKey, words};
use crate::text::listed;

/// Case before its raters have numbers.
#[derive(Debug, Clone, Default)]
pub struct FoundCase {
    pub id: String,
    /// Patient or series; `None` for a group of its own.
    pub group: Option<String>,
    pub split: Option<Split>,
    pub images: Vec<Option<PathBuf>>,
    pub raters: Vec<(RaterKey, RaterMaps)>,
    pub mask: Option<PathBuf>,
}

impl FoundCase {
    /// Adds a label map of a rater.
    pub fn add_labels(&mut self, rater: RaterKey, path: PathBuf) {
        self.raters.push((rater, RaterMaps::Labels(path)));
    }
}

/// Raters of a dataset: the number of a rater is the place among all.
pub struct Raters(Vec<RaterKey>);

impl Raters {
    /// Numbers the raters of all cases.
    pub fn number(cases: Vec<FoundCase>) -> (Vec<CaseEntry>, Self) {
        let keys: BTreeSet<RaterKey> =
            cases.iter().flat_map(|case| &case.raters).map(|(key, _)| key.clone()).collect();
        let raters = Self(keys.into_iter().collect());
        let entry = |case: FoundCase| {
            let number = |key: &RaterKey| raters.0.binary_search(key).unwrap_or_default();
            let own = case.raters.into_iter().map(|(key, maps)| RaterFiles { number: number(&key), maps });
            let mut own: Vec<RaterFiles> = own.collect();
            own.sort_by_key(|rater| rater.number);
            let files = CaseFiles { images: case.images, raters: own, mask: case.mask };
            let entry = CaseEntry::of_files(case.id, case.split, files);
            CaseEntry { group: case.group.unwrap_or_else(|| entry.group.clone()), ..entry }
        };
        (cases.into_iter().map(entry).collect(), raters)
    }

    /// Returns the names of all raters in the order of their numbers.
    pub fn names(&self) -> Vec<String> {
        let name = |key: &RaterKey| match key {
            RaterKey::Number(number) => format!("rater {number}"),
            RaterKey::Name(name) => name.clone(),
        };
        self.0.iter().map(name).collect()
    }

    /// Like [`Self::names`], but returns no names for one rater, or if all are numbers.
    pub fn telling_names(&self) -> Vec<String> {
        if self.0.len() > 1 && !self.0.iter().all(RaterKey::is_number) { self.names() } else { vec![] }
    }
}

/// Returns the patient or series of the cases in a folder: its name if that has a number, unlike names of kinds of images
/// such as `benign`, and is not of a `batch`, `part`, `site` or alike.
pub fn patient(folder: &str) -> Option<String> {
    let is_share = Hint::Share.fits_one(&words(folder));
    (folder.chars().any(char::is_numeric) && !is_share).then(|| folder.to_owned())
}

/// Returns a note about folders of kinds, whose cases may be in different parts of a split.
pub fn kinds_note(folders: impl Iterator<Item = String>) -> Option<Finding> {
    let kinds: BTreeSet<String> = folders.filter(|folder| patient(folder).is_none()).collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    let reason = format!(
        "the folders {} are taken for kinds of images, not for patients: their cases may be in any part of a split",
        listed(&kinds, 3)
    );
    (!kinds.is_empty()).then(|| Finding::note(FindingKind::Layout, reason))
}

/// Returns an id that no other case has, if the names of the folders above it allow one.
pub fn unique(split: Option<Split>, above: Option<&str>, id: String, taken: &mut BTreeSet<String>) -> String {
    let folders = [above, split.map(Split::name)].into_iter().flatten();
    let id = folders.fold(id, |id, folder| if taken.contains(&id) { format!("{folder}/{id}") } else { id });
    taken.insert(id.clone());
    id
}

/// Returns the first of several ways to name cases that gives each case another name.
///
/// # Errors
/// A name that several cases have in the last way.
pub fn first_unique(namings: impl IntoIterator<Item = Vec<String>>) -> Result<Vec<String>, String> {
    let mut twice = String::new();
    for ids in namings {
        let mut taken = BTreeSet::new();
        match ids.iter().find(|id| !taken.insert(*id)) {
            None => return Ok(ids),
            Some(id) => twice.clone_from(id),
        }
    }
    Err(twice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    fn case(raters: &[&str]) -> FoundCase {
        let mut case = FoundCase::default();
        raters.iter().for_each(|rater| case.add_labels(RaterKey::of(rater), PathBuf::from(rater)));
        case
    }

    #[test]
    fn raters_have_the_same_number_in_all_cases() {
        let (entries, raters) = Raters::number(vec![case(&["Bob10", "r2"]), case(&["bob9", "bob10"])]);
        assert_eq!(raters.names(), ["rater 2", "bob9", "bob10"]);
        assert_eq!(entries.iter().map(CaseEntry::raters).collect::<Vec<_>>(), [[0, 2], [1, 2]]);
        assert_eq!(raters.telling_names(), raters.names());
        for unnamed in [&["r1", "seg3"][..], &["alice"]] {
            assert_eq!(Raters::number(vec![case(unnamed)]).1.telling_names(), Vec::<String>::new());
        }
    }

    #[test]
    fn ids_take_folders_until_they_are_unique() {
        let mut taken = BTreeSet::new();
        let mut add = |split, above| unique(split, above, "a".to_owned(), &mut taken);
        assert_eq!(add(None, Some("HGG")), "a");
        assert_eq!(add(Some(Split::Test), None), "test/a");
        assert_eq!(add(None, Some("LGG")), "LGG/a");
        assert_eq!(add(Some(Split::Train), Some("LGG")), "train/LGG/a");
        assert_eq!(first_unique([texts(&["a", "a"]), texts(&["b", "c"])]), Ok(texts(&["b", "c"])));
        assert_eq!(first_unique([texts(&["a", "a"])]), Err("a".to_owned()));
    }
}
