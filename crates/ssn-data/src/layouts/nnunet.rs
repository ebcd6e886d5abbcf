//! nnU-Net v2: `imagesTr/<id>_0000.nii.gz`, `labelsTr/<id>.nii.gz`, and `dataset.json` with `channel_names`,
//! `labels` and `file_ending`. `imagesTs` holds images without labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::draft::Draft;
use super::json::Description;
use crate::dataset::{Entry, Layout};
use crate::error::Result;
use crate::folders::{entries, name, natural_order};
use crate::source::{Files, Rater, Source};

/// Digits of the channel at the end of the name of an image.
const CHANNEL_DIGITS: usize = 4;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let description = root.join("dataset.json");
    let [labeled, unlabeled] = ["imagesTr", "imagesTs"].map(|name| root.join(name));
    if !description.is_file() || !(labeled.is_dir() || unlabeled.is_dir()) {
        return Ok(None);
    }
    let description = Description::read(&description)?;
    if !description.has("channel_names") {
        return Ok(None);
    }
    let channels = description.names_by_number("channel_names")?;
    let classes = classes(&description)?;
    let ending = description.text("file_ending").unwrap_or(".nii.gz").to_owned();
    let entries = cases(&labeled, Some(&root.join("labelsTr")), &ending, channels.len())?;
    let unlabeled = cases(&unlabeled, None, &ending, channels.len())?;
    let draft = Draft::new(Layout::NnUnet, entries);
    Ok(Some(Draft { channels: Some(channels), classes: Some(classes), unlabeled, ..draft }))
}

/// Names of the classes in the order of their labels.
fn classes(description: &Description<'_>) -> Result<Vec<String>> {
    let expected = "an object such as {\"background\": 0, \"lesion\": 1} with labels from 0 without gaps; \
                    regions (lists of labels) and an ignored label are not supported";
    let mut names = vec![];
    for (name, label) in description.object("labels", expected)? {
        let number = match label {
            Value::Number(number) if name != "ignore" => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return Err(description.wrong_field("labels", expected)) };
        names.push((number as usize, name.clone()));
    }
    description.in_order("labels", names, expected)
}

/// The cases of a folder of images; none where it is not there.
fn cases(images: &Path, labels: Option<&Path>, ending: &str, channels: usize) -> Result<Vec<Entry>> {
    if !images.is_dir() {
        return Ok(vec![]);
    }
    let mut found: BTreeMap<String, Vec<Option<PathBuf>>> = BTreeMap::new();
    for path in entries(images)? {
        let name = name(&path);
        let Some(stem) = name.strip_suffix(ending) else { continue };
        let (id, channel) = match channel_of(stem) {
            Some((id, channel)) => (id, channel),
            None => (stem, 0),
        };
        let files = found.entry(id.to_owned()).or_insert_with(|| vec![None; channels]);
        // A file of a channel that the description does not know is no channel of the case.
        if let Some(place) = files.get_mut(channel) {
            *place = Some(path);
        }
    }
    let mut entries: Vec<Entry> = found
        .into_iter()
        .map(|(id, images)| {
            let label = labels.map(|labels| Rater::new(0, labels.join(format!("{id}{ending}"))));
            let files = Files { images, raters: label.into_iter().collect(), mask: None };
            Entry { group: id.clone(), id, split: None, source: Source::Files(files) }
        })
        .collect();
    entries.sort_by(|a, b| natural_order(&a.id, &b.id));
    Ok(entries)
}

/// The case and the channel in a name such as `case_0001`.
pub(super) fn channel_of(stem: &str) -> Option<(&str, usize)> {
    let (id, digits) = stem.rsplit_once('_')?;
    let is_channel = digits.len() == CHANNEL_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    (is_channel && !id.is_empty()).then(|| digits.parse().ok().map(|channel| (id, channel))).flatten()
}
