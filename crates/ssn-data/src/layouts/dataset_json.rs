//! Datasets that a `dataset.json` describes: nnU-Net v2 and the Medical Segmentation Decathlon.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ssn_io::{Limits, read_bytes};

use crate::dataset::{CaseEntry, CaseFiles, Layout, RaterFiles};
use crate::error::{DataError, Result};
use crate::layouts::Draft;
use crate::layouts::files::{entries, name, natural_order, stem};

struct Description<'a> {
    path: &'a Path,
    fields: Map<String, Value>,
}

impl<'a> Description<'a> {
    fn read(path: &'a Path) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self { path, fields }),
            Ok(_) => Err(wrong(path, "the file holds no object".to_owned())),
            Err(error) => Err(wrong(path, error.to_string())),
        }
    }

    fn list(&self, field: &str) -> Option<&Vec<Value>> {
        self.fields.get(field).and_then(Value::as_array)
    }

    /// The names in an object, in the order of their numbers, which must be 0, 1, 2, …; `entry` takes number and name
    /// from key and value.
    fn names(
        &self,
        field: &str,
        expected: &str,
        entry: impl Fn(&str, &Value) -> Option<(usize, String)>,
    ) -> Result<Vec<String>> {
        let object = self.fields.get(field).and_then(Value::as_object).into_iter().flatten();
        let names: Option<Vec<_>> = object.map(|(key, value)| entry(key, value)).collect();
        let mut names = names.unwrap_or_default();
        names.sort();
        match !names.is_empty() && names.iter().map(|(number, _)| *number).eq(0..names.len()) {
            true => Ok(names.into_iter().map(|(_, name)| name).collect()),
            false => Err(self.wrong_field(field, expected)),
        }
    }

    /// The names in an object of number → name.
    fn names_by_number(&self, field: &str) -> Result<Vec<String>> {
        let expected = "an object such as {\"0\": \"a\", \"1\": \"b\"} with numbers from 0 without gaps";
        self.names(field, expected, |number, name| Some((number.parse().ok()?, name.as_str()?.to_owned())))
    }

    fn wrong_field(&self, field: &str, expected: &str) -> DataError {
        let found = self.fields.get(field).map_or("missing".to_owned(), |value| {
            let text: String = value.to_string().chars().take(80).collect();
            if text.len() < 80 { text } else { format!("{text}…") }
        });
        wrong(self.path, format!("the field `{field}` is {found}, but it must be {expected}"))
    }
}

fn wrong(path: &Path, reason: String) -> DataError {
    DataError::dataset(path, reason, "correct the file")
}

/// Digits of the channel at the end of the name of an image.
const CHANNEL_DIGITS: usize = 4;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let path = root.join("dataset.json");
    if !path.is_file() {
        return Ok(None);
    }
    let description = Description::read(&path)?;
    let has = |field: &str| description.fields.contains_key(field);
    if has("channel_names") && ["imagesTr", "imagesTs"].iter().any(|name| root.join(name).is_dir()) {
        return nnunet(root, &description).map(Some);
    }
    if has("modality") && has("training") {
        return decathlon(root, &description).map(Some);
    }
    Ok(None)
}

/// nnU-Net v2: `imagesTr/<id>_0000.nii.gz`, `labelsTr/<id>.nii.gz`, and `channel_names`, `labels` and `file_ending` in
/// `dataset.json`. `imagesTs` holds images without labels.
fn nnunet(root: &Path, description: &Description<'_>) -> Result<Draft> {
    let channels = description.names_by_number("channel_names")?;
    let classes = classes(description)?;
    let ending = description.fields.get("file_ending").and_then(Value::as_str).unwrap_or(".nii.gz");
    let entries = cases(&root.join("imagesTr"), Some(&root.join("labelsTr")), ending, channels.len())?;
    let unlabeled = cases(&root.join("imagesTs"), None, ending, channels.len())?;
    let draft = Draft::new(Layout::NnUnet, entries);
    Ok(Draft { channels: Some(channels), classes: Some(classes), unlabeled, ..draft })
}

fn classes(description: &Description<'_>) -> Result<Vec<String>> {
    let expected = "an object such as {\"background\": 0, \"lesion\": 1} with labels from 0 without gaps; \
                    regions (lists of labels) and an ignored label are not supported";
    description.names("labels", expected, |name, label| {
        let number = match label {
            Value::Number(number) if name != "ignore" => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        Some((number? as usize, name.to_owned()))
    })
}

/// The cases of a folder of images; none where it is not there.
fn cases(images: &Path, labels: Option<&Path>, ending: &str, channels: usize) -> Result<Vec<CaseEntry>> {
    if !images.is_dir() {
        return Ok(vec![]);
    }
    let mut found: BTreeMap<String, Vec<Option<PathBuf>>> = BTreeMap::new();
    for path in entries(images)? {
        let name = name(&path);
        let Some(stem) = name.strip_suffix(ending) else { continue };
        let (id, channel) = channel_of(stem).unwrap_or((stem, 0));
        let files = found.entry(id.to_owned()).or_insert_with(|| vec![None; channels]);
        // A file of a channel that the description does not know is no channel of the case.
        if let Some(place) = files.get_mut(channel) {
            *place = Some(path);
        }
    }
    let mut entries: Vec<CaseEntry> = found
        .into_iter()
        .map(|(id, images)| {
            let label = labels.map(|labels| RaterFiles::new(0, labels.join(format!("{id}{ending}"))));
            let files = CaseFiles { images, raters: label.into_iter().collect(), mask: None };
            CaseEntry::of_files(id, None, files)
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

const TRAINING: &str =
    "a list such as [{\"image\": \"./imagesTr/a.nii.gz\", \"label\": \"./labelsTr/a.nii.gz\"}]";

/// The Decathlon: `modality`, `labels` and a list `training` of labels and images, which hold all channels in one 4D
/// file. A list `test` names images without labels.
fn decathlon(root: &Path, description: &Description<'_>) -> Result<Draft> {
    let wrong = || description.wrong_field("training", TRAINING);
    let channels = description.names_by_number("modality")?;
    let classes = description.names_by_number("labels")?;
    let mut entries = vec![];
    for pair in description.list("training").ok_or_else(wrong)? {
        let file = |key: &str| pair.get(key).and_then(Value::as_str).map(|path| root.join(path));
        let (Some(image), Some(label)) = (file("image"), file("label")) else { return Err(wrong()) };
        entries.push(entry(image, vec![RaterFiles::new(0, label)], channels.len()));
    }
    // Training needs no list `test`, so that an odd one stops nothing.
    let test = description.list("test").into_iter().flatten();
    let unlabeled = test
        .filter_map(|image| image.as_str().or_else(|| image.get("image")?.as_str()))
        .map(|image| entry(root.join(image), vec![], channels.len()))
        .collect();
    let draft = Draft::new(Layout::Decathlon, entries);
    Ok(Draft { channels: Some(channels), classes: Some(classes), unlabeled, ..draft })
}

fn entry(image: PathBuf, raters: Vec<RaterFiles>, channels: usize) -> CaseEntry {
    let id = stem(&image);
    let files = CaseFiles { images: image_files(image, channels), raters, mask: None };
    CaseEntry::of_files(id, None, files)
}

/// The 4D image; or, where it is not there, its channels as nnU-Net v1 stores them, with `_0000` and so on.
fn image_files(image: PathBuf, channels: usize) -> Vec<Option<PathBuf>> {
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
