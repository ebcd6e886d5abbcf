//! QUBIQ: `caseNN/image.nii.gz` with `taskNN_segMM.nii.gz`, a mask per task and rater.
//!
//! With several tasks, task k is class k; where tasks overlap (they are nested in the challenge), the later
//! one counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_volume::{Limits, read};

use super::draft::Draft;
use super::{parts, unique};
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::folders::{images, name, stem, subfolders};
use crate::source::{Files, Reading, Source};

pub(super) fn recognise(root: &Path) -> Result<Option<Draft>> {
    let (mut entries, mut taken, mut tasks) = (vec![], BTreeSet::new(), BTreeSet::new());
    for (split, folder) in parts(root)? {
        for case in subfolders(&folder)? {
            let Some((files, found)) = case_files(&case)? else { continue };
            tasks.extend(found);
            let id = unique(split, name(&case), &mut taken);
            entries.push(Entry { group: id.clone(), id, split, source: Source::Files(files) });
        }
    }
    let Some(first) = entries.first() else { return Ok(None) };
    let depth_is_channels = depth_is_channels(&first.source);
    let classes = (tasks.len() > 1).then(|| {
        std::iter::once("background".to_owned()).chain(tasks.iter().map(|t| format!("task_{t}"))).collect()
    });
    let reading = Reading { depth_is_channels, ..Reading::default() };
    Ok(Some(Draft { classes, reading, ..Draft::new(Layout::Qubiq, entries) }))
}

/// The files of a case and the numbers of its tasks; nothing if the folder is none.
fn case_files(folder: &Path) -> Result<Option<(Files, Vec<usize>)>> {
    let (mut image, mut segs) = (None, BTreeMap::<usize, BTreeMap<usize, PathBuf>>::new());
    for path in images(folder)? {
        let stem = stem(&path).to_lowercase();
        if stem == "image" {
            image = Some(path);
        } else if let Some((task, rater)) = task_and_rater(&stem) {
            segs.entry(rater).or_default().insert(task, path);
        }
    }
    let (Some(image), false) = (image, segs.is_empty()) else { return Ok(None) };
    let tasks: BTreeSet<usize> = segs.values().flat_map(|tasks| tasks.keys().copied()).collect();
    let raters = segs.into_values().map(|tasks| tasks.into_values().collect()).collect();
    Ok(Some((Files { images: vec![Some(image)], raters, mask: None }, tasks.into_iter().collect())))
}

/// The numbers in `task01_seg02`.
fn task_and_rater(stem: &str) -> Option<(usize, usize)> {
    let (task, rater) = stem.strip_prefix("task")?.split_once("_seg")?;
    Some((task.parse().ok()?, rater.parse().ok()?))
}

/// Whether the third axis of the image holds channels: it is longer than 1, and the masks are flat.
fn depth_is_channels(source: &Source) -> bool {
    let Source::Files(files) = source else { return false };
    let depth = |path: Option<&PathBuf>| {
        path.and_then(|path| read(path, &Limits::default()).ok())
            .map(|image| (image.shape[0], image.shape[1]))
    };
    let image = depth(files.images.first().and_then(Option::as_ref));
    let mask = depth(files.raters.first().and_then(|rater| rater.first()));
    matches!((image, mask), (Some((1, 2..)), Some((_, 1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_task_and_rater() {
        assert_eq!(task_and_rater("task01_seg07"), Some((1, 7)));
        assert_eq!(task_and_rater("task1_label2"), None);
    }
}
