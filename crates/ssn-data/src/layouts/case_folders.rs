//! A folder per case with files of common names, such as BraTS: channels, labels and perhaps a brain mask,
//! recognized by their names, and labels by their values if no name says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dataset::{CaseEntry, CaseFiles, Finding, FindingKind, Layout, MOST_CLASSES, RaterFiles, Split};
use crate::error::Result;
use crate::layouts::files::{entries, images, name, natural_order, numbered_suffix, stem, subfolders};
use crate::layouts::{Draft, labels_of, parts, unique};

/// A case's folder: its files by what their names have besides the name of the case.
struct Folder {
    id: String,
    split: Option<Split>,
    files: BTreeMap<String, PathBuf>,
}

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let (mut folders, mut taken) = (vec![], BTreeSet::new());
    for (split, part) in parts(root)? {
        for (case, above) in cases(&part)? {
            let files: BTreeMap<String, PathBuf> =
                images(&case)?.into_iter().map(|path| (key(&name(&case), &stem(&path)), path)).collect();
            if files.len() >= 2 {
                let id = match above {
                    Some(above) if taken.contains(&name(&case)) => format!("{above}/{}", name(&case)),
                    _ => name(&case),
                };
                folders.push(Folder { id: unique(split, id, &mut taken), split, files });
            }
        }
    }
    let Some(roles) = roles(&folders) else { return Ok(None) };
    let channels: Vec<String> = with_role(&roles, Role::Channel);
    let raters = with_role(&roles, Role::Labels);
    let masks = with_role(&roles, Role::Mask);
    if channels.is_empty() || raters.is_empty() {
        return Ok(None);
    }
    let entries = folders.into_iter().map(|mut folder| {
        let images = channels.iter().map(|key| folder.files.remove(key)).collect();
        let rater = |(number, key)| folder.files.remove(key).map(|path| RaterFiles::new(number, path));
        let raters = raters.iter().enumerate().filter_map(rater).collect();
        let mask = masks.iter().find_map(|key| folder.files.remove(key));
        CaseEntry::of_files(folder.id, folder.split, CaseFiles { images, raters, mask })
    });
    let findings = different_structures(&raters).into_iter().collect();
    let draft = Draft::new(Layout::CaseFolders, entries.collect());
    let rater_names = rater_names(&raters);
    Ok(Some(Draft { channels: Some(short_names(&channels)), findings, rater_names, ..draft }))
}

/// The folders of cases, with the folder above where there is one: BraTS has `HGG/<case>` and `LGG/<case>`.
fn cases(part: &Path) -> Result<Vec<(PathBuf, Option<String>)>> {
    let mut found = vec![];
    for folder in subfolders(part)? {
        // Folders of parts are looked through by themselves.
        if Split::from_folder(&name(&folder)).is_some() {
            continue;
        }
        let inside = entries(&folder)?;
        if !inside.is_empty() && inside.iter().all(|path| path.is_dir()) {
            found.extend(inside.into_iter().map(|case| (case, Some(name(&folder)))));
        } else {
            found.push((folder, None));
        }
    }
    Ok(found)
}

/// What the names of several label files have behind the same words, as `alice` in `seg_alice`, unless it is a number.
fn rater_names(keys: &[String]) -> Vec<String> {
    let split: Option<Vec<_>> = keys.iter().map(|key| key.rsplit_once(['_', '-'])).collect();
    let split = split.filter(|split| split.len() > 1 && split.iter().all(|(words, _)| *words == split[0].0));
    let names: Vec<String> = split.unwrap_or_default().iter().map(|(_, name)| (*name).to_owned()).collect();
    if names.iter().any(|name| name.ends_with(|c: char| c.is_ascii_digit())) { vec![] } else { names }
}

/// Label files whose names differ by more than the number of a rater are probably not of raters.
fn different_structures(raters: &[String]) -> Option<Finding> {
    let plain: BTreeSet<String> = raters.iter().map(|key| without_number(key)).collect();
    (plain.len() > 1).then(|| {
        let reason =
            format!("the label files {} are taken for those of {} raters", raters.join(", "), raters.len());
        let advice = "if they show different structures, merge them into one label map with a label for each";
        Finding::warning(FindingKind::Layout, reason, advice)
    })
}

/// The name of a file without the name of its case.
fn key(case: &str, stem: &str) -> String {
    let rest = stem.strip_prefix(case).and_then(|rest| rest.strip_prefix(['_', '-', '.']));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(stem).to_owned()
}

/// The role of every name that at least half of the cases have; `None` without cases or common names.
fn roles(folders: &[Folder]) -> Option<BTreeMap<String, Role>> {
    let mut counts = BTreeMap::<&String, usize>::new();
    folders
        .iter()
        .flat_map(|folder| folder.files.keys())
        .for_each(|key| *counts.entry(key).or_default() += 1);
    counts.retain(|_, count| 2 * *count >= folders.len());
    let mut roles: BTreeMap<String, Role> =
        counts.keys().map(|key| ((*key).clone(), Role::of(key))).collect();
    if roles.is_empty() {
        return None;
    }
    // A file named just `mask` holds the labels only if no other file does.
    let is_mask = |key: &str| key.eq_ignore_ascii_case("mask");
    if roles.iter().any(|(key, role)| *role == Role::Labels && !is_mask(key)) {
        roles.iter_mut().filter(|(key, _)| is_mask(key)).for_each(|(_, role)| *role = Role::Mask);
    }
    if !roles.values().any(|role| *role == Role::Labels) {
        // By names alone there are no labels: the only file with few integer values must be it.
        let first = folders.iter().find(|folder| roles.keys().all(|key| folder.files.contains_key(key)))?;
        let by_values: Vec<String> = with_role(&roles, Role::Channel)
            .into_iter()
            .filter(|key| looks_like_labels(&first.files[key]))
            .collect();
        if let [labels] = by_values.as_slice() {
            roles.insert(labels.clone(), Role::Labels);
        }
    }
    Some(roles)
}

/// The names of one role, in natural order.
fn with_role(roles: &BTreeMap<String, Role>, wanted: Role) -> Vec<String> {
    let mut keys: Vec<String> =
        roles.iter().filter(|(_, role)| **role == wanted).map(|(key, _)| key.clone()).collect();
    keys.sort_by(|a, b| natural_order(a, b));
    keys
}

fn looks_like_labels(path: &Path) -> bool {
    labels_of(path).is_some_and(|labels| labels.into_iter().collect::<BTreeSet<u8>>().len() <= MOST_CLASSES)
}

/// Names without an ending that all of them share: `T1c_normalized` and `Flair_normalized` are `T1c` and `Flair`.
fn short_names(names: &[String]) -> Vec<String> {
    let ending = names.first().and_then(|name| name.find('_').map(|at| &name[at..]));
    let shared = ending.filter(|ending| names.len() > 1 && names.iter().all(|name| name.ends_with(ending)));
    names.iter().map(|name| shared.and_then(|e| name.strip_suffix(e)).unwrap_or(name).to_owned()).collect()
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Channel,
    /// The labels of a rater.
    Labels,
    /// The region of interest.
    Mask,
}

/// Parts of names of regions of interest.
const MASKS: [&str; 5] = ["brainmask", "brain_mask", "sampling_mask", "roi", "bodymask"];
/// Parts of names of label maps.
const LABELS: [&str; 9] =
    ["seg", "label", "lesion", "tumor", "tumour", "truth", "annotation", "multiclass", "consensus"];
/// Whole words that are label maps.
const LABEL_WORDS: [&str; 5] = ["gt", "mask", "ot", "manual", "rater"];

/// A name in lower case without the number of a rater: `Seg_2`, `seg-r1` and `seg3` are `seg`.
fn without_number(name: &str) -> String {
    let lower = name.to_lowercase();
    without_suffix(&lower)
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches(['_', '-'])
        .to_owned()
}

fn without_suffix(lower: &str) -> &str {
    numbered_suffix(lower, &["rater", "r"]).map_or(lower, |(before, _)| before)
}

impl Role {
    /// The role that a name says, the name of the case taken away.
    pub fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let words: Vec<&str> = without_suffix(&lower).split(|c: char| !c.is_alphanumeric()).collect();
        if MASKS.iter().any(|part| if *part == "roi" { words.contains(part) } else { lower.contains(part) }) {
            return Self::Mask;
        }
        let word = |word: &&str| LABEL_WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
        if LABELS.iter().any(|part| lower.contains(part)) || words.iter().any(word) {
            return Self::Labels;
        }
        Self::Channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_shortened() {
        assert_eq!(key("Brats17_X_1", "Brats17_X_1_t1ce"), "t1ce");
        assert_eq!(key("b", "brain_mask"), "brain_mask");
        assert_eq!(key("a", "a"), "a");
        assert_eq!(short_names(&["T1c_norm".into(), "Flair_norm".into()]), ["T1c", "Flair"]);
        assert_eq!(short_names(&["t1".into(), "t2_x".into()]), ["t1", "t2_x"]);
    }

    #[test]
    fn numbers_of_raters_are_taken_off() {
        for name in ["seg", "seg_2", "Seg-r1", "seg3", "seg_rater4"] {
            assert_eq!(without_number(name), "seg", "{name}");
        }
        assert_ne!(without_number("liver_seg"), without_number("tumor_seg"));
    }

    #[test]
    fn names_in_use_are_understood() {
        for name in ["flair", "t1ce", "T1c_subtrMeanDivStd", "image", "adc", "heroic"] {
            assert_eq!(Role::of(name), Role::Channel, "{name}");
        }
        for name in ["seg", "seg_2", "OTMultiClass", "mask", "mask_r1", "gt2", "label", "rater3"] {
            assert_eq!(Role::of(name), Role::Labels, "{name}");
        }
        for name in ["brainmask", "roi", "brain_mask", "sampling_mask"] {
            assert_eq!(Role::of(name), Role::Mask, "{name}");
        }
    }
}
