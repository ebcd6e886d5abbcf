//! Folders and files of a dataset: each folder is listed once, and each file is looked into once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ssn_io::Result;
use ssn_io::dicom::is_series_folder;

use crate::dataset::{FindingKind, LabelHistogram, MOST_CLASSES, Split, is_lossy, read_labels};
use crate::resolve::Hint;
use crate::resolve::files::{entries, is_image, name, shape};

/// Content of a file that may be a label map.
#[derive(Debug, Clone)]
pub enum Look {
    Values(Box<LabelHistogram>),
    /// Mask of several colors, which cannot be used but must be reported.
    Colors,
    /// Picture, or a file that cannot be read.
    Other,
}

impl Look {
    /// Returns `true` if the file has at most `most` different values, all of them integers.
    pub fn has_at_most(&self, most: usize) -> bool {
        matches!(self, Self::Values(values) if values.distinct() <= most)
    }

    /// Returns `true` if the file is a label map by its values; `None` if it cannot be read.
    pub fn is_label_map(&self) -> Option<bool> {
        match self {
            Self::Values(values) => Some(values.distinct() <= MOST_CLASSES || values.is_mask()),
            Self::Colors => Some(true),
            Self::Other => None,
        }
    }
}

/// Looks into files whose names leave their roles open.
pub trait Probe {
    /// Looks at the values of a file.
    fn look(&self, path: &Path) -> Look;
    /// Returns the shape `[c, d, h, w]` of an image; `None` if it cannot be read.
    fn shape(&self, path: &Path) -> Option<[usize; 4]>;
}

/// Probe of the files themselves.
pub struct Disk;

impl Probe for Disk {
    fn look(&self, path: &Path) -> Look {
        match read_labels(path) {
            Ok(labels) => {
                let mut values = LabelHistogram::default();
                values.add(&labels.data, is_lossy(path));
                Look::Values(Box::new(values))
            }
            Err(finding) if finding.kind == FindingKind::LabelRange => Look::Colors,
            Err(_) => Look::Other,
        }
    }

    fn shape(&self, path: &Path) -> Option<[usize; 4]> {
        shape(path).ok()
    }
}

/// Results by path, each made once.
struct Memo<V>(RefCell<BTreeMap<PathBuf, V>>);

impl<V: Clone> Memo<V> {
    fn new() -> Self {
        Self(RefCell::new(BTreeMap::new()))
    }

    fn get(&self, path: &Path, make: impl FnOnce() -> Result<V>) -> Result<V> {
        if let Some(known) = self.0.borrow().get(path) {
            return Ok(known.clone());
        }
        let made = make()?;
        self.0.borrow_mut().insert(path.to_owned(), made.clone());
        Ok(made)
    }
}

/// File or folder.
struct Entry {
    path: PathBuf,
    is_dir: bool,
    is_file: bool,
}

/// Folders and files of a dataset.
pub struct Tree<'p> {
    probe: &'p dyn Probe,
    listed: Memo<Rc<[Entry]>>,
    series: Memo<bool>,
    looks: Memo<Look>,
    shapes: Memo<Option<[usize; 4]>>,
}

/// Part of a dataset by the name of its folder, with the folder.
pub type PartPath = (Option<Split>, PathBuf);

impl Tree<'_> {
    /// Reads folders and files from the disk.
    pub fn new() -> Tree<'static> {
        Tree::with(&Disk)
    }

    pub fn with(probe: &dyn Probe) -> Tree<'_> {
        Tree { probe, listed: Memo::new(), series: Memo::new(), looks: Memo::new(), shapes: Memo::new() }
    }

    fn list(&self, folder: &Path) -> Result<Rc<[Entry]>> {
        self.listed.get(folder, || {
            let entry = |path: PathBuf| {
                let kind = path.metadata().map(|data| (data.is_dir(), data.is_file())).unwrap_or_default();
                Entry { path, is_dir: kind.0, is_file: kind.1 }
            };
            Ok(entries(folder)?.into_iter().map(entry).collect())
        })
    }

    fn paths(&self, folder: &Path, wanted: impl Fn(&Entry) -> bool) -> Result<Vec<PathBuf>> {
        Ok(self.list(folder)?.iter().filter(|entry| wanted(entry)).map(|entry| entry.path.clone()).collect())
    }

    /// Returns the folders in a folder.
    pub fn folders(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        self.paths(folder, |entry| entry.is_dir)
    }

    /// Returns the files in a folder.
    pub fn files(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        self.paths(folder, |entry| entry.is_file)
    }

    /// Returns `true` if a folder has entries, and all are folders.
    pub fn has_only_folders(&self, folder: &Path) -> Result<bool> {
        let listed = self.list(folder)?;
        Ok(!listed.is_empty() && listed.iter().all(|entry| entry.is_dir))
    }

    /// Returns the files in a folder whose names end like images, and the folders of DICOM series.
    pub fn images(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        self.paths(folder, |entry| match entry.is_dir {
            true => self.is_series(&entry.path),
            false => entry.is_file && is_image(&entry.path),
        })
    }

    /// Returns `true` if a folder holds the slices of a DICOM series.
    pub fn is_series(&self, folder: &Path) -> bool {
        self.series.get(folder, || Ok(is_series_folder(folder))).unwrap_or_default()
    }

    /// Returns the entry of a folder whose whole name has a meaning, by the first word that an entry has.
    pub fn child(&self, folder: &Path, hint: Hint) -> Result<Option<PathBuf>> {
        let present = self.paths(folder, |_| true)?;
        let find =
            |word: &'static str| present.iter().find(|path| name(path).eq_ignore_ascii_case(word)).cloned();
        Ok(hint.words().find_map(find))
    }

    /// Returns the folder itself, and its folders named `train`, `val`, `test` or alike.
    pub fn parts(&self, root: &Path) -> Result<Vec<PartPath>> {
        let own = self.inner_parts(root)?.into_iter().map(|(split, folder)| (Some(split), folder));
        Ok(std::iter::once((None, root.to_owned())).chain(own).collect())
    }

    /// Returns the folders in a folder named `train`, `val`, `test` or alike.
    pub fn inner_parts(&self, folder: &Path) -> Result<Vec<(Split, PathBuf)>> {
        let folders = self.folders(folder)?.into_iter();
        Ok(folders.filter_map(|folder| Some((Split::from_folder(&name(&folder))?, folder))).collect())
    }

    /// Returns the folders of parts in a folder of images, and the folders of patients if it holds no image itself.
    pub fn parts_and_patients(&self, pictures: &Path) -> Result<Vec<PartPath>> {
        let of_part = |folder: PathBuf| (Split::from_folder(&name(&folder)), folder);
        let mut folders: Vec<_> = self.folders(pictures)?.into_iter().map(of_part).collect();
        let has_images = !self.images(pictures)?.is_empty();
        folders.retain(|(part, folder)| part.is_some() || !has_images && !self.is_series(folder));
        folders.sort_by_key(|(part, _)| part.is_none());
        Ok(folders)
    }

    /// Returns the folder in a folder for the same part or patient as another one: `alice/train` for `images/train`.
    pub fn like(&self, folder: &Path, part: Option<Split>, other: &Path) -> Result<Option<PathBuf>> {
        let is_like = |own: &PathBuf| match part {
            Some(_) => Split::from_folder(&name(own)) == part,
            None => name(own).eq_ignore_ascii_case(&name(other)),
        };
        Ok(self.folders(folder)?.into_iter().find(is_like))
    }

    /// Returns the files and DICOM series in a folder and up to `depth` folders below, and errors of listing.
    pub fn below(&self, folder: &Path, depth: usize) -> Vec<Result<PathBuf>> {
        let listed = match self.list(folder) {
            Ok(listed) => listed,
            Err(error) => return vec![Err(error)],
        };
        let is_own = |entry: &&Entry| !entry.is_dir || self.is_series(&entry.path);
        let (own, inner): (Vec<&Entry>, Vec<&Entry>) = listed.iter().partition(is_own);
        let inner =
            inner.into_iter().filter(|_| depth > 0).flat_map(|entry| self.below(&entry.path, depth - 1));
        own.into_iter().map(|entry| Ok(entry.path.clone())).chain(inner).collect()
    }

    /// Looks at the values of a file.
    pub fn look(&self, path: &Path) -> Look {
        self.looks.get(path, || Ok(self.probe.look(path))).unwrap_or(Look::Other)
    }

    /// Returns the shape `[c, d, h, w]` of an image; `None` if it cannot be read.
    pub fn shape(&self, path: &Path) -> Option<[usize; 4]> {
        self.shapes.get(path, || Ok(self.probe.shape(path))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Probe that counts looks.
    #[derive(Default)]
    struct Counter(Cell<usize>);

    impl Probe for Counter {
        fn look(&self, _: &Path) -> Look {
            self.0.set(self.0.get() + 1);
            Look::Colors
        }

        fn shape(&self, _: &Path) -> Option<[usize; 4]> {
            None
        }
    }

    #[test]
    fn each_file_is_looked_into_once() {
        let counter = Counter::default();
        let tree = Tree::with(&counter);
        for file in ["a", "b", "a"] {
            assert_eq!(tree.look(Path::new(file)).is_label_map(), Some(true));
        }
        assert_eq!((counter.0.get(), tree.shape(Path::new("a"))), (2, None));
    }

    #[test]
    fn folders_are_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("Val/inner")).unwrap();
        std::fs::write(folder.path().join("Val/inner/a.png"), b"").unwrap();
        let tree = Tree::new();
        assert_eq!(tree.parts(folder.path()).unwrap().len(), 2);
        std::fs::create_dir(folder.path().join("test")).unwrap();
        assert_eq!(tree.parts(folder.path()).unwrap().len(), 2);
        assert_eq!([1, 2].map(|depth| tree.below(folder.path(), depth).len()), [0, 1]);
    }
}
