//! Datasets that a JSON file describes: nnU-Net v2, the Medical Segmentation Decathlon, and datalists of MONAI.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ssn_io::{Error, Limits, Result, read_bytes};

use crate::dataset::{CaseEntry, CaseFiles, Finding, FindingKind, Layout, RaterFiles, Split};
use crate::layouts::Draft;
use crate::resolve::files::{ends_in, entries, name, natural_order, stem};
use crate::resolve::{channel_of, first_unique, unique};

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

    /// The list of the first of these fields that is there.
    fn list(&self, fields: &[&str]) -> Option<&Vec<Value>> {
        fields.iter().find_map(|field| self.fields.get(*field)?.as_array())
    }

    fn is_datalist(&self) -> bool {
        self.list(&TRAINING_LISTS)
            .is_some_and(|list| list.first().is_some_and(|item| item.get("image").is_some()))
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

    fn wrong_field(&self, field: &str, expected: &str) -> Error {
        let found = self.fields.get(field).map_or("missing".to_owned(), |value| {
            let text: String = value.to_string().chars().take(80).collect();
            if text.len() < 80 { text } else { format!("{text}…") }
        });
        wrong(self.path, format!("the field `{field}` is {found}, but it must be {expected}"))
    }
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::data(path, reason).advise("correct the file")
}

/// Larger files are not looked into: they are annotations of another kind.
const LARGEST: u64 = 64 << 20;
const TRAINING_LISTS: [&str; 2] = ["training", "train"];

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let path = root.join("dataset.json");
    if path.is_file()
        && let Some(draft) = described(&path)?
    {
        return Ok(Some(draft));
    }
    let is_small = |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LARGEST);
    let is_list = |path: &PathBuf| Description::read(path).is_ok_and(|list| list.is_datalist());
    let lists = entries(root)?.into_iter().filter(|path| ends_in(path, &[".json"]));
    match &lists.filter(is_small).filter(is_list).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [list] => described(list),
        several => {
            let names: Vec<String> = several.iter().map(|path| name(path)).collect();
            let reason = format!("several lists could be the dataset: {}", names.join(", "));
            Err(Error::data(root, reason).advise("give one of them"))
        }
    }
}

/// The dataset that a JSON file describes.
pub(super) fn open(path: &Path) -> Result<Draft> {
    described(path)?.ok_or_else(|| {
        let reason =
            "the file is neither that of nnU-Net nor a list of cases: `training` is missing".to_owned();
        wrong(path, reason)
    })
}

fn described(path: &Path) -> Result<Option<Draft>> {
    let root = path.parent().unwrap_or(Path::new(""));
    let description = Description::read(path)?;
    let has = |field: &str| description.fields.contains_key(field);
    if has("channel_names") && ["imagesTr", "imagesTs"].iter().any(|name| root.join(name).is_dir()) {
        return nnunet(root, &description).map(Some);
    }
    if (has("modality") && has("training")) || description.is_datalist() {
        return datalist(root, &description).map(Some);
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

const TRAINING: &str =
    "a list such as [{\"image\": \"./imagesTr/a.nii.gz\", \"label\": \"./labelsTr/a.nii.gz\"}]";

/// A case of a list.
struct Listed {
    split: Split,
    /// All channels, or one file for each.
    images: Vec<PathBuf>,
    /// One for each rater.
    labels: Vec<PathBuf>,
}

/// The Decathlon: `modality`, `labels` and a list `training` of labels and images, which hold all channels in one 4D
/// file. A list `test` names images without labels.
///
/// MONAI: the same without `modality` or `labels`; `image` may be a list of channels, `label` a list of raters, `fold` a
/// number, of which MONAI takes 0 for validation, and there may be lists `validation` and `testing`.
fn datalist(root: &Path, description: &Description<'_>) -> Result<Draft> {
    let is_decathlon = description.fields.contains_key("modality");
    let names = |field: &str| match description.names_by_number(field) {
        Err(error) if is_decathlon => Err(error),
        names => Ok(names.ok()),
    };
    let (channels, classes) = (names("modality")?, names("labels")?);
    let wrong = || description.wrong_field("training", TRAINING);
    let training = description.list(&TRAINING_LISTS).ok_or_else(wrong)?;
    let validation = description.list(&["validation", "val"]).map_or(&[][..], Vec::as_slice);
    let fold = |item: &Value| item.get("fold")?.as_u64();
    let has_folds = validation.is_empty()
        && training.iter().any(|item| fold(item) == Some(0))
        && training.iter().any(|item| fold(item) > Some(0));
    let split =
        |item: &Value| if has_folds && fold(item) == Some(0) { Split::Validation } else { Split::Train };
    let listed = |split: Split, item: &Value| Listed {
        split,
        images: files(root, item.get("image").unwrap_or(item)),
        labels: item.get("label").map_or(vec![], |label| files(root, label)),
    };
    let mut cases: Vec<Listed> = training.iter().map(|item| listed(split(item), item)).collect();
    cases.extend(validation.iter().map(|item| listed(Split::Validation, item)));
    if cases.iter().any(|case| case.images.is_empty() || case.labels.is_empty()) {
        return Err(wrong());
    }
    // Training needs no list `test`, so that an odd one stops nothing.
    let test = description.list(&["testing", "test"]).into_iter().flatten();
    cases.extend(test.map(|item| listed(Split::Test, item)).filter(|case| !case.images.is_empty()));
    let (ids, mut taken) = (ids(&cases), BTreeSet::new());
    let (mut entries, mut unlabeled) = (vec![], vec![]);
    for (id, Listed { split, images, labels }) in ids.into_iter().zip(cases) {
        let images = match &images[..] {
            [image] => image_files(image.clone(), channels.as_ref().map_or(1, Vec::len)),
            _ => images.into_iter().map(Some).collect(),
        };
        let group = if labels.is_empty() { &mut unlabeled } else { &mut entries };
        let raters =
            labels.into_iter().enumerate().map(|(rater, path)| RaterFiles::new(rater, path)).collect();
        let id = unique(Some(split), None, id, &mut taken);
        group.push(CaseEntry::of_files(id, Some(split), CaseFiles { images, raters, mask: None }));
    }
    let note = "the cases of fold 0 are for validation, as in MONAI; to divide them anew, set data.split.given = false";
    let findings = has_folds.then(|| Finding::note(FindingKind::Layout, note)).into_iter().collect();
    let layout = if is_decathlon { Layout::Decathlon } else { Layout::Datalist };
    Ok(Draft { channels, classes, unlabeled, findings, ..Draft::new(layout, entries) })
}

/// The files that a path or a list of paths names.
fn files(root: &Path, value: &Value) -> Vec<PathBuf> {
    let paths = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    paths.iter().filter_map(Value::as_str).map(|path| root.join(path)).collect()
}

/// Names of cases: those of their first images or, where two are the same, of the folders of these, or both.
fn ids(cases: &[Listed]) -> Vec<String> {
    let folder = |path: &Path| name(path.parent().unwrap_or(Path::new("")));
    let both = |path: &Path| format!("{}/{}", folder(path), stem(path));
    let ids = |id: &dyn Fn(&Path) -> String| -> Vec<String> {
        cases.iter().map(|case| id(&case.images[0])).collect()
    };
    first_unique([ids(&|path| stem(path)), ids(&folder)]).unwrap_or_else(|_| ids(&both))
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
