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
    in_order, kinds_note, patient, rater_of, unique, without_kinds, words,
};
use crate::text::listed;

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
    if pairs.is_empty() { patients(tree, root) } else { Ok(pairs) }
}

/// Returns the pairs in folders of patients: `patient1/images` and `patient1/labels`.
fn patients(tree: &Tree<'_>, root: &Path) -> Result<Vec<Pair>> {
    let mut pairs = vec![];
    for (split, part) in tree.parts(root)? {
        for folder in tree.folders(&part)? {
            let own = name(&folder);
            let is_patient = patient(&own).is_some() && !Hint::Person.fits_one(&words(&own));
            let both = (tree.child(&folder, Hint::Images)?, tree.child(&folder, Hint::Labels)?);
            if let (true, (Some(pictures), Some(labels))) = (is_patient, both) {
                let regions = tree.child(&folder, Hint::Regions)?.filter(|masks| *masks != labels);
                pairs.push(Pair { split, folder: Some(own), pictures, labels, regions });
            }
        }
    }
    // A single one is a dataset by itself.
    pairs.truncate(if pairs.len() > 1 { pairs.len() } else { 0 });
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
    let files = if own.is_empty() { made } else { own };
    let suffixes = Suffixes::of(files.iter().copied(), &raters);
    findings.extend(suffixes.note());
    for path in files {
        let stem = stem(path);
        let cut = cuts(&stem, BEFORE_RATER).next().filter(|(id, _)| raters.contains_key(*id));
        let is_whole = raters.contains_key(&stem);
        if let Some((id, _)) = cut.filter(|_| is_whole && suffixes.are_mixed) {
            findings.push(of_two_images(path, id, &stem));
        }
        let (id, rater) = match cut {
            // `case_seg` next to `case`, or `case_A` and `case_B`.
            Some((id, rest)) if !is_whole || suffixes.are_on_all => (id, suffixes.rater(rest)),
            _ if is_whole => (stem.as_str(), RaterKey::Number(0)),
            _ => match names.find(&stem, Align::Free) {
                // `Seg_CASE.png` next to `case.jpg`.
                NameMatch::Case(id, rest) if rest.is_empty() => (id, RaterKey::Number(0)),
                _ => match case_and_rater(&names, &stem) {
                    Some(found) => found,
                    None => {
                        findings.push(no_image(path));
                        continue;
                    }
                },
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

/// Returns the case and the rater of `case_seg_r1`, `case mask 2` or `rater1_case`.
fn case_and_rater<'a>(names: &'a CaseNames, stem: &str) -> Option<(&'a str, RaterKey)> {
    match names.find(stem, Align::Strict) {
        NameMatch::Case(id, rest) => Some((id, rater_of(&rest.join(" "))?)),
        NameMatch::Several(_) | NameMatch::None => None,
    }
}

/// Meanings of the ends of the names of label files.
struct Suffixes {
    /// Whether all names have one: `case_1` is then of the first rater of `case`, even next to an image `case_1`.
    are_on_all: bool,
    /// Whether some names have one, and others are those of images.
    are_mixed: bool,
    /// Words such as `seg` and `gt` that all mean the same rater, as no case has two of them.
    of_one: BTreeSet<String>,
}

impl Suffixes {
    fn of<'a>(
        files: impl Iterator<Item = &'a PathBuf>,
        cases: &BTreeMap<String, BTreeMap<RaterKey, PathBuf>>,
    ) -> Self {
        let (mut has_whole, mut has_suffix) = (false, false);
        let mut kinds = BTreeMap::<String, BTreeSet<String>>::new();
        for path in files {
            let stem = stem(path);
            let cut = cuts(&stem, BEFORE_RATER).next().filter(|(id, _)| cases.contains_key(*id));
            match (cases.contains_key(&stem), cut) {
                (true, None) => has_whole = true,
                (false, Some((id, rest))) => {
                    has_suffix = true;
                    if is_kind(rest) {
                        kinds.entry(id.to_owned()).or_default().insert(rest.to_lowercase());
                    }
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        let has_two = kinds.values().any(|kinds| kinds.len() > 1);
        let of_one: BTreeSet<String> = kinds.into_values().flatten().collect();
        let of_one = if has_two || of_one.len() < 2 { BTreeSet::new() } else { of_one };
        Self { are_on_all: has_suffix && !has_whole, are_mixed: has_suffix && has_whole, of_one }
    }

    fn note(&self) -> Option<Finding> {
        let ends: Vec<String> = self.of_one.iter().cloned().collect();
        let reason = format!(
            "label files that end in {} are taken for those of one rater: no case has two of them",
            listed(&ends, 8)
        );
        (!ends.is_empty()).then(|| Finding::note(FindingKind::Layout, reason))
    }

    fn rater(&self, rest: &str) -> RaterKey {
        if self.of_one.contains(&rest.to_lowercase()) { RaterKey::Number(0) } else { RaterKey::of(rest) }
    }
}

/// Returns `true` for words such as `seg` and `gt`, which name no rater.
fn is_kind(rest: &str) -> bool {
    without_kinds(&words(rest)).is_empty()
}

fn of_two_images(label: &Path, short: &str, whole: &str) -> Finding {
    let reason =
        format!("the name could be of a rater of {short}, but is taken for that of the image {whole}");
    let advice = "name the label files of all raters alike: the image, and the rater behind it";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(label)
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
