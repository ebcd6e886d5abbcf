//! QUBIQ: `caseNN/image.nii.gz` with `taskNN_segMM.nii.gz`, a mask per task and rater.
//!
//! With several tasks, task k is class k; where tasks overlap (they are nested in the challenge), the later
//! one counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dataset::{CaseEntry, CaseFiles, Layout, RaterFiles, RaterMaps, ReadOptions};
use crate::error::Result;
use crate::layouts::files::{images, name, shape, stem, subfolders};
use crate::layouts::{Draft, parts, unique};

/// The masks of a case: by rater, then by task.
type Masks = BTreeMap<usize, BTreeMap<usize, PathBuf>>;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let (mut found, mut taken, mut tasks) = (vec![], BTreeSet::new(), BTreeSet::new());
    for (split, folder) in parts(root)? {
        for case in subfolders(&folder)? {
            let Some((image, masks)) = case_files(&case)? else { continue };
            tasks.extend(masks.values().flat_map(|tasks| tasks.keys().copied()));
            found.push((unique(split, name(&case), &mut taken), split, image, masks));
        }
    }
    // Task k is class k by its number, also where a rater left a task out.
    let class = |task: usize| tasks.range(..=task).count().min(usize::from(u8::MAX)) as u8;
    let rater = |(number, masks): (usize, BTreeMap<usize, PathBuf>)| {
        let mut masks: Vec<(u8, PathBuf)> =
            masks.into_iter().map(|(task, path)| (class(task), path)).collect();
        let maps = match tasks.len() {
            1 => RaterMaps::Labels(masks.remove(0).1),
            _ => RaterMaps::Masks(masks),
        };
        RaterFiles { number, maps }
    };
    let entries: Vec<CaseEntry> = found
        .into_iter()
        .map(|(id, split, image, masks)| {
            let raters = masks.into_iter().map(rater).collect();
            let files = CaseFiles { images: vec![Some(image)], raters, mask: None };
            CaseEntry::of_files(id, split, files)
        })
        .collect();
    let Some(first) = entries.first() else { return Ok(None) };
    let depth_is_channels = depth_is_channels(&first.files);
    let classes = (tasks.len() > 1).then(|| {
        std::iter::once("background".to_owned()).chain(tasks.iter().map(|t| format!("task_{t}"))).collect()
    });
    let reading = ReadOptions { depth_is_channels, ..ReadOptions::default() };
    Ok(Some(Draft { classes, reading, ..Draft::new(Layout::Qubiq, entries) }))
}

/// The image and the masks of a case; `None` if the folder holds no case.
fn case_files(folder: &Path) -> Result<Option<(PathBuf, Masks)>> {
    let (mut image, mut masks) = (None, Masks::new());
    for path in images(folder)? {
        let stem = stem(&path).to_lowercase();
        if stem == "image" {
            image = Some(path);
        } else if let Some((task, rater)) = task_and_rater(&stem) {
            masks.entry(rater).or_default().insert(task, path);
        }
    }
    Ok(image.filter(|_| !masks.is_empty()).map(|image| (image, masks)))
}

/// The numbers in `task01_seg02`.
fn task_and_rater(stem: &str) -> Option<(usize, usize)> {
    let (task, rater) = stem.strip_prefix("task")?.split_once("_seg")?;
    Some((task.parse().ok()?, rater.parse().ok()?))
}

/// Whether the third axis of the image holds channels: it is longer than 1, and the masks are flat.
fn depth_is_channels(files: &CaseFiles) -> bool {
    let image = files.images.iter().flatten().next().and_then(|path| shape(path).ok());
    let mask = files.raters.iter().flat_map(RaterFiles::files).next().and_then(|path| shape(path).ok());
    matches!((image, mask), (Some([1, depth, ..]), Some([_, 1, ..])) if depth > 1)
}
