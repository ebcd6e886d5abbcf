//! Recognition of dataset layouts: each file handles one or a few and returns a [`Draft`], which becomes a [`Dataset`].

mod bids;
mod cache;
mod case_folders;
mod csv_index;
mod dataset_json;
mod files;
mod folder_pair;
mod images;
mod known_labels;
mod label_sets;
mod left_out;
mod lidc;
mod names;
mod qubiq;
mod rater_folders;

pub use cache::{CACHE_ENDING, encode as encode_cache};
pub use label_sets::{FileContent, FilesByCase};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::dataset::{
    CaseEntry, Dataset, Finding, FindingKind, LabelCoding, LabelHistogram, LabelPolicy, Layout, NamedFiles,
    PackedLabels, Preprocessing, RaterFiles, RaterMaps, ReadOptions, Split, is_lossy, read_labels,
    unnamed_channels,
};
use crate::error::{DataError, Result};
use crate::layouts::files::{check_name, entries, is_other_picture, name, shape, subfolders};
use crate::parallel;
use crate::parallel::MemoryMeter;
use crate::text::nearest;

/// What is already known about a dataset, from a config; what is not known is found out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DatasetOverrides {
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
        Self::open_with(path, &DatasetOverrides::default())
    }

    /// Whether a folder or file has a layout of a dataset, whole or damaged.
    pub fn is_recognized(path: &Path) -> bool {
        path.is_file() || path.is_dir() && !matches!(in_whole_folder(path), Ok((None, _)))
    }

    /// The same with what is already known; label files are then not looked through for their values.
    pub fn open_with(path: &Path, known: &DatasetOverrides) -> Result<Self> {
        recognize(path)?.complete(path, known)
    }
}

/// Recognizes one layout: returns a draft if the folder has it.
type Attempt = fn(&Path) -> Result<Option<Draft>>;

/// A folder or file with the part of the dataset that its name says.
type PartPath = (Option<Split>, PathBuf);

/// Opens files that hold many cases; `None` if there are none, or several where one holds all parts.
type Open = fn(&[PartPath]) -> Result<Option<Draft>>;

/// Layouts with a description or an index, the most specific ones first.
const DESCRIBED: [Attempt; 2] = [dataset_json::recognize, csv_index::recognize];
/// Layouts of files with many cases, by how they are named. Such a file may also be next to a dataset of another layout.
const PACKED: [(&[&str], Open); 3] = [
    (&[CACHE_ENDING], |files| alone(files, cache::open)),
    (&[".pickle", ".pickle.gz", ".pkl", ".pkl.gz"], |files| {
        files.first().map(|_| lidc::open_pickle(files)).transpose()
    }),
    (&[".hdf5", ".h5"], |files| alone(files, lidc::open_hdf5)),
];
/// Layouts of many files.
const OF_FOLDERS: [Attempt; 6] = [
    bids::recognize,
    qubiq::recognize,
    lidc::recognize_png,
    lidc::recognize_jpeg,
    rater_folders::recognize,
    folder_pair::recognize,
];

fn alone(files: &[PartPath], open: fn(&Path) -> Result<Draft>) -> Result<Option<Draft>> {
    let [(_, file)] = files else { return Ok(None) };
    open(file).map(Some)
}

fn recognize(path: &Path) -> Result<Draft> {
    check_exists(path)?;
    if path.is_file() {
        return of_file(path, LabelPolicy::Required);
    }
    let (found, strays) = in_whole_folder(path)?;
    let Some(mut draft) = found else {
        if let Some(inner) =
            subfolders(path)?.into_iter().find(|folder| matches!(in_whole_folder(folder), Ok((Some(_), _))))
        {
            let reason = format!("the dataset is not here but in its folder {}", name(&inner));
            return Err(DataError::dataset(path, reason, "give that folder"));
        }
        if let Some(picture) = other_picture_below(path, 0) {
            let reason = format!(
                "no known layout of a dataset was found, and files such as {} have a format that is not read",
                picture.strip_prefix(path).unwrap_or(&picture).display()
            );
            return Err(DataError::dataset(path, reason, left_out::SAVE_AGAIN));
        }
        let advice = "expected one of: dataset.json with imagesTr and labelsTr; a CSV with the columns id, seg \
                      and channels; a pickle or HDF5 file; images/ beside labels/ or beside a folder per rater; \
                      a folder per case";
        return Err(nothing_in(path, strays, "no known layout of a dataset was", advice));
    };
    draft.findings.extend(strays.iter().map(stray));
    Ok(draft)
}

/// A picture in a format that is not read, in a folder or below.
fn other_picture_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    let (folders, files) = entries(folder).ok()?.into_iter().partition::<Vec<_>, _>(|path| path.is_dir());
    let below =
        |folder: &PathBuf| other_picture_below(folder, depth + 1).filter(|_| depth < left_out::DEEPEST);
    files.into_iter().find(|path| is_other_picture(path)).or_else(|| folders.iter().find_map(below))
}

/// The same as [`in_folder`], with folders per case.
fn in_whole_folder(path: &Path) -> Result<(Option<Draft>, Vec<DataError>)> {
    Ok(match in_folder(path)? {
        (None, strays) => (case_folders::recognize(path)?, strays),
        found => found,
    })
}

fn check_exists(path: &Path) -> Result<()> {
    let error = || DataError::dataset(path, "there is no such file or folder", "check the path");
    if path.exists() && !path.is_file() && !path.is_dir() {
        let reason = "this is neither a plain file nor a folder";
        return Err(DataError::dataset(path, reason, "give the folder or file of a dataset"));
    }
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
    for (endings, open) in PACKED {
        let is_one = |file: &Path| matches!(open(&[(None, file.to_owned())]), Ok(Some(_)));
        match files_by_part(path, endings, &is_one).and_then(|files| open(&files)) {
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

/// A folder in which `what` found: the first of the files that could have been a dataset, or what else is there.
fn nothing_in(folder: &Path, strays: Vec<DataError>, what: &str, advice: &'static str) -> DataError {
    if let Some(stray) = strays.into_iter().next() {
        return stray;
    }
    let present = entries(folder).unwrap_or_default();
    let present: Vec<String> = present.iter().take(5).map(|path| name(path)).collect();
    let reason = match present.as_slice() {
        [] => "the folder is empty".to_owned(),
        _ => format!("{what} found among {}, …", present.join(", ")),
    };
    DataError::dataset(folder, reason, advice)
}

/// A file that is not the dataset it could be by its name.
fn stray(error: &DataError) -> Finding {
    Finding::note(FindingKind::Layout, format!("not used: {error}"))
}

fn of_file(path: &Path, labels: LabelPolicy) -> Result<Draft> {
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
    Err(DataError::dataset(
        path,
        reason.to_owned(),
        "give a folder, or a .csv, .json, .pickle, .pickle.gz, .hdf5 or .cache.safetensors file",
    ))
}

/// The folder itself, which may hold cases too, and the subfolders of the parts of a dataset, named `train`, `val`,
/// `test` or alike.
fn parts(root: &Path) -> Result<Vec<PartPath>> {
    let parts = subfolders(root)?
        .into_iter()
        .filter_map(|folder| Split::from_folder(&name(&folder)).map(|split| (Some(split), folder)));
    Ok(std::iter::once((None, root.to_owned())).chain(parts).collect())
}

/// Files of one kind in a folder: one alone, or several that are named after the parts of a dataset. Where that is not
/// clear, `is_one` looks into the files.
fn files_by_part(folder: &Path, endings: &[&str], is_one: &dyn Fn(&Path) -> bool) -> Result<Vec<PartPath>> {
    let matches = |path: &PathBuf| path.is_file() && ends_in(path, endings);
    let mut files: Vec<PathBuf> = entries(folder)?.into_iter().filter(matches).collect();
    let split = |path: &PathBuf| Split::from_words(name(path).split('.').next().unwrap_or_default());
    let unclear = |files: &[PathBuf]| files.len() > 1 && files.iter().any(|path| split(path).is_none());
    if unclear(&files) {
        files.retain(|path| is_one(path));
    }
    if unclear(&files) {
        let names: Vec<String> = files.iter().map(|path| name(path)).collect();
        return Err(DataError::dataset(
            folder,
            format!("several files could be the dataset: {}", names.join(", ")),
            "give one of them, or name them after train, validation and test",
        ));
    }
    Ok(files.into_iter().map(|path| (split(&path), path)).collect())
}

/// Whether a name has one of these endings, in any case.
fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let lower = name(path).to_lowercase();
    endings.iter().any(|ending| lower.ends_with(ending))
}

/// A name within a part: cases of different parts may have the same name in their folders.
fn unique(split: Option<Split>, id: String, taken: &mut BTreeSet<String>) -> String {
    let id = match split {
        Some(split) if taken.contains(&id) => format!("{split}/{id}"),
        _ => id,
    };
    taken.insert(id.clone());
    id
}

/// What a recognizer found: a dataset that may lack the names of channels and classes.
struct Draft {
    layout: Layout,
    channels: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    reading: ReadOptions,
    entries: Vec<CaseEntry>,
    /// Cases that the layout says have no labels, as the test images of a challenge: only prediction uses them.
    unlabeled: Vec<CaseEntry>,
    findings: Vec<Finding>,
    /// The names of the raters by their numbers, if files name them.
    rater_names: Vec<String>,
}

impl Draft {
    /// A draft of cases about which nothing else is known.
    fn new(layout: Layout, entries: Vec<CaseEntry>) -> Self {
        Self {
            layout,
            channels: None,
            classes: None,
            reading: ReadOptions::default(),
            entries,
            unlabeled: vec![],
            findings: vec![],
            rater_names: vec![],
        }
    }

    fn complete(mut self, root: &Path, known: &DatasetOverrides) -> Result<Dataset> {
        if self.entries.is_empty() {
            return Err(DataError::dataset(
                root,
                format!("this is {}, but it holds no cases", self.layout.describe()),
                "check that the images are there",
            ));
        }
        let entries = self.entries.iter().chain(&self.unlabeled);
        entries.flat_map(|entry| entry.files.paths()).try_for_each(|path| check_name(path))?;
        // A single part assigns nothing: `training/` alone still has to be divided.
        if self.entries.iter().all(|entry| entry.split == self.entries[0].split) {
            self.entries.iter_mut().for_each(|entry| entry.split = None);
        }
        self.number_raters();
        self.note_partial_split();
        let stored = match self.channels.take() {
            Some(channels) => channels,
            None => self.channels_of_the_first(root)?,
        };
        let channels = self.pick(root, &stored, known)?;
        let structures = self.classes.as_ref().map(Vec::len).filter(|_| self.has_masks());
        let classes = self.classes(known)?;
        check_classes(root, &classes, structures, &self.reading.coding)?;
        Ok(Dataset {
            root: root.to_owned(),
            layout: self.layout,
            channels,
            stored_channels: stored,
            classes,
            reading: self.reading,
            preprocessing: Preprocessing::default(),
            unlabeled: self.unlabeled.iter().flat_map(|entry| entry.files.paths()).cloned().collect(),
            entries: self.entries,
            excluded: vec![],
            rater_names: self.rater_names,
            findings: self.findings,
        })
    }

    /// Numbers raters from 0 without gaps over the whole dataset: a rater keeps the number in every case, also
    /// where another is missing.
    fn number_raters(&mut self) {
        let numbers: BTreeSet<usize> = self.entries.iter().flat_map(CaseEntry::raters).collect();
        let raters = self.entries.iter_mut().flat_map(|entry| &mut entry.files.raters);
        raters.for_each(|rater| rater.number = numbers.range(..rater.number).count());
    }

    fn note_partial_split(&mut self) {
        let given = self.entries.iter().filter(|entry| entry.split.is_some()).count();
        if (1..self.entries.len()).contains(&given) {
            let reason = format!(
                "{given} of {} cases lie in a part of the dataset, the others in none: all are divided anew",
                self.entries.len()
            );
            self.findings.push(Finding::note(FindingKind::Layout, reason));
        }
    }

    /// Names for the channels of the first case that can be read.
    fn channels_of_the_first(&self, root: &Path) -> Result<Vec<String>> {
        let mut first_reason = None;
        let count = self.entries.iter().find_map(|entry| {
            let count = match (&entry.files.images[..], &entry.packed) {
                ([], Some((records, place))) => match &records.items[*place] {
                    Ok(record) => Ok(record.channels),
                    Err(reason) => Err(format!("{}: {reason}", records.path.display())),
                },
                ([] | [None], _) => Err(format!("{} has no image", entry.id)),
                ([Some(only)], _) => shape(only)
                    .map_err(|error| error.to_string())
                    .map(|shape| shape[usize::from(self.reading.depth_is_channels && shape[0] == 1)]),
                (several, _) => Ok(several.len()),
            };
            count.map_err(|reason| first_reason.get_or_insert(reason)).ok()
        });
        count.map(unnamed_channels).ok_or_else(|| {
            let reason = format!(
                "none of the {} images can be read, the first for this reason: {}",
                self.entries.len(),
                first_reason.unwrap_or_default()
            );
            DataError::dataset(root, reason, "correct all images in the same way")
        })
    }

    fn pick(&mut self, root: &Path, stored: &[String], known: &DatasetOverrides) -> Result<Vec<String>> {
        let Some(wanted) = known.channels.as_ref().filter(|wanted| *wanted != stored) else {
            return Ok(stored.to_vec());
        };
        let place = |channel: &String| {
            stored.iter().position(|name| name == channel).ok_or_else(|| {
                let hint = nearest(channel, stored.iter().map(String::as_str));
                let hint = hint.map_or(String::new(), |name| format!(", perhaps {name:?}"));
                DataError::dataset(
                    root,
                    format!("there is no channel {channel:?} among {}{hint}", stored.join(", ")),
                    "correct data.channels in the config",
                )
            })
        };
        self.reading.pick = Some(wanted.iter().map(place).collect::<Result<_>>()?);
        Ok(wanted.clone())
    }

    /// Whether raters have a mask for each class.
    fn has_masks(&self) -> bool {
        let is_mask = |rater: &RaterFiles| matches!(rater.maps, RaterMaps::Masks(_));
        self.entries.iter().flat_map(|entry| &entry.files.raters).any(is_mask)
    }

    /// Names of the classes, and with them the rule of labels.
    fn classes(&mut self, known: &DatasetOverrides) -> Result<Vec<String>> {
        if let Some(coding) = &known.coding {
            self.reading.coding = coding.clone();
        }
        let mut own = self.classes.take();
        let structures = own.as_mut().filter(|_| self.layout == Layout::RaterFolders);
        let is_structured = structures.is_some();
        if let Some(structures) = structures {
            rater_folders::order_structures(self, structures, known.classes.as_deref());
        }
        let is_told = !is_structured || known.coding.is_some();
        let told = known.classes.clone().or(own.clone().filter(|_| is_told));
        let is_cut = matches!(self.reading.coding, LabelCoding::Threshold(_));
        let named = match is_cut || is_structured {
            true => NamedFiles::default(),
            false => NamedFiles::of(self.label_files())?,
        };
        if let Some(classes) = told {
            self.reading.by_name = !named.is_empty() && named.has_names_of(&classes, &self.reading.coding)?;
            return Ok(classes);
        }
        if is_cut {
            return Ok(vec!["background".to_owned(), "foreground".to_owned()]);
        }
        if !named.is_empty() {
            let (coding, classes) = named.classes()?;
            if known.coding.is_none() {
                self.reading.coding = coding;
            }
            self.reading.by_name = named.has_names_of(&classes, &self.reading.coding)?;
            return Ok(classes);
        }
        let found = label_values(&self.entries);
        let (coding, classes) = LabelCoding::for_values(&found);
        if known.coding.is_none() {
            if let LabelCoding::Threshold(threshold) = coding {
                self.findings.extend(found.threshold_note(threshold));
            }
            // Masks of structures are what is above 0, whatever their values.
            if !is_structured || matches!(coding, LabelCoding::Threshold(_)) {
                self.reading.coding = coding;
            }
        }
        Ok(own.unwrap_or(classes))
    }

    /// The files of label maps, but no masks of one class.
    fn label_files(&self) -> impl Iterator<Item = &Path> {
        let raters = self.entries.iter().flat_map(|entry| &entry.files.raters);
        raters.filter_map(|rater| match &rater.maps {
            RaterMaps::Labels(path) => Some(path.as_path()),
            RaterMaps::Masks(_) => None,
        })
    }
}

/// Refuses class names that do not fit the rule of labels.
fn check_classes(
    root: &Path,
    classes: &[String],
    structures: Option<usize>,
    coding: &LabelCoding,
) -> Result<()> {
    let reason = match coding {
        _ if structures.is_some_and(|count| count != classes.len()) => {
            let count = structures.unwrap_or(0).saturating_sub(1);
            format!(
                "there are masks of {count} structures, but {} classes are named, with the background",
                classes.len()
            )
        }
        _ if structures.is_some() => return Ok(()),
        _ if !(2..=256).contains(&classes.len()) => {
            format!("there are {} classes, but there must be 2 to 256, the background first", classes.len())
        }
        LabelCoding::Threshold(_) if classes.len() != 2 => {
            format!("a threshold gives 2 classes, but {} are named", classes.len())
        }
        LabelCoding::Values(values) if values.len() != classes.len() => {
            format!("{} label values are given for {} classes", values.len(), classes.len())
        }
        _ => return Ok(()),
    };
    let advice = "correct data.classes and data.label_values in the config";
    Err(DataError::dataset(root, reason, advice))
}

/// The values in the labels of all cases. Files that cannot be read, or that make the program fail, are left to the
/// check.
pub(crate) fn label_values(entries: &[CaseEntry]) -> LabelHistogram {
    let of_case = |i: usize, meter: &MemoryMeter| values_of_case(&entries[i], meter);
    let of_cases = parallel::map(entries.len(), &parallel::unwatched, of_case);
    let mut all = LabelHistogram::default();
    of_cases.iter().flatten().for_each(|values| all.merge(values));
    all
}

fn values_of_case(entry: &CaseEntry, meter: &MemoryMeter) -> LabelHistogram {
    let mut found = LabelHistogram::default();
    for rater in entry.record().into_iter().flat_map(|record| &record.raters) {
        match rater {
            PackedLabels::Bytes(labels) => found.add(labels, false),
            PackedLabels::Bits(_) => found.add(&[0, 1], false),
        }
    }
    for path in entry.files.raters.iter().flat_map(RaterFiles::files) {
        if let Ok(labels) = read_labels(path) {
            meter.saw(labels.data.len());
            found.add(&labels.data, is_lossy(path));
        }
    }
    found
}

fn labels_of(path: &Path) -> Option<Vec<u8>> {
    Some(read_labels(path).ok()?.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_cannot_be_read_are_told_with_the_reason() {
        let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ssn-io/tests/attacks/raster");
        for (picture, expected) in [
            ("tiff-jpeg-inside.tif", "JPEG compression inside a TIFF is not supported; save it as PNG"),
            ("jpeg-cmyk.jpg", "a JPEG in CMYK colors is not supported; save it in gray or RGB"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let [images, labels] = ["images", "labels"].map(|name| folder.path().join(name));
            let ending = picture.rsplit_once('.').unwrap().1;
            for (place, picture) in [(&images, picture), (&labels, "good.png")] {
                std::fs::create_dir(place).unwrap();
                for case in ["a", "b"] {
                    let name = format!("{case}.{}", if *place == images { ending } else { "png" });
                    std::fs::copy(pictures.join(picture), place.join(name)).unwrap();
                }
            }
            let error = Dataset::open(folder.path()).unwrap_err().to_string();
            let first = images.join(format!("a.{ending}"));
            let expected = format!(
                "none of the 2 images can be read, the first for this reason: {}: {expected}",
                first.display()
            );
            assert!(error.contains(&expected), "{error}");
        }
    }
}
