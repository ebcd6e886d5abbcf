//! Dataset as a layout recognized it, and its completion: channels, classes and the rule of labels.

use std::collections::BTreeSet;
use std::path::Path;

use ssn_io::{Error, Result};

use crate::dataset::{
    AnnotationSource, CaseEntry, Dataset, Finding, FindingKind, LabelCoding, LabelHistogram, Layout,
    NamedFiles, PackedLabels, Preprocessing, RaterFiles, RaterMaps, ReadOptions, is_lossy, read_labels,
    unnamed_channels,
};
use crate::layouts::{DatasetOverrides, rater_folders};
use crate::parallel::{self, MemoryMeter};
use crate::resolve::files::{check_name, shape};
use crate::resolve::{FoundCase, Raters};
use crate::text::nearest;

/// Dataset that a layout recognized, possibly without the names of channels and classes.
pub(super) struct Draft {
    pub(super) layout: Layout,
    pub(super) channels: Option<Vec<String>>,
    pub(super) classes: Option<Vec<String>>,
    pub(super) reading: ReadOptions,
    pub(super) entries: Vec<CaseEntry>,
    /// Cases that the layout says have no labels, as the test images of a challenge: only prediction uses them.
    pub(super) unlabeled: Vec<CaseEntry>,
    pub(super) findings: Vec<Finding>,
    /// The source of the raters, if there are several.
    pub(super) source: Option<AnnotationSource>,
    /// Drafts with the raters of other sources, the largest first.
    pub(super) others: Vec<Draft>,
    /// The names of the raters by their numbers, if files name them.
    pub(super) rater_names: Vec<String>,
}

impl Draft {
    /// Returns a draft of cases about which nothing else is known.
    pub(super) fn new(layout: Layout, entries: Vec<CaseEntry>) -> Self {
        Self {
            layout,
            channels: None,
            classes: None,
            reading: ReadOptions::default(),
            entries,
            unlabeled: vec![],
            findings: vec![],
            source: None,
            others: vec![],
            rater_names: vec![],
        }
    }

    /// Returns a draft of cases with the names of their raters, if files name them.
    pub(super) fn of_cases(layout: Layout, cases: Vec<FoundCase>) -> Self {
        let (entries, raters) = Raters::number(cases);
        Self { rater_names: raters.telling_names(), ..Self::new(layout, entries) }
    }

    pub(super) fn complete(self, root: &Path, known: &DatasetOverrides) -> Result<Dataset> {
        self.with_source(known.annotations.as_deref()).complete_chosen(root, known)
    }

    fn complete_chosen(mut self, root: &Path, known: &DatasetOverrides) -> Result<Dataset> {
        let sources = self.take_sources();
        if self.entries.is_empty() {
            return Err(Error::data(
                root,
                format!("this is {}, but it holds no cases", self.layout.describe()),
            )
            .advise("check that the images are there"));
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
            sources,
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

    /// Returns names for the channels of the first readable case.
    pub(super) fn channels_of_the_first(&self, root: &Path) -> Result<Vec<String>> {
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
            Error::data(root, reason).advise("correct all images in the same way")
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
                Error::data(
                    root,
                    format!("there is no channel {channel:?} among {}{hint}", stored.join(", ")),
                )
                .advise("correct data.channels in the config")
            })
        };
        self.reading.pick = Some(wanted.iter().map(place).collect::<Result<_>>()?);
        Ok(wanted.clone())
    }

    /// Returns `true` if raters have a mask for each class.
    fn has_masks(&self) -> bool {
        let is_mask = |rater: &RaterFiles| matches!(rater.maps, RaterMaps::Masks(_));
        self.entries.iter().flat_map(|entry| &entry.files.raters).any(is_mask)
    }

    /// Returns the names of the classes, and sets the rule of labels.
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
        let is_final = !is_structured || known.coding.is_some();
        let given = known.classes.clone().or(own.clone().filter(|_| is_final));
        let is_cut = matches!(self.reading.coding, LabelCoding::Threshold(_));
        let named = match is_cut || is_structured {
            true => NamedFiles::default(),
            false => NamedFiles::of(self.label_files())?,
        };
        if let Some(classes) = given {
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

    /// Returns the files of label maps, without masks of single classes.
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
    Err(Error::data(root, reason).advise(advice))
}

/// Returns the values in the labels of all cases. Skips unreadable files, which the check reports.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_images_are_reported_with_the_reason() {
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
