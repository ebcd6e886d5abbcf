//! QUBIQ: `caseNN/image.nii.gz` with `taskNN_segMM.nii.gz`, a mask per task and rater.
//!
//! With several tasks, task k is class k; where tasks overlap (they are nested in the challenge), the later
//! one counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::dataset::{Layout, RaterMaps, ReadOptions};
use crate::layouts::Draft;
use crate::resolve::files::{name, stem};
use crate::resolve::{FoundCase, RaterKey, Tree, unique};

/// The masks of a case: by rater, then by task.
type Masks = BTreeMap<usize, BTreeMap<usize, PathBuf>>;

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let (mut found, mut taken, mut tasks) = (vec![], BTreeSet::new(), BTreeSet::new());
    for (split, folder) in tree.parts(root)? {
        for case in tree.folders(&folder)? {
            let (image, masks) = case_files(tree, &case)?;
            if image.is_some() && !masks.is_empty() {
                tasks.extend(masks.values().flat_map(|tasks| tasks.keys().copied()));
                let id = unique(split, None, name(&case), &mut taken);
                found.push((FoundCase { id, split, images: vec![image], ..FoundCase::default() }, masks));
            }
        }
    }
    let Some((first, masks)) = found.first() else { return Ok(None) };
    // The third axis holds channels if it is longer than 1 and masks are flat.
    let [image, mask] = [first.images[0].as_ref(), masks.values().flat_map(BTreeMap::values).next()]
        .map(|path| tree.shape(path?));
    let depth_is_channels = matches!((image, mask), (Some([1, d, ..]), Some([_, 1, ..])) if d > 1);
    let reading = ReadOptions { depth_is_channels, ..ReadOptions::default() };
    // Task k is class k by its number, also where a rater left a task out.
    let class = |task: usize| tasks.range(..=task).count().min(usize::from(u8::MAX)) as u8;
    let maps = |mut masks: BTreeMap<usize, PathBuf>| match masks.pop_first() {
        Some((_, only)) if tasks.len() == 1 => RaterMaps::Labels(only),
        first => {
            RaterMaps::Masks(first.into_iter().chain(masks).map(|(task, path)| (class(task), path)).collect())
        }
    };
    let cases = found.into_iter().map(|(case, masks)| {
        let raters = masks.into_iter().map(|(rater, masks)| (RaterKey::Number(rater), maps(masks)));
        FoundCase { raters: raters.collect(), ..case }
    });
    let draft = Draft::of_cases(Layout::Qubiq, cases.collect());
    let classes = (tasks.len() > 1).then(|| {
        std::iter::once("background".to_owned()).chain(tasks.iter().map(|t| format!("task_{t}"))).collect()
    });
    Ok(Some(Draft { classes, reading, ..draft }))
}

/// Returns the image and the masks in a folder.
fn case_files(tree: &Tree<'_>, folder: &Path) -> Result<(Option<PathBuf>, Masks)> {
    let (mut image, mut masks) = (None, Masks::new());
    for path in tree.images(folder)? {
        let stem = stem(&path).to_lowercase();
        if stem == "image" {
            image = Some(path);
        } else if let Some((task, rater)) = task_and_rater(&stem) {
            masks.entry(rater).or_default().insert(task, path);
        }
    }
    Ok((image, masks))
}

/// Returns the numbers in `task01_seg02`.
fn task_and_rater(stem: &str) -> Option<(usize, usize)> {
    let (task, rater) = stem.strip_prefix("task")?.split_once("_seg")?;
    Some((task.parse().ok()?, rater.parse().ok()?))
}
