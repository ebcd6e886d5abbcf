//! Images for prediction: files, folders and datasets become one dataset whose labels are optional.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::images::{self, same_id};
use super::{Known, check_exists, in_folder, nothing_in, of_file, stray};
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::finding::{Finding, Kind, Severity};
use crate::folders::is_image;
use crate::source::Labels;

impl Dataset {
    /// Images for a model with these channels and classes, labeled or not.
    ///
    /// A path is an image, a folder of images or of cases, or a dataset of any layout, of which all images are
    /// taken. Labels and regions of interest come along where they are there.
    pub fn of_images(paths: &[PathBuf], channels: &[String], classes: &[String]) -> Result<Self> {
        let (mut files, mut root) = (BTreeSet::new(), None);
        let (mut findings, mut drafts) = (vec![], vec![]);
        for path in paths {
            check_exists(path)?;
            if path.is_dir() {
                let (draft, strays) = in_folder(path)?;
                findings.extend(strays.iter().map(stray));
                match draft {
                    Some(draft) => drafts.push((path, draft)),
                    None => {
                        files.extend(images_in(path, strays)?);
                        root = root.or(Some(path));
                    }
                }
            } else if is_image(path) {
                files.insert(path.clone());
                root = root.or(Some(path));
            } else {
                drafts.push((path, of_file(path, Labels::Optional)?));
            }
        }
        if let Some(root) = root {
            drafts.push((root, images::draft(&files, channels)?));
        }
        let mut datasets = vec![];
        for (path, draft) in drafts {
            datasets.push(for_model(draft, path, channels, classes)?);
        }
        let mut all = joined(datasets)?;
        all.findings.extend(findings);
        Ok(all)
    }
}

/// The images in a folder that is no dataset, at least one.
fn images_in(folder: &Path, strays: Vec<DataError>) -> Result<Vec<PathBuf>> {
    let found = images::below(folder)?;
    if found.is_empty() {
        let advice =
            "give images, folders of them, or a dataset such as a CSV with the columns id and channels";
        let nothing = || nothing_in(folder, "no image was", advice);
        return Err(strays.into_iter().next().unwrap_or_else(nothing));
    }
    Ok(found)
}

/// A dataset with the channels and classes of a model.
fn for_model(mut draft: Draft, root: &Path, channels: &[String], classes: &[String]) -> Result<Dataset> {
    draft.entries.append(&mut draft.unlabeled);
    let stored = match draft.channels.take() {
        Some(channels) => channels,
        None => draft.channels_of_the_first(root)?,
    };
    let (wanted, finding) = fitting(root, &stored, channels)?;
    draft.channels = Some(stored);
    draft.findings.extend(finding);
    let known = Known { channels: Some(wanted), classes: Some(classes.to_vec()), coding: None };
    let dataset = draft.complete(root, &known)?.with_optional_labels();
    Ok(Dataset { channels: channels.to_vec(), ..dataset })
}

/// The stored channels that a model takes: those of its names, or, where no name is the same, all in their order.
fn fitting(root: &Path, stored: &[String], channels: &[String]) -> Result<(Vec<String>, Option<Finding>)> {
    let same = |name: &String| stored.iter().find(|stored| stored.eq_ignore_ascii_case(name)).cloned();
    if let Some(found) = channels.iter().map(same).collect() {
        return Ok((found, None));
    }
    if stored.len() == channels.len() && channels.iter().all(|name| same(name).is_none()) {
        let reason = format!(
            "the channels {} are taken for {} of the model, in this order",
            stored.join(", "),
            channels.join(", ")
        );
        let finding = Finding::new(Severity::Note, Kind::Layout, reason, "").in_file(root);
        return Ok((stored.to_vec(), Some(finding)));
    }
    let reason = format!(
        "the number of channels is {} ({}), but the model takes {} ({})",
        stored.len(),
        stored.join(", "),
        channels.len(),
        channels.join(", ")
    );
    Err(DataError::Dataset { path: root.to_owned(), reason, advice: "name the channels as the model does" })
}

/// Several datasets as one.
fn joined(datasets: Vec<Dataset>) -> Result<Dataset> {
    let mut datasets = datasets.into_iter();
    let Some(mut all) = datasets.next() else {
        let (field, value, expected) =
            ("the list of images", "empty".to_owned(), "at least one path".to_owned());
        return Err(DataError::Setting { field, value, expected });
    };
    for other in datasets {
        if other.reading != all.reading || other.stored_channels.len() != all.stored_channels.len() {
            return Err(DataError::Dataset {
                reason: format!("its files are not stored as those of {}", all.root.display()),
                path: other.root,
                advice: "give the two apart",
            });
        }
        all.entries.extend(other.entries);
        all.findings.extend(other.findings);
    }
    let mut ids = BTreeSet::new();
    match all.entries.iter().find(|entry| !ids.insert(&entry.id)) {
        Some(entry) => Err(same_id(entry.id.clone())),
        None => Ok(all),
    }
}
