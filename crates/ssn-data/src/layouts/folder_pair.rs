//! Two folders: `images/case.png` and `labels/case.png`, with `_0`, `_r0` or `_rater0` behind the name for several
//! raters and `_0000`, `_0001`, … for several channels; `masks/` may hold regions of interest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_volume::Format;

use super::draft::Draft;
use super::nnunet::channel_of;
use super::{lidc_jpeg, parts, unique};
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::finding::{Finding, Kind, Severity};
use crate::folders::{child, images, name, natural_order, numbered_suffix, stem};
use crate::labels::LabelCoding;
use crate::source::{Files, Reading, Source};

const IMAGES: [&str; 6] = ["images", "image", "imgs", "img", "imagesTr", "scans"];
const LABELS: [&str; 9] =
    ["labels", "label", "labelsTr", "segmentations", "segs", "annotations", "gt", "groundtruth", "masks"];
const MASKS: [&str; 3] = ["masks", "rois", "sampling_masks"];
/// Words before the number of a rater.
const RATER: [&str; 6] = ["rater", "reader", "expert", "seg", "r", "l"];

pub(super) fn recognise(root: &Path) -> Result<Option<Draft>> {
    let (mut entries, mut findings, mut taken) = (vec![], vec![], BTreeSet::new());
    let mut lossy = false;
    for (split, folder) in parts(root)? {
        let (Some(pictures), Some(labels)) = (child(&folder, &IMAGES), child(&folder, &LABELS)) else {
            continue;
        };
        let regions = child(&folder, &MASKS).filter(|masks| *masks != labels);
        let (cases, channels) = channels_by_case(&images(&pictures)?);
        let label_files = images(&labels)?;
        lossy |= label_files.iter().any(|path| matches!(Format::of(path), Ok(Format::Jpeg)));
        let (mut raters, strays) = raters_by_case(&label_files, &cases);
        findings.extend(strays.iter().map(|stray| no_image(stray)));
        let mut masks: BTreeMap<String, PathBuf> = match regions {
            Some(folder) => images(&folder)?.into_iter().map(|path| (stem(&path), path)).collect(),
            None => BTreeMap::new(),
        };
        let mut ids: Vec<&String> = cases.keys().collect();
        ids.sort_by(|a, b| natural_order(a, b));
        for name in ids {
            let images = (0..channels).map(|channel| cases[name].get(&channel).cloned()).collect();
            let raters =
                raters.remove(name).unwrap_or_default().into_values().map(|path| vec![path]).collect();
            let files = Files { images, raters, mask: masks.remove(name) };
            let id = unique(split, name.clone(), &mut taken);
            entries.push(Entry { group: id.clone(), id, split, source: Source::Files(files) });
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let coding = if lossy { LabelCoding::Threshold(lidc_jpeg::THRESHOLD) } else { LabelCoding::Plain };
    let reading = Reading { coding, ..Reading::default() };
    Ok(Some(Draft { reading, findings, ..Draft::new(Layout::FolderPair, entries) }))
}

fn no_image(label: &Path) -> Finding {
    let reason = format!("the label file {} has no image of its name", name(label));
    let advice = "name labels after their images, or remove the file";
    Finding::new(Severity::Warning, Kind::Layout, reason, advice).in_file(label)
}

/// The channels of each case, and how many there are at most.
fn channels_by_case(files: &[PathBuf]) -> (BTreeMap<String, BTreeMap<usize, PathBuf>>, usize) {
    // Four digits mean channels only if every name has them, for cases may be numbered so too.
    let all = files.iter().all(|path| channel_of(&stem(path)).is_some());
    let first = files.iter().any(|path| channel_of(&stem(path)).is_some_and(|(_, channel)| channel == 0));
    let mut cases = BTreeMap::<String, BTreeMap<usize, PathBuf>>::new();
    for path in files {
        let stem = stem(path);
        let (id, channel) = match channel_of(&stem) {
            Some((id, channel)) if all && first => (id.to_owned(), channel),
            _ => (stem, 0),
        };
        cases.entry(id).or_default().insert(channel, path.clone());
    }
    let channels = cases.values().filter_map(|files| files.keys().max()).max().map_or(1, |last| last + 1);
    (cases, channels)
}

/// Label files by case and rater, and those without an image.
fn raters_by_case<'a, T>(
    files: &'a [PathBuf],
    cases: &BTreeMap<String, T>,
) -> (BTreeMap<String, BTreeMap<usize, PathBuf>>, Vec<&'a Path>) {
    let (mut raters, mut strays) = (BTreeMap::<String, BTreeMap<usize, PathBuf>>::new(), vec![]);
    for path in files {
        let stem = stem(path);
        let (id, rater) = match numbered_suffix(&stem, &RATER) {
            _ if cases.contains_key(&stem) => (stem.as_str(), 0),
            Some((id, rater)) if cases.contains_key(id) => (id, rater),
            // `case_seg` beside `case`.
            _ => match stem.rsplit_once('_') {
                Some((id, _)) if cases.contains_key(id) => (id, 0),
                _ => {
                    strays.push(path.as_path());
                    continue;
                }
            },
        };
        raters.entry(id.to_owned()).or_default().insert(rater, path.clone());
    }
    (raters, strays)
}
