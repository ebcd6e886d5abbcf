//! LIDC as PNG crops: `{split}/images/<patient>/<slice>.png` with `{split}/gt/<patient>/<slice>_l<1…>.png`.
//! Crops of 180 × 180 are cut to their middle 128 × 128, as published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ssn_io::{Limits, read};

use super::draft::Draft;
use super::parts;
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::folders::{images, name, numbered_suffix, stem, subfolders};
use crate::labels::LabelCoding;
use crate::source::{Files, Rater, Reading, Source};

/// The side of the stored crops, and of the part that is used.
const STORED_SIDE: usize = 180;
const USED_SIDE: usize = 128;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let mut entries = vec![];
    for (split, folder) in parts(root)? {
        let (pictures, masks) = (folder.join("images"), folder.join("gt"));
        if !pictures.is_dir() || !masks.is_dir() {
            continue;
        }
        for patient in subfolders(&pictures)? {
            let group = name(&patient);
            let mut raters = raters_by_slice(&masks.join(&group))?;
            for picture in images(&patient)? {
                let slice = stem(&picture);
                let raters = raters.remove(&slice).unwrap_or_default();
                let raters = raters.into_iter().map(|(reader, path)| Rater::new(reader, path)).collect();
                let files = Files { images: vec![Some(picture)], raters, mask: None };
                let id = format!("{group}/{slice}");
                entries.push(Entry { id, group: group.clone(), split, source: Source::Files(files) });
            }
        }
    }
    let Some(first) = entries.first() else { return Ok(None) };
    let side = match &first.source {
        Source::Files(files) => files.images[0].as_ref().and_then(|path| read(path, &Limits::default()).ok()),
        Source::Record(..) => None,
    };
    let stored_side = side.is_some_and(|image| image.shape[2..] == [STORED_SIDE; 2]);
    let center_crop = stored_side.then_some(USED_SIDE);
    // Masks are 0 and 255 in some copies, 0 and 1 in others.
    let reading = Reading { coding: LabelCoding::Threshold(0), center_crop, ..Reading::default() };
    Ok(Some(Draft { reading, ..Draft::new(Layout::LidcPng, entries) }))
}

/// The masks of a patient: by slice, then by reader.
fn raters_by_slice(folder: &Path) -> Result<BTreeMap<String, BTreeMap<usize, PathBuf>>> {
    let mut found = BTreeMap::<String, BTreeMap<usize, PathBuf>>::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for mask in images(folder)? {
        if let Some((slice, reader)) = numbered_suffix(&stem(&mask), &["l"]) {
            found.entry(slice.to_owned()).or_default().insert(reader, mask);
        }
    }
    Ok(found)
}
