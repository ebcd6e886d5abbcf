//! A folder per case with files of common names, such as BraTS: channels, labels and perhaps a brain mask,
//! recognized by their names, and labels by their values if no name says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::dataset::{Finding, FindingKind, Layout, MOST_CLASSES, Split};
use crate::layouts::Draft;
use crate::resolve::files::{name, natural_order, stem};
use crate::resolve::{
    BEFORE_RATER, BEHIND_CASE, FoundCase, Hint, RaterKey, Role, Tree, cuts, numbered, unique, words,
};

/// Key of a file with the name of its folder.
const IMAGE: &str = "image";

/// Files of a case by their names without the case.
type Files = BTreeMap<String, PathBuf>;

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let (mut folders, mut taken) = (vec![], BTreeSet::new());
    for (split, part) in tree.parts(root)? {
        for (case, above) in cases(tree, &part)? {
            let images = tree.images(&case)?.into_iter();
            let folder = name(&case);
            // `case1/case1.png` is named after its folder alone.
            let named = |key: String| if key == folder { IMAGE.to_owned() } else { key };
            let files: Files = images.map(|path| (named(key(&folder, &stem(&path))), path)).collect();
            if files.len() >= 2 {
                let id = unique(split, above.as_deref(), name(&case), &mut taken);
                folders.push((FoundCase { id, split, ..FoundCase::default() }, files));
            }
        }
    }
    let Some(roles) = roles(tree, &folders) else { return Ok(None) };
    let [channels, labels, masks] =
        [Role::Channel, Role::Labels, Role::Mask].map(|role| with_role(&roles, role));
    if channels.is_empty() || labels.is_empty() {
        return Ok(None);
    }
    let found = folders.into_iter().map(|(mut case, mut files)| {
        case.images = channels.iter().map(|key| files.remove(key)).collect();
        let own = labels.iter().filter_map(|key| Some((RaterKey::Name(key.clone()), files.remove(key)?)));
        own.collect::<Vec<_>>().into_iter().for_each(|(rater, path)| case.add_labels(rater, path));
        case.mask = masks.iter().find_map(|key| files.remove(key));
        case
    });
    let draft = Draft::of_cases(Layout::CaseFolders, found.collect());
    let findings = different_structures(&labels).into_iter().collect();
    let rater_names = rater_names(&labels);
    Ok(Some(Draft { channels: Some(short_names(&channels)), findings, rater_names, ..draft }))
}

/// Returns the folders of cases, with the folder above if there is one: BraTS has `HGG/<case>` and `LGG/<case>`.
fn cases(tree: &Tree<'_>, part: &Path) -> Result<Vec<(PathBuf, Option<String>)>> {
    let mut found = vec![];
    // Folders of parts are looked through by themselves.
    let folders =
        tree.folders(part)?.into_iter().filter(|folder| Split::from_folder(&name(folder)).is_none());
    for folder in folders {
        match tree.has_only_folders(&folder)? {
            true => found.extend(tree.folders(&folder)?.into_iter().map(|case| (case, Some(name(&folder))))),
            false => found.push((folder, None)),
        }
    }
    Ok(found)
}

/// Returns the names behind the words that several label files share, as `alice` in `seg_alice`, unless they are
/// numbers.
fn rater_names(keys: &[String]) -> Vec<String> {
    let split: Option<Vec<_>> = keys.iter().map(|key| cuts(key, BEFORE_RATER).next()).collect();
    let split = split.filter(|split| split.len() > 1 && split.iter().all(|(words, _)| *words == split[0].0));
    let names: Vec<String> = split.unwrap_or_default().iter().map(|(_, name)| (*name).to_owned()).collect();
    if names.iter().any(|name| name.ends_with(|c: char| c.is_ascii_digit())) { vec![] } else { names }
}

/// Returns a warning if the names of label files differ by more than the number of a rater: the files are probably
/// not of raters.
fn different_structures(raters: &[String]) -> Option<Finding> {
    let plain: BTreeSet<String> = raters.iter().map(|key| without_number(key)).collect();
    (plain.len() > 1).then(|| {
        let reason =
            format!("the label files {} are taken for those of {} raters", raters.join(", "), raters.len());
        let advice = "if they show different structures, merge them into one label map with a label for each";
        Finding::warning(FindingKind::Layout, reason, advice)
    })
}

/// Returns the name of a file without the name of its case.
fn key(case: &str, stem: &str) -> String {
    let rest = cuts(stem, BEHIND_CASE).find(|(before, rest)| *before == case && !rest.is_empty());
    rest.map_or(stem, |(_, rest)| rest).to_owned()
}

/// Returns a name in lower case without the number of a rater: `seg` for `Seg_2`, `seg-r1` and `seg3`.
fn without_number(name: &str) -> String {
    let lower = name.to_lowercase();
    let plain = numbered(&lower, Hint::MapRater).map_or(lower.as_str(), |(before, _)| before);
    plain.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(BEFORE_RATER).to_owned()
}

/// Returns the role of each name that at least half of the cases have; `None` without cases or common names.
fn roles(tree: &Tree<'_>, folders: &[(FoundCase, Files)]) -> Option<BTreeMap<String, Role>> {
    let mut counts = BTreeMap::<&String, usize>::new();
    folders.iter().flat_map(|(_, files)| files.keys()).for_each(|key| *counts.entry(key).or_default() += 1);
    counts.retain(|_, count| 2 * *count >= folders.len());
    let mut roles: BTreeMap<String, Role> =
        counts.keys().map(|key| ((*key).clone(), Role::of(key))).collect();
    if roles.is_empty() {
        return None;
    }
    // A consensus next to raters is not one of them, and its label maps are not channels.
    let is_made = |key: &str| Hint::Made.fits_one(&words(key));
    if roles.iter().any(|(key, role)| *role == Role::Labels && !is_made(key)) {
        let first = |key: &str| folders.iter().find_map(|(_, files)| files.get(key));
        let is_map = |key: &str| first(key).is_some_and(|path| tree.look(path).is_label_map() == Some(true));
        roles.retain(|key, role| match role {
            Role::Labels => !is_made(key),
            Role::Channel => !(is_made(key) && is_map(key)),
            Role::Mask => true,
        });
    }
    // A file named just `mask` holds the labels only if no other file does.
    let is_mask = |key: &str| key.eq_ignore_ascii_case("mask");
    if roles.iter().any(|(key, role)| *role == Role::Labels && !is_mask(key)) {
        roles.iter_mut().filter(|(key, _)| is_mask(key)).for_each(|(_, role)| *role = Role::Mask);
    }
    if !roles.values().any(|role| *role == Role::Labels) {
        // No name is of labels: the only file with few integer values must be it.
        let (_, first) = folders.iter().find(|(_, files)| roles.keys().all(|key| files.contains_key(key)))?;
        let mut by_values = with_role(&roles, Role::Channel);
        by_values.retain(|key| tree.look(&first[key]).has_at_most(MOST_CLASSES));
        if let [labels] = by_values.as_slice() {
            roles.insert(labels.clone(), Role::Labels);
        }
    }
    Some(roles)
}

/// Returns the names of one role in natural order.
fn with_role(roles: &BTreeMap<String, Role>, wanted: Role) -> Vec<String> {
    let mut keys: Vec<String> =
        roles.iter().filter(|(_, role)| **role == wanted).map(|(key, _)| key.clone()).collect();
    keys.sort_by(|a, b| natural_order(a, b));
    keys
}

/// Returns names without an ending that all share: `T1c` and `Flair` for `T1c_normalized` and `Flair_normalized`.
fn short_names(names: &[String]) -> Vec<String> {
    let ending = names.first().and_then(|name| name.find('_').map(|at| &name[at..]));
    let shared = ending.filter(|ending| names.len() > 1 && names.iter().all(|name| name.ends_with(ending)));
    names.iter().map(|name| shared.and_then(|e| name.strip_suffix(e)).unwrap_or(name).to_owned()).collect()
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
}
