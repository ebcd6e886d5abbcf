//! LIDC as JPEG: a folder per slice with `image_<n>.jpg` and `label0_.jpg`, `label1_.jpg`, … JPEG changes
//! values, so that masks are what is above 127.

use std::collections::BTreeSet;
use std::path::Path;

use super::draft::Draft;
use super::{parts, unique};
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::folders::{images, name, stem, subfolders};
use crate::labels::LabelCoding;
use crate::source::{Files, Reading, Source};

/// Half of the largest value of a byte.
pub(super) const THRESHOLD: u8 = 127;

pub(super) fn recognise(root: &Path) -> Result<Option<Draft>> {
    let (mut entries, mut taken) = (vec![], BTreeSet::new());
    for (split, folder) in parts(root)? {
        for case in subfolders(&folder)? {
            let Some(files) = case_files(&case)? else { continue };
            let id = unique(split, name(&case), &mut taken);
            entries.push(Entry { group: id.clone(), id, split, source: Source::Files(files) });
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let reading = Reading { coding: LabelCoding::Threshold(THRESHOLD), ..Reading::default() };
    Ok(Some(Draft { reading, ..Draft::new(Layout::LidcJpeg, entries) }))
}

fn case_files(folder: &Path) -> Result<Option<Files>> {
    let (mut image, mut raters) = (None, vec![]);
    for path in images(folder)? {
        let stem = stem(&path).to_lowercase();
        let is_label = stem.strip_prefix("label").is_some_and(|rest| {
            let number = rest.trim_end_matches('_');
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        });
        if is_label {
            raters.push(vec![path]);
        } else if stem == "image" || stem.starts_with("image_") {
            image = Some(path);
        }
    }
    let both = image.filter(|_| !raters.is_empty());
    Ok(both.map(|image| Files { images: vec![Some(image)], raters, mask: None }))
}
