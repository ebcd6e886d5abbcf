//! Recognition of a dataset by the first layout that fits its folder or file.

use std::path::{Path, PathBuf};

use ssn_io::{Error, Result};

use crate::dataset::{Dataset, Finding, FindingKind, LabelCoding, LabelPolicy};
use crate::layouts::{BY_NAMES, DESCRIBED, Draft, OF_FOLDERS, PACKED, csv_index, dataset_json, left_out};
use crate::resolve::Tree;
use crate::resolve::files::{ends_in, entries, files_by_part, is_other_picture, name};
use crate::text::listed;

/// What is already known about a dataset, from a config; what is not known is found out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DatasetOverrides {
    /// The channels to use, by their names in the dataset.
    pub channels: Option<Vec<String>>,
    /// The names of the classes, the background first.
    pub classes: Option<Vec<String>>,
    /// The rule from stored labels to classes.
    pub coding: Option<LabelCoding>,
    /// The source whose raters are used, where a dataset has several ([`Dataset::sources`]).
    pub annotations: Option<String>,
}

impl Dataset {
    /// Recognizes a dataset by looking at a folder or file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, &DatasetOverrides::default())
    }

    /// Whether a folder or file has a layout of a dataset, whole or damaged.
    pub fn is_recognized(path: &Path) -> bool {
        path.is_file() || path.is_dir() && !matches!(in_whole_folder(&Tree::new(), path), Ok((None, _)))
    }

    /// The same with what is already known; label files are then not looked through for their values.
    pub fn open_with(path: &Path, known: &DatasetOverrides) -> Result<Self> {
        recognize(path)?.complete(path, known)
    }
}

fn recognize(path: &Path) -> Result<Draft> {
    check_exists(path)?;
    if path.is_file() {
        return of_file(path, LabelPolicy::Required);
    }
    let tree = Tree::new();
    let (found, strays) = in_whole_folder(&tree, path)?;
    let Some(mut draft) = found else {
        let is_dataset = |folder: &PathBuf| matches!(in_whole_folder(&tree, folder), Ok((Some(_), _)));
        let inner: Vec<String> =
            tree.folders(path)?.iter().filter(|inner| is_dataset(inner)).map(|inner| name(inner)).collect();
        match &inner[..] {
            [] => {}
            [only] => {
                let reason = format!("the dataset is not here but in its folder {only}");
                return Err(Error::data(path, reason).advise("give that folder"));
            }
            several => {
                let reason = format!(
                    "there is no dataset here, but one in each of its {} folders: {}",
                    several.len(),
                    listed(several, 5)
                );
                let advice = "give one of them, or list the cases of all in a CSV with the columns id, image, seg and split";
                return Err(Error::data(path, reason).advise(advice));
            }
        }
        let mut files = tree.below(path, left_out::DEEPEST).into_iter().flatten();
        if let Some(picture) = files.find(|file| is_other_picture(file)) {
            let reason = format!(
                "no known layout of a dataset was found, and files such as {} have a format that is not read",
                picture.strip_prefix(path).unwrap_or(&picture).display()
            );
            return Err(Error::data(path, reason).advise(left_out::SAVE_AGAIN));
        }
        let advice = "expected one of: dataset.json with imagesTr and labelsTr; a CSV with the columns id, seg \
                      and channels; a pickle or HDF5 file; images/ beside labels/ or beside a folder per rater; \
                      a folder per case";
        return Err(nothing_in(path, strays, "no known layout of a dataset was", advice));
    };
    draft.findings.extend(strays.iter().map(stray));
    draft.findings.extend(csv_index::unused(path));
    Ok(draft)
}

/// Like [`in_folder`], with layouts by the names of files alone.
fn in_whole_folder(tree: &Tree<'_>, path: &Path) -> Result<(Option<Draft>, Vec<Error>)> {
    let (mut found, strays) = in_folder(tree, path)?;
    for attempt in BY_NAMES {
        if found.is_none() {
            found = attempt(tree, path)?;
        }
    }
    Ok((found, strays))
}

pub(super) fn check_exists(path: &Path) -> Result<()> {
    let error = || Error::data(path, "there is no such file or folder").advise("check the path");
    if path.exists() && !path.is_file() && !path.is_dir() {
        let reason = "this is neither a plain file nor a folder";
        return Err(Error::data(path, reason).advise("give the folder or file of a dataset"));
    }
    path.exists().then_some(()).ok_or_else(error)
}

/// Returns the dataset in a folder, by the first layout that fits, and files that are not the dataset they could be by their
/// names. Layouts by the names of files alone are left to the caller, who may know the channels.
pub(super) fn in_folder(tree: &Tree<'_>, path: &Path) -> Result<(Option<Draft>, Vec<Error>)> {
    let mut strays = vec![];
    for attempt in DESCRIBED {
        if let Some(draft) = attempt(path)? {
            return Ok((Some(draft), strays));
        }
    }
    for (endings, open) in PACKED {
        let is_one = |file: &Path| matches!(open(&[(None, file.to_owned())]), Ok(Some(_)));
        match files_by_part(path, endings, &is_one).and_then(|files| open(&files)) {
            Ok(Some(draft)) => return Ok((Some(draft), vec![])),
            Ok(None) => {}
            Err(error) => strays.push(error),
        }
    }
    for attempt in OF_FOLDERS {
        if let Some(draft) = attempt(tree, path)? {
            return Ok((Some(draft), strays));
        }
    }
    Ok((None, strays))
}

/// Returns the error of a folder in which `what` found: of the first file with the name of a dataset, or a list of the
/// folder's entries.
pub(super) fn nothing_in(folder: &Path, strays: Vec<Error>, what: &str, advice: &'static str) -> Error {
    if let Some(stray) = strays.into_iter().next() {
        return stray;
    }
    let present = entries(folder).unwrap_or_default();
    let present: Vec<String> = present.iter().take(5).map(|path| name(path)).collect();
    let reason = match present.as_slice() {
        [] => "the folder is empty".to_owned(),
        _ => format!("{what} found among {}, …", present.join(", ")),
    };
    Error::data(folder, reason).advise(advice)
}

/// Reports a file that is not the dataset it could be by its name.
pub(super) fn stray(error: &Error) -> Finding {
    Finding::note(FindingKind::Layout, format!("not used: {error}"))
}

pub(super) fn of_file(path: &Path, labels: LabelPolicy) -> Result<Draft> {
    let files = [(None, path.to_owned())];
    if ends_in(path, &[".json"]) {
        return dataset_json::open(path);
    }
    if ends_in(path, &[".csv"]) {
        return csv_index::open(&files, labels);
    }
    for (endings, open) in PACKED {
        if ends_in(path, endings)
            && let Some(draft) = open(&files)?
        {
            return Ok(draft);
        }
    }
    let reason = match labels {
        LabelPolicy::Required => "the file is no dataset by its name",
        LabelPolicy::Optional | LabelPolicy::Ignored => {
            "the file is neither an image nor a dataset by its name"
        }
    };
    Err(Error::data(path, reason.to_owned())
        .advise("give a folder, or a .csv, .json, .pickle, .pickle.gz, .hdf5 or .cache.safetensors file"))
}
