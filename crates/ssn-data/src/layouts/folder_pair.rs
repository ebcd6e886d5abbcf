//! Two folders: `images/case.png` and `labels/case.png`, with `_0`, `_r0` or `_rater0` behind the name for several
//! raters and `_0000`, `_0001`, … for several channels; `masks/` may hold regions of interest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dataset::{CaseEntry, CaseFiles, Finding, FindingKind, Layout, RaterFiles, Split};
use crate::error::Result;
use crate::layouts::dataset_json::channel_of;
use crate::layouts::files::{child, images, name, natural_order, numbered_suffix, stem};
use crate::layouts::names::{CaseNames, NameMatch};
use crate::layouts::{Draft, parts, unique};

/// Names of the folders of images, of labels and of regions of interest, in any case.
pub(super) const IMAGES: [&str; 13] = [
    "images",
    "image",
    "imgs",
    "img",
    "imagesTr",
    "scans",
    "original",
    "originals",
    "pictures",
    "photos",
    "input",
    "inputs",
    "raw",
];
pub(super) const LABELS: [&str; 16] = [
    "labels",
    "label",
    "labelsTr",
    "segmentations",
    "segmentation",
    "segs",
    "seg",
    "annotations",
    "annotation",
    "gt",
    "gts",
    "groundtruth",
    "ground_truth",
    "ground truth",
    "masks",
    "mask",
];
pub(super) const REGIONS: [&str; 6] = ["masks", "mask", "rois", "roi", "fov", "sampling_masks"];
/// Words before the number of a rater.
const RATER: [&str; 6] = ["rater", "reader", "expert", "seg", "r", "l"];

/// Who drew a label map, by what its name has besides that of its image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RaterKey {
    /// A number; a name without anything is that of rater 0.
    Number(usize),
    /// Letters, as in `case_A` and `case_B`.
    Letters(String),
}

/// A case before its raters have numbers.
struct Found {
    id: String,
    split: Option<Split>,
    images: Vec<Option<PathBuf>>,
    raters: BTreeMap<RaterKey, PathBuf>,
    mask: Option<PathBuf>,
}

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let (mut found, mut findings, mut taken) = (vec![], vec![], BTreeSet::new());
    for (split, folder) in parts(root)? {
        let (Some(pictures), Some(labels)) = (child(&folder, &IMAGES)?, child(&folder, &LABELS)?) else {
            continue;
        };
        let regions = child(&folder, &REGIONS)?.filter(|masks| *masks != labels);
        let label_files = images(&labels)?;
        let (cases, channels) = channels_by_case(&images(&pictures)?, &label_files);
        let mut raters = raters_by_case(&label_files, &cases, &mut findings);
        let mut masks: BTreeMap<String, PathBuf> = match regions {
            Some(folder) => images(&folder)?.into_iter().map(|path| (stem(&path), path)).collect(),
            None => BTreeMap::new(),
        };
        let mut ids: Vec<&String> = cases.keys().collect();
        ids.sort_by(|a, b| natural_order(a, b));
        for name in ids {
            let images = (0..channels).map(|channel| cases[name].get(&channel).cloned()).collect();
            let raters = raters.remove(name).unwrap_or_default();
            let id = unique(split, name.clone(), &mut taken);
            found.push(Found { id, split, images, raters, mask: masks.remove(name) });
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let keys: BTreeSet<RaterKey> = found.iter().flat_map(|case| case.raters.keys().cloned()).collect();
    let rater_names = rater_names(&keys);
    let entries = with_numbers(found, &keys);
    Ok(Some(Draft { findings, rater_names, ..Draft::new(Layout::FolderPair, entries) }))
}

/// The names of raters, if files give names to several and not only numbers.
fn rater_names(keys: &BTreeSet<RaterKey>) -> Vec<String> {
    let name = |key: &RaterKey| match key {
        RaterKey::Number(number) => format!("rater {number}"),
        RaterKey::Letters(letters) => letters.clone(),
    };
    let named = keys.len() > 1 && keys.iter().any(|key| matches!(key, RaterKey::Letters(_)));
    if named { keys.iter().map(name).collect() } else { vec![] }
}

/// The cases, with the same number for a rater in all of them.
fn with_numbers(found: Vec<Found>, keys: &BTreeSet<RaterKey>) -> Vec<CaseEntry> {
    let entry = |case: Found| {
        let rater = |(key, path): (RaterKey, PathBuf)| RaterFiles::new(keys.range(..key).count(), path);
        let raters = case.raters.into_iter().map(rater).collect();
        let files = CaseFiles { images: case.images, raters, mask: case.mask };
        CaseEntry::of_files(case.id, case.split, files)
    };
    found.into_iter().map(entry).collect()
}

fn no_image(label: &Path) -> Finding {
    let reason = format!("the label file {} has no image of its name", name(label));
    let advice = "name labels after their images, or remove the file";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(label)
}

pub(super) type ByChannel = BTreeMap<String, BTreeMap<usize, PathBuf>>;

/// The channels of each case, and how many there are at most.
pub(super) fn channels_by_case(files: &[PathBuf], labels: &[PathBuf]) -> (ByChannel, usize) {
    let mut cases = ByChannel::new();
    let channels = are_channels(files, labels);
    for path in files {
        let stem = stem(path);
        let (id, channel) = match channel_of(&stem) {
            Some((id, channel)) if channels => (id.to_owned(), channel),
            _ => (stem, 0),
        };
        cases.entry(id).or_default().insert(channel, path.clone());
    }
    let channels = cases.values().filter_map(|files| files.keys().max()).max().map_or(1, |last| last + 1);
    (cases, channels)
}

/// Whether four digits at the end of the names of images are channels. Slices may be numbered so too: then labels
/// are named after whole names, or the numbers differ from case to case.
fn are_channels(files: &[PathBuf], labels: &[PathBuf]) -> bool {
    let stems: BTreeSet<String> = files.iter().map(|path| stem(path)).collect();
    let mut sets = BTreeMap::<&str, BTreeSet<usize>>::new();
    for stem in &stems {
        let Some((id, channel)) = channel_of(stem) else { return false };
        sets.entry(id).or_default().insert(channel);
    }
    let of_image = |label: &PathBuf| {
        let label = stem(label);
        let before = label.rsplit_once(['_', '-']).map(|(before, _)| before);
        stems.contains(&label) || before.is_some_and(|before| stems.contains(before))
    };
    if labels.iter().any(of_image) {
        return false;
    }
    // A case that lacks a channel is still one if a label is named after it.
    let labeled = |id: &&str| {
        labels.iter().any(|label| {
            let label = stem(label);
            label.strip_prefix(*id).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-']))
        })
    };
    let first = sets.values().next();
    let alike = sets.values().all(|set| Some(set) == first);
    (alike || sets.keys().all(labeled)) && sets.values().any(|set| set.contains(&0))
}

/// Label files by case and rater; reports those without an image, and a second one of the same rater.
fn raters_by_case(
    files: &[PathBuf],
    cases: &ByChannel,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, BTreeMap<RaterKey, PathBuf>> {
    let names = CaseNames::of(cases.keys());
    let mut raters = BTreeMap::<String, BTreeMap<RaterKey, PathBuf>>::new();
    for path in files {
        let stem = stem(path);
        let (id, rater) = match numbered_suffix(&stem, &RATER) {
            _ if cases.contains_key(&stem) => (stem.as_str(), RaterKey::Number(0)),
            Some((id, rater)) if cases.contains_key(id) => (id, RaterKey::Number(rater)),
            // `case_seg` beside `case`, or `case_A` and `case_B`.
            _ => match stem.rsplit_once(['_', '-']) {
                Some((id, letters)) if cases.contains_key(id) => {
                    (id, RaterKey::Letters(letters.to_lowercase()))
                }
                // `Seg_CASE.png` beside `case.jpg`.
                _ => match names.find(&stem, &[]) {
                    NameMatch::Case(id, rest) if rest.is_empty() => (id, RaterKey::Number(0)),
                    _ => {
                        findings.push(no_image(path));
                        continue;
                    }
                },
            },
        };
        let of_case = raters.entry(id.to_owned()).or_default();
        if let Some(first) = of_case.get(&rater) {
            findings.push(same_rater(first, path).of_case(id));
        } else {
            of_case.insert(rater, path.clone());
        }
    }
    raters
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
