//! Layouts, recognized by looking. Each file knows one; all give a [`Draft`], which becomes a [`Dataset`].

mod cache;
mod case_folders;
mod csv_index;
mod decathlon;
mod draft;
mod folder_pair;
mod image_names;
mod images;
mod json;
mod lidc_hdf5;
mod lidc_jpeg;
mod lidc_pickle;
mod lidc_png;
mod nnunet;
mod of_images;
mod qubiq;
mod role;
mod values;

use std::path::{Path, PathBuf};

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::finding::{Finding, Kind, Severity};
use crate::folders::{entries, name, subfolders};
use crate::labels::LabelCoding;
use crate::source::Labels;
use crate::split::Split;
use draft::Draft;

pub use cache::{CACHE_ENDING, encode as encode_cache};

/// What is already known about a dataset, from a config; what is not known is found out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// The channels to use, by their names in the dataset.
    pub channels: Option<Vec<String>>,
    /// The names of the classes, the background first.
    pub classes: Option<Vec<String>>,
    /// The rule from stored labels to classes.
    pub coding: Option<LabelCoding>,
}

impl Dataset {
    /// Recognizes a dataset by looking at a folder or file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, &Known::default())
    }

    /// The same with what is already known; label files are then not looked through for their values.
    pub fn open_with(path: &Path, known: &Known) -> Result<Self> {
        recognize(path)?.complete(path, known)
    }
}

/// What a layout looks for: gives a draft if the place is of its kind.
type Attempt = fn(&Path) -> Result<Option<Draft>>;

/// Layouts with a description or an index, the most telling ones first.
const DESCRIBED: [Attempt; 3] = [nnunet::recognize, decathlon::recognize, csv_index::recognize];
/// Layouts of one file with all cases. Such a file may also lie beside a dataset that is none of these.
const OF_ONE_FILE: [Attempt; 3] = [cache::recognize, lidc_pickle::recognize, lidc_hdf5::recognize];
/// Layouts of many files.
const OF_FOLDERS: [Attempt; 4] =
    [qubiq::recognize, lidc_png::recognize, lidc_jpeg::recognize, folder_pair::recognize];

fn recognize(path: &Path) -> Result<Draft> {
    check_exists(path)?;
    if path.is_file() {
        return of_file(path, Labels::Needed);
    }
    let (found, strays) = in_folder(path)?;
    let found = match found {
        None => case_folders::recognize(path)?,
        found => found,
    };
    match (found, strays) {
        (Some(mut draft), strays) => {
            draft.findings.extend(strays.iter().map(stray));
            Ok(draft)
        }
        (None, strays) => Err(strays.into_iter().next().unwrap_or_else(|| {
            let advice = "expected one of: dataset.json with imagesTr and labelsTr; a CSV with the columns id, seg \
                          and channels; a pickle or HDF5 file; images/ beside labels/; a folder per case";
            nothing_in(path, "no known layout of a dataset was", advice)
        })),
    }
}

fn check_exists(path: &Path) -> Result<()> {
    let error = || DataError::Dataset {
        path: path.to_owned(),
        reason: "there is no such file or folder".to_owned(),
        advice: "check the path",
    };
    path.exists().then_some(()).ok_or_else(error)
}

/// The dataset in a folder, by the first layout that fits, and files that are not the dataset they could be by their
/// names. Folders per case are left to the caller, who may know the channels.
fn in_folder(path: &Path) -> Result<(Option<Draft>, Vec<DataError>)> {
    let mut strays = vec![];
    for attempt in DESCRIBED {
        if let Some(draft) = attempt(path)? {
            return Ok((Some(draft), strays));
        }
    }
    for attempt in OF_ONE_FILE {
        match attempt(path) {
            Ok(Some(draft)) => return Ok((Some(draft), vec![])),
            Ok(None) => {}
            Err(error) => strays.push(error),
        }
    }
    for attempt in OF_FOLDERS {
        if let Some(draft) = attempt(path)? {
            return Ok((Some(draft), strays));
        }
    }
    Ok((None, strays))
}

/// A folder in which `what` found.
fn nothing_in(folder: &Path, what: &str, advice: &'static str) -> DataError {
    let present = entries(folder).unwrap_or_default();
    let present: Vec<String> = present.iter().take(5).map(|path| name(path)).collect();
    let reason = match present.as_slice() {
        [] => "the folder is empty".to_owned(),
        _ => format!("{what} found among {}, …", present.join(", ")),
    };
    DataError::Dataset { path: folder.to_owned(), reason, advice }
}

/// A file that is not the dataset it could be by its name.
fn stray(error: &DataError) -> Finding {
    Finding::new(Severity::Note, Kind::Layout, format!("not used: {error}"), "")
}

fn of_file(path: &Path, labels: Labels) -> Result<Draft> {
    let lower = name(path).to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    if lower == "dataset.json" {
        return recognize(path.parent().unwrap_or(Path::new(".")));
    }
    if ends(&[".csv"]) {
        return csv_index::open(&[(None, path.to_owned())], labels);
    }
    if ends(&lidc_pickle::ENDINGS) {
        return lidc_pickle::open(&[(None, path.to_owned())]);
    }
    if ends(&lidc_hdf5::ENDINGS) {
        return lidc_hdf5::open(path);
    }
    if ends(&[CACHE_ENDING]) {
        return cache::open(path);
    }
    let reason = match labels {
        Labels::Needed => "the file is no dataset by its name",
        Labels::Optional => "the file is neither an image nor a dataset by its name",
    };
    Err(DataError::Dataset {
        path: path.to_owned(),
        reason: reason.to_owned(),
        advice: "give a folder, a .csv, .pickle, .pickle.gz, .hdf5 or .cache.safetensors file, or dataset.json",
    })
}

/// The folder itself, where cases may lie too, and those of the parts of a dataset, named `train`, `val`, `test` or
/// alike.
fn parts(root: &Path) -> Result<Vec<(Option<Split>, PathBuf)>> {
    let parts = subfolders(root)?
        .into_iter()
        .filter_map(|folder| Split::from_name(&name(&folder)).map(|split| (Some(split), folder)));
    Ok(std::iter::once((None, root.to_owned())).chain(parts).collect())
}

/// Files of one kind in a folder: one alone, or several that are named after the parts of a dataset. Where that is not
/// clear, `is_one` looks into the files.
fn files_by_part(
    folder: &Path,
    endings: &[&str],
    is_one: &dyn Fn(&Path) -> bool,
) -> Result<Vec<(Option<Split>, PathBuf)>> {
    let matches = |path: &PathBuf| {
        let lower = name(path).to_lowercase();
        path.is_file() && endings.iter().any(|ending| lower.ends_with(ending))
    };
    let mut files: Vec<PathBuf> = entries(folder)?.into_iter().filter(matches).collect();
    let split = |path: &PathBuf| Split::from_words(name(path).split('.').next().unwrap_or_default());
    let unclear = |files: &[PathBuf]| files.len() > 1 && files.iter().any(|path| split(path).is_none());
    if unclear(&files) {
        files.retain(|path| is_one(path));
    }
    if unclear(&files) {
        let names: Vec<String> = files.iter().map(|path| name(path)).collect();
        return Err(DataError::Dataset {
            path: folder.to_owned(),
            reason: format!("several files could be the dataset: {}", names.join(", ")),
            advice: "give one of them, or name them after train, validation and test",
        });
    }
    Ok(files.into_iter().map(|path| (split(&path), path)).collect())
}

/// A name within a part: cases of different parts may have the same name in their folders.
fn unique(split: Option<Split>, id: String, taken: &mut std::collections::BTreeSet<String>) -> String {
    let id = match split {
        Some(split) if taken.contains(&id) => format!("{split}/{id}"),
        _ => id,
    };
    taken.insert(id.clone());
    id
}
