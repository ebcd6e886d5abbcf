//! Two folders: `images/case.png` and `labels/case.png`, with `_0`, `_r0` or `_rater0` behind the name for several
//! raters and `_0000`, `_0001`, … for several channels; `masks/` may hold regions of interest. Parts and patients may be
//! above or below: `train/images`, `images/train`. Label maps may lie in folders of their cases ([`label_folders`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::dataset::{Finding, FindingKind, Layout, Split};
use crate::layouts::{Draft, label_folders};
use crate::resolve::files::{name, stem};
use crate::resolve::{
    Align, BEFORE_RATER, CaseNames, FoundCase, Hint, NameMatch, RaterKey, Tree, channels_by_case, cuts,
    in_order, kinds_note, patient, unique, words,
};

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let (mut found, mut findings, mut taken) = (vec![], vec![], BTreeSet::new());
    let pairs = pairs(tree, root)?;
    findings.extend(kinds_note(pairs.iter().filter_map(|pair| pair.folder.clone())));
    for Pair { split, folder, pictures, labels, regions } in pairs {
        let regions = regions.map_or(Ok(vec![]), |folder| tree.images(&folder))?;
        let mut masks: BTreeMap<String, PathBuf> =
            regions.into_iter().map(|path| (stem(&path), path)).collect();
        let files = tree.images(&labels)?;
        let channels = channels_by_case(&tree.images(&pictures)?, &files);
        let mut own = vec![];
        let mut raters = raters_by_case(&files, channels.0.keys(), &mut own);
        let inner = label_folders::by_case(tree, &labels, &CaseNames::of(channels.0.keys()))?;
        for (case, rater, path) in inner.into_iter().flatten() {
            raters.entry(case).or_default().insert(rater, path);
        }
        if folder.is_some() && raters.values().all(BTreeMap::is_empty) {
            continue;
        }
        findings.append(&mut own);
        for (name, images) in in_order(&channels) {
            let mut case = FoundCase { split, images, mask: masks.remove(name), ..FoundCase::default() };
            let own = raters.remove(name).unwrap_or_default();
            own.into_iter().for_each(|(rater, path)| case.add_labels(rater, path));
            let id = folder.as_ref().map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
            found.push(FoundCase {
                id: unique(split, None, id, &mut taken),
                group: folder.as_deref().and_then(patient),
                ..case
            });
        }
    }
    let draft = (!found.is_empty()).then(|| Draft::of_cases(Layout::FolderPair, found));
    Ok(draft.map(|draft| Draft { findings, ..draft }))
}

/// A folder of images with its folder of labels.
struct Pair {
    split: Option<Split>,
    /// The name of the folder of a patient or kind.
    folder: Option<String>,
    pictures: PathBuf,
    labels: PathBuf,
    regions: Option<PathBuf>,
}

/// Returns the pairs of folders in the dataset's folder and those of its parts, and the pairs of parts and patients below:
/// `images/train` and `labels/train`.
fn pairs(tree: &Tree<'_>, root: &Path) -> Result<Vec<Pair>> {
    let mut pairs = vec![];
    for (split, folder) in tree.parts(root)? {
        let (Some(pictures), Some(labels)) =
            (tree.child(&folder, Hint::Images)?, tree.child(&folder, Hint::Labels)?)
        else {
            continue;
        };
        let regions = tree.child(&folder, Hint::Regions)?.filter(|masks| *masks != labels);
        for (part, inner) in tree.parts_and_patients(&pictures)? {
            let Some(labels) = tree.like(&labels, part, &inner)? else { continue };
            let regions = match &regions {
                Some(regions) => tree.like(regions, part, &inner)?,
                None => None,
            };
            let folder = part.is_none().then(|| name(&inner));
            pairs.push(Pair { split: part.or(split), folder, pictures: inner, labels, regions });
        }
        pairs.push(Pair { split, folder: None, pictures, labels, regions });
    }
    Ok(pairs)
}

/// Returns label files by case and rater; reports files without an image, and a second file of a rater.
fn raters_by_case<'a>(
    files: &[PathBuf],
    cases: impl Iterator<Item = &'a String>,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, BTreeMap<RaterKey, PathBuf>> {
    let mut raters: BTreeMap<String, BTreeMap<RaterKey, PathBuf>> =
        cases.map(|id| (id.clone(), BTreeMap::new())).collect();
    let names = CaseNames::of(raters.keys());
    let is_made = |path: &&PathBuf| Hint::Made.fits_one(&words(&stem(path)));
    let (made, own): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(is_made);
    for path in if own.is_empty() { made } else { own } {
        let stem = stem(path);
        let (id, rater) = match cuts(&stem, BEFORE_RATER).next() {
            _ if raters.contains_key(&stem) => (stem.as_str(), RaterKey::Number(0)),
            // `case_seg` next to `case`, or `case_A` and `case_B`.
            Some((id, rest)) if raters.contains_key(id) => (id, RaterKey::of(rest)),
            // `Seg_CASE.png` next to `case.jpg`.
            _ => match names.find(&stem, Align::Free) {
                NameMatch::Case(id, rest) if rest.is_empty() => (id, RaterKey::Number(0)),
                _ => {
                    findings.push(no_image(path));
                    continue;
                }
            },
        };
        let Some(of_case) = raters.get_mut(id) else { continue };
        match of_case.get(&rater) {
            Some(first) => findings.push(same_rater(first, path).of_case(id)),
            None => drop(of_case.insert(rater, path.clone())),
        }
    }
    raters
}

fn no_image(label: &Path) -> Finding {
    let reason = format!("the label file {} has no image of its name", name(label));
    let advice = "name labels after their images, or remove the file";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(label)
}

pub(super) fn same_rater(first: &Path, second: &Path) -> Finding {
    let reason = format!(
        "the label files {} and {} are of the same rater; the second is not used",
        name(first),
        name(second)
    );
    let advice = "give each rater a number of its own behind the name of the image";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(second)
}
