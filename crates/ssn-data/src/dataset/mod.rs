//! Datasets: one type for all layouts, and one for the cases, which are loaded one by one.

mod finding;
mod label_reading;
mod labels;
mod layout;
mod normalize;
mod packed;
mod preprocessing;
mod segments;
mod source;
mod split;

pub use finding::{Finding, FindingKind, Severity};
pub use label_reading::LabelReading;
pub use labels::{
    HALF, LabelCoding, LabelHistogram, LabelTable, MOST_CLASSES, UnknownLabels, is_lossy, read_label_map,
    read_labels,
};
pub use layout::Layout;
pub use normalize::{Normalization, extremes, looks_standardized};
pub use packed::{PackedCase, PackedCases, PackedImage, PackedLabels};
pub use preprocessing::{Preprocessing, mask_box, resample_labels};
pub use segments::{NamedFiles, NamedLabels, SameValues};
pub use source::{CaseFiles, LabelPolicy, MissingRater, RaterFiles, RaterMaps, ReadOptions};
pub(crate) use split::inline;
pub use split::{Ratios, Split, SplitAssignment, SplitConfig, SplitFile, divide, fold};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssn_io::{Error, Geometry, Image, Limits, Result, Voxels, write};

use crate::text::{counted, nearest};

/// An image with the label maps of its raters, in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Case {
    /// The name of the case in its dataset.
    pub id: String,
    /// The number of channels `c`.
    pub channels: usize,
    /// `[d, h, w]`; a 2D image has depth 1.
    pub shape: [usize; 3],
    /// The image `[c, d, h, w]`, `w` running fastest.
    pub image: Vec<f32>,
    /// One label map `[d, h, w]` per rater, at least one for training.
    pub raters: Vec<Vec<u8>>,
    /// Which of the dataset's raters each of them is, where not all raters looked at every case; empty means
    /// 0, 1, 2, …
    pub rater_numbers: Vec<usize>,
    /// The region of interest `[d, h, w]`, 1 inside and 0 outside; `None` means everywhere.
    pub mask: Option<Vec<u8>>,
    /// Spacing, origin and direction of the voxels.
    pub geometry: Geometry,
    /// The NIfTI header of its first image file, so that label maps can be written with the same one.
    pub header: Option<Vec<u8>>,
}

impl Case {
    /// The number of voxels, d·h·w.
    pub fn voxels(&self) -> usize {
        self.shape.iter().product()
    }

    /// The bytes that the arrays of this case take.
    pub fn bytes(&self) -> usize {
        4 * self.image.len() + self.voxels() * (self.raters.len() + usize::from(self.mask.is_some()))
    }

    /// The number of the rater at a place of `raters`.
    pub fn rater_number(&self, place: usize) -> usize {
        self.rater_numbers.get(place).copied().unwrap_or(place)
    }

    /// Writes one array of the case, with its geometry.
    ///
    /// # Shapes
    /// `voxels` `[d, h, w]`.
    pub(crate) fn write_array(&self, path: &Path, voxels: Voxels) -> Result<()> {
        let [d, h, w] = self.shape;
        let image = Image::new(voxels, [1, d, h, w], self.geometry, &Limits::default());
        Ok(write(path, &image.map_err(|problem| problem.in_file(path))?)?)
    }
}

/// A set of cases that can be loaded one by one, from any thread, in any order.
pub trait Cases: Send + Sync {
    /// How many cases there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a case.
    fn id(&self, index: usize) -> &str;

    /// How many raters a case has.
    fn rater_count(&self, index: usize) -> usize;

    /// Loads a case: the same values every time.
    fn load(&self, index: usize) -> Result<Case>;

    /// Loads the first case that can be loaded: a damaged one is for the check of a dataset to tell.
    fn load_first(&self) -> Result<Case> {
        first_of(self.len(), |index| self.load(index))
    }
}

/// The first of some cases that loads, or why the very first does not.
fn first_of(len: usize, load: impl Fn(usize) -> Result<Case>) -> Result<Case> {
    let mut first_error = None;
    for index in 0..len {
        match load(index) {
            Ok(case) => return Ok(case),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| no_such_case(0, len)))
}

/// A set of cases held in memory, for tests and for sets that a program makes itself.
#[derive(Debug, Clone, Default)]
pub struct MemoryCases(pub Vec<Case>);

impl Cases for MemoryCases {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn id(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |case| &case.id)
    }

    fn rater_count(&self, index: usize) -> usize {
        self.0.get(index).map_or(0, |case| case.raters.len())
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.0.get(index).cloned().ok_or_else(|| no_such_case(index, self.0.len()))
    }
}

/// Case `index` of a set that has fewer.
pub(crate) fn no_such_case(index: usize, len: usize) -> Error {
    let reason = format!("the set has only {len} cases");
    Error::case(format!("number {index}"), reason).advise("ask for a smaller number")
}

/// A case before it is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseEntry {
    /// The name of the case.
    pub id: String,
    /// The patient or series that it belongs to; splits keep groups together.
    pub group: String,
    /// The part that the dataset itself assigns it to.
    pub split: Option<Split>,
    /// Its files; none where it is one of many cases of a file.
    pub files: CaseFiles,
    /// The file of many cases that it is one of, and its place there.
    pub(crate) packed: Option<(Arc<PackedCases>, usize)>,
}

impl CaseEntry {
    /// A case with files of its own, which is the only one of its group.
    pub fn of_files(id: String, split: Option<Split>, files: CaseFiles) -> Self {
        Self { group: id.clone(), id, split, files, packed: None }
    }

    /// What there is of it in a file of many cases, if that can be used.
    pub(crate) fn record(&self) -> Option<&PackedCase> {
        let (records, place) = self.packed.as_ref()?;
        records.items[*place].as_ref().ok()
    }

    /// The numbers of raters who have no file and are taken to have marked nothing.
    pub(crate) fn empty_raters(&self) -> Vec<usize> {
        let is_empty = |rater: &&RaterFiles| rater.files().is_empty();
        self.files.raters.iter().filter(is_empty).map(|rater| rater.number).collect()
    }

    /// The numbers of its raters.
    pub(crate) fn raters(&self) -> Vec<usize> {
        let packed = 0..self.record().map_or(0, |record| record.raters.len());
        self.files.raters.iter().map(|rater| rater.number).chain(packed).collect()
    }
}

/// Raters of one folder, in a dataset with several such folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationSource {
    /// The name of the folder; `.` for raters next to such folders.
    pub name: String,
    /// The names of its raters.
    pub raters: Vec<String>,
    /// Its label files.
    pub files: Vec<PathBuf>,
}

impl AnnotationSource {
    /// Returns the name with the numbers of raters and files, such as "Experts (2 raters, 70 files)".
    pub fn describe(&self) -> String {
        let [raters, files] =
            [(self.raters.len(), "rater"), (self.files.len(), "file")].map(|(n, of)| counted(n, of));
        format!("{} ({raters}, {files})", self.name)
    }
}

/// A recognized dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The folder or file that it was found in; the first of several.
    pub root: PathBuf,
    /// The layout of its files.
    pub layout: Layout,
    /// Names of the channels that are used.
    pub channels: Vec<String>,
    /// Names of the channels in the files.
    pub stored_channels: Vec<String>,
    /// Names of the classes, the background first.
    pub classes: Vec<String>,
    /// How its files are read.
    pub reading: ReadOptions,
    /// What happens to cases after that.
    pub preprocessing: Preprocessing,
    /// The cases, in natural order of their files.
    pub entries: Vec<CaseEntry>,
    /// Cases that the config leaves out.
    pub excluded: Vec<CaseEntry>,
    /// The names of the raters by their numbers; empty where files only number them.
    pub rater_names: Vec<String>,
    /// The folders of raters if there are several; the first one is used.
    pub sources: Vec<AnnotationSource>,
    /// Images that the layout says have no labels, as those of a challenge's test: only prediction uses them.
    pub unlabeled: Vec<PathBuf>,
    /// What recognition noticed.
    pub findings: Vec<Finding>,
}

/// The names of channels that nothing names.
pub(crate) fn unnamed_channels(count: usize) -> Vec<String> {
    match count {
        1 => vec!["image".to_owned()],
        _ => (0..count).map(|channel| format!("channel_{channel}")).collect(),
    }
}

impl Dataset {
    /// Whether its channels are red, green and blue: three that one file holds, so that nothing names them.
    pub fn is_color(&self) -> bool {
        self.channels.len() == 3 && self.channels == unnamed_channels(3)
    }

    /// Returns the name of the source whose raters are used, if there are several.
    pub fn annotations(&self) -> Option<&str> {
        self.sources.first().map(|source| source.name.as_str())
    }

    /// What to call a rater: the name that files give, or the number.
    pub fn rater_name(&self, number: usize) -> String {
        self.rater_names.get(number).cloned().unwrap_or_else(|| format!("rater {number}"))
    }

    /// What the `raters` raters of a case are called, in the order of their label maps.
    pub fn rater_names_of(&self, case: &Case, raters: usize) -> Vec<String> {
        (0..raters).map(|place| self.rater_name(case.rater_number(place))).collect()
    }

    /// Leaves out the cases with these ids; splits keep their place, so that the others stay where they are.
    ///
    /// # Errors
    /// An id that no case has.
    pub fn exclude(&mut self, ids: &[String]) -> Result<()> {
        for id in ids {
            let Some(place) = self.entries.iter().position(|entry| entry.id == *id) else {
                let near = nearest(id, self.entries.iter().map(|entry| entry.id.as_str()));
                let hint = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                let reason = format!("data.exclude names the case {id:?}, which is not there{hint}");
                return Err(Error::data(&self.root, reason).advise("correct data.exclude in the config"));
            };
            self.excluded.push(self.entries.remove(place));
        }
        Ok(())
    }

    /// Takes raters without a file of a case for raters who marked nothing in it.
    pub fn fill_missing_raters(&mut self) {
        let all: BTreeSet<usize> = self.entries.iter().flat_map(CaseEntry::raters).collect();
        for entry in self.entries.iter_mut().filter(|entry| entry.packed.is_none()) {
            let own = entry.raters();
            let missing = all.iter().filter(|number| !own.contains(number));
            let empty = |&number: &usize| RaterFiles { number, maps: RaterMaps::Masks(vec![]) };
            entry.files.raters.extend(missing.map(empty));
            entry.files.raters.sort_by_key(|rater| rater.number);
        }
    }

    /// Loads a case before any preprocessing.
    pub fn load_raw(&self, index: usize) -> Result<Case> {
        let (case, findings) = self.inspect(index);
        let mut errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
        let nothing = || {
            let finding = Finding::error(FindingKind::Unreadable, "nothing was read", "");
            finding.of_case(&self.entries[index].id)
        };
        case.ok_or_else(|| errors.next().unwrap_or_else(nothing).into_error())
    }

    /// Loads the first case that can be loaded, before any preprocessing.
    pub fn first_readable(&self) -> Result<Case> {
        first_of(self.entries.len(), |index| self.load_raw(index))
    }

    /// The same with labels that are required, optional or not read.
    pub fn with_labels(mut self, labels: LabelPolicy) -> Self {
        self.reading.labels = labels;
        self
    }

    /// Refuses two cases with the same id, which splits and file names could not distinguish.
    pub fn check_unique(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        match self.entries.iter().find(|entry| !seen.insert(&entry.id)) {
            None => Ok(()),
            Some(CaseEntry { id, .. }) => {
                Err(Error::case(id, "another case has the same id").advise("rename or remove all but one"))
            }
        }
    }

    /// The cases of one part, given the part of each.
    pub fn subset(&self, parts: &[Split], split: Split) -> Self {
        let (mut own, mut parts) = (self.clone(), parts.iter());
        own.entries.retain(|_| parts.next() == Some(&split));
        own
    }
}

impl Cases for Dataset {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn id(&self, index: usize) -> &str {
        &self.entries[index].id
    }

    fn rater_count(&self, index: usize) -> usize {
        self.entries[index].raters().len()
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.preprocessing.apply(self.load_raw(index)?)
    }
}
