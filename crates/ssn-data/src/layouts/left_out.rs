//! Images of a dataset's folder that belong to no case: what recognition did not understand must not be silent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dataset::{Dataset, Finding, FindingKind, Layout};
use crate::layouts::PACKED;
use crate::resolve::Tree;
use crate::resolve::files::{ends_in, is_image, is_other_picture, name};
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
        let mut found = if self.root.is_dir() { self.unused() } else { BTreeMap::new() };
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

    /// Returns the files and DICOM series below the folder that are not used, by their folders. Folders that cannot be
    /// listed are reported when they are read.
    fn unused(&self) -> BTreeMap<PathBuf, Vec<String>> {
        let cases = self.entries.iter().chain(&self.excluded);
        let others = self.sources.iter().flat_map(|source| &source.files);
        let used: BTreeSet<&PathBuf> =
            cases.flat_map(|entry| entry.files.paths()).chain(&self.unlabeled).chain(others).collect();
        let has_packed = self.entries.iter().any(|entry| entry.packed.is_some());
        let mut found = BTreeMap::<PathBuf, Vec<String>>::new();
        for path in Tree::new().below(&self.root, DEEPEST).into_iter().flatten() {
            let is_packed = PACKED.iter().any(|(endings, _)| ends_in(&path, endings));
            let is_unused = !used.contains(&path);
            let name = match path.is_dir() {
                true if is_unused => format!("{}/", name(&path)),
                false if is_packed && !has_packed => name(&path),
                false if !is_packed && is_unused && (is_image(&path) || is_other_picture(&path)) => {
                    name(&path)
                }
                _ => continue,
            };
            found.entry(path.parent().unwrap_or(&self.root).to_owned()).or_default().push(name);
        }
        found
    }
}
