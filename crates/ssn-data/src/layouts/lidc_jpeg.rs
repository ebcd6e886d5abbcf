//! LIDC as JPEG: a folder per slice with `image_<n>.jpg` and `label0_.jpg`, `label1_.jpg`, … JPEG changes
//! values, so that masks are what is above 127.

use std::collections::BTreeSet;
use std::path::Path;

use super::draft::Draft;
use super::{parts, unique};
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::finding::{Finding, Kind, Severity};
use crate::folders::{images, name, stem, subfolders};
use crate::labels::LabelCoding;
use crate::source::{Files, Rater, Reading, Source};

/// Half of the largest value of a byte.
pub(super) const THRESHOLD: u8 = 127;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let (mut entries, mut findings, mut taken) = (vec![], vec![], BTreeSet::new());
    for (split, folder) in parts(root)? {
        for case in subfolders(&folder)? {
            let Some((files, found)) = case_files(&case)? else { continue };
            let id = unique(split, name(&case), &mut taken);
            findings.extend(found.map(|finding| finding.of_case(&id)));
            entries.push(Entry { group: id.clone(), id, split, source: Source::Files(files) });
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let reading = Reading { coding: LabelCoding::Threshold(THRESHOLD), ..Reading::default() };
    Ok(Some(Draft { reading, findings, ..Draft::new(Layout::LidcJpeg, entries) }))
}

/// The files of a slice, and whether there were too many; nothing if the folder is none.
fn case_files(folder: &Path) -> Result<Option<(Files, Option<Finding>)>> {
    let (mut pictures, mut raters) = (vec![], vec![]);
    for path in images(folder)? {
        let stem = stem(&path).to_lowercase();
        let number = stem.strip_prefix("label").and_then(|rest| rest.trim_end_matches('_').parse().ok());
        if let Some(number) = number {
            raters.push(Rater::new(number, path));
        } else if stem == "image" || stem.starts_with("image_") {
            pictures.push(path);
        }
    }
    let finding = (pictures.len() > 1).then(|| {
        let names: Vec<String> = pictures.iter().map(|path| name(path)).collect();
        let reason = format!("there are {} images, {}; the first is used", names.len(), names.join(", "));
        let advice = "keep one image in the folder of a slice";
        Finding::new(Severity::Warning, Kind::Layout, reason, advice)
    });
    let image = pictures.into_iter().next().filter(|_| !raters.is_empty());
    Ok(image.map(|image| (Files { images: vec![Some(image)], raters, mask: None }, finding)))
}
