//! Images of a dataset's folder that belong to no case: what recognition did not understand must not be silent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::files::{entries, is_image, is_other_picture, name};
use super::{PACKED, ends_in};
use crate::dataset::{Dataset, Finding, FindingKind, Layout};
use crate::text::counted;

/// How deep folders are looked through.
pub(super) const DEEPEST: usize = 6;
/// The folders that are listed one by one, and the files that are named of each.
const LISTED: [usize; 2] = [8, 3];

const ADVICE: &str = "name folders after train, validation or test, label files after their images, and channels as those of the \
                      other cases; what is not meant to be used can stay";

/// What to do with pictures in other formats.
pub(super) const SAVE_AGAIN: &str = "save them as PNG or TIFF";

impl Dataset {
    /// The images and files of many cases below its folder that are not used, by their folders.
    pub fn left_out(&self) -> Vec<Finding> {
        let mut found = BTreeMap::new();
        if self.root.is_dir() {
            let cases = self.entries.iter().chain(&self.excluded);
            let used = cases.flat_map(|entry| entry.files.paths()).chain(&self.unlabeled).collect();
            let has_packed = self.entries.iter().any(|entry| entry.packed.is_some());
            collect(&self.root, &used, has_packed, 0, &mut found);
        }
        // Files that recognition looked into and told of.
        for (folder, files) in &mut found {
            let is_told = |file: &String| {
                let path = folder.join(file).display().to_string();
                self.findings.iter().any(|told| told.reason.contains(&path))
            };
            files.retain(|file| !is_told(file));
        }
        found.retain(|_, files| !files.is_empty());
        // What a list of cases does not name is left out on purpose, and BIDS has images of many kinds.
        let is_listed =
            matches!(self.layout, Layout::Csv | Layout::Decathlon | Layout::Datalist | Layout::Bids);
        let finding = |reason: String| match is_listed {
            true => Finding::note(FindingKind::LeftOut, reason),
            false => Finding::warning(FindingKind::LeftOut, reason, ADVICE),
        };
        let [folders, names] = LISTED;
        let place = |folder: &Path| match folder.strip_prefix(&self.root) {
            Ok(inner) if inner.as_os_str().is_empty() => "the folder itself".to_owned(),
            Ok(inner) => format!("{}/", inner.display()),
            Err(_) => folder.display().to_string(),
        };
        if found.len() > folders {
            let count = found.values().map(Vec::len).sum();
            let such =
                found.iter().take(names).map(|(folder, files)| format!("{}{}", place(folder), files[0]));
            let such = such.collect::<Vec<_>>().join(", ");
            let folders = counted(found.len(), "folder");
            return vec![finding(format!(
                "left out: {} in {folders}, such as {such}",
                counted(count, "file")
            ))];
        }
        let of_folder = |(folder, files): (&PathBuf, &Vec<String>)| {
            let more = if files.len() > names { ", …" } else { "" };
            let listed = files.iter().take(names).cloned().collect::<Vec<_>>().join(", ");
            let reason =
                format!("left out: {} in {} ({listed}{more})", counted(files.len(), "file"), place(folder));
            match files.iter().all(|file| is_other_picture(Path::new(file))) {
                true => {
                    let reason = format!("{reason}, in a format that is not read");
                    Finding::warning(FindingKind::LeftOut, reason, SAVE_AGAIN)
                }
                false => finding(reason),
            }
        };
        found.iter().map(of_folder).collect()
    }
}

/// Adds what is not used in a folder and below. Folders that cannot be listed are left to those who read them.
fn collect(
    folder: &Path,
    used: &BTreeSet<&PathBuf>,
    has_packed: bool,
    depth: usize,
    found: &mut BTreeMap<PathBuf, Vec<String>>,
) {
    for path in entries(folder).unwrap_or_default() {
        if path.is_dir() {
            if ssn_io::dicom::is_series_folder(&path) {
                if !used.contains(&path) {
                    found.entry(folder.to_owned()).or_default().push(format!("{}/", name(&path)));
                }
            } else if depth < DEEPEST {
                collect(&path, used, has_packed, depth + 1, found);
            }
            continue;
        }
        let is_packed = PACKED.iter().any(|(endings, _)| ends_in(&path, endings));
        let is_picture = is_image(&path) || is_other_picture(&path);
        if is_packed && !has_packed || is_picture && !is_packed && !used.contains(&path) {
            found.entry(folder.to_owned()).or_default().push(name(&path));
        }
    }
}
