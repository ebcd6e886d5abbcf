//! The Medical Segmentation Decathlon: `dataset.json` with `modality`, `labels` and a list `training` of images,
//! which hold all channels in one 4D file, and labels. A list `test` names images without labels.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::draft::Draft;
use super::json::Description;
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::folders::stem;
use crate::source::{Files, Rater, Source};

const TRAINING: &str =
    "a list such as [{\"image\": \"./imagesTr/a.nii.gz\", \"label\": \"./labelsTr/a.nii.gz\"}]";

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let path = root.join("dataset.json");
    if !path.is_file() {
        return Ok(None);
    }
    let description = Description::read(&path)?;
    if !description.has("modality") || !description.has("training") {
        return Ok(None);
    }
    let channels = description.names_by_number("modality")?;
    let classes = description.names_by_number("labels")?;
    let mut entries = vec![];
    for pair in description.list("training", TRAINING)? {
        let file = |key: &str| pair.get(key).and_then(Value::as_str).map(|path| root.join(path));
        let (Some(image), Some(label)) = (file("image"), file("label")) else {
            return Err(description.wrong_field("training", TRAINING));
        };
        entries.push(entry(image, vec![Rater::new(0, label)], channels.len()));
    }
    // Training needs no list `test`, so that an odd one stops nothing.
    let test = description.list("test", TRAINING).map_or(&[][..], Vec::as_slice);
    let unlabeled = test
        .iter()
        .filter_map(|image| image.as_str().or_else(|| image.get("image")?.as_str()))
        .map(|image| entry(root.join(image), vec![], channels.len()))
        .collect();
    let draft = Draft::new(Layout::Decathlon, entries);
    Ok(Some(Draft { channels: Some(channels), classes: Some(classes), unlabeled, ..draft }))
}

fn entry(image: PathBuf, raters: Vec<Rater>, channels: usize) -> Entry {
    let id = stem(&image);
    let files = Files { images: images(image, channels), raters, mask: None };
    Entry { group: id.clone(), id, split: None, source: Source::Files(files) }
}

/// The 4D image; or, where it is not there, its channels as nnU-Net v1 stores them, with `_0000` and so on.
fn images(image: PathBuf, channels: usize) -> Vec<Option<PathBuf>> {
    if image.is_file() {
        return vec![Some(image)];
    }
    let stem = stem(&image);
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let ending = name.strip_prefix(&stem).unwrap_or_default();
    let channel =
        |c| Some(image.with_file_name(format!("{stem}_{c:04}{ending}"))).filter(|path| path.is_file());
    let files: Vec<Option<PathBuf>> = (0..channels).map(channel).collect();
    if files.iter().any(Option::is_some) { files } else { vec![Some(image)] }
}
