//! What a layout finds, and its completion to a dataset: names of channels and classes that no file tells.

use std::collections::BTreeSet;
use std::path::Path;

use ssn_io::{Limits, read};

use super::Known;
use super::values::values_in_use;
use crate::dataset::{Dataset, Entry, Layout, Preprocessing, unnamed_channels};
use crate::error::{DataError, Result};
use crate::finding::{Finding, Kind, Severity};
use crate::labels::LabelCoding;
use crate::nearest::nearest;
use crate::source::{Reading, Source};

/// A dataset in the making.
pub(super) struct Draft {
    pub layout: Layout,
    /// Names of the channels, if something tells them.
    pub channels: Option<Vec<String>>,
    /// Names of the classes, if something tells them.
    pub classes: Option<Vec<String>>,
    pub reading: Reading,
    pub entries: Vec<Entry>,
    /// Cases that the layout says have no labels, as the test images of a challenge: only prediction uses them.
    pub unlabeled: Vec<Entry>,
    pub findings: Vec<Finding>,
}

impl Draft {
    /// A draft of cases about which nothing else is known.
    pub fn new(layout: Layout, entries: Vec<Entry>) -> Self {
        Self {
            layout,
            channels: None,
            classes: None,
            reading: Reading::default(),
            entries,
            unlabeled: vec![],
            findings: vec![],
        }
    }

    /// Finds out what is missing.
    pub fn complete(mut self, root: &Path, known: &Known) -> Result<Dataset> {
        if self.entries.is_empty() {
            return Err(DataError::Dataset {
                path: root.to_owned(),
                reason: format!("this is {}, but it holds no cases", self.layout.describe()),
                advice: "check that the images are there",
            });
        }
        // A single part assigns nothing: `training/` alone still has to be divided.
        if self.entries.iter().all(|entry| entry.split == self.entries[0].split) {
            self.entries.iter_mut().for_each(|entry| entry.split = None);
        }
        self.number_raters();
        self.tell_half_given();
        let stored = match self.channels.take() {
            Some(channels) => channels,
            None => self.channels_of_the_first(root)?,
        };
        let channels = self.pick(root, &stored, known)?;
        let classes = self.classes(known);
        check_classes(root, &classes, &self.reading.coding)?;
        Ok(Dataset {
            root: root.to_owned(),
            layout: self.layout,
            channels,
            stored_channels: stored,
            classes,
            reading: self.reading,
            preprocessing: Preprocessing::default(),
            entries: self.entries,
            findings: self.findings,
        })
    }

    /// Numbers raters from 0 without gaps over the whole dataset: a rater keeps the number in every case, also
    /// where another is missing.
    fn number_raters(&mut self) {
        let raters = |entry: &Entry| match &entry.source {
            Source::Files(files) => files.raters.iter().map(|rater| rater.number).collect(),
            Source::Record(..) => vec![],
        };
        let numbers: BTreeSet<usize> = self.entries.iter().flat_map(raters).collect();
        for entry in &mut self.entries {
            if let Source::Files(files) = &mut entry.source {
                files
                    .raters
                    .iter_mut()
                    .for_each(|rater| rater.number = numbers.range(..rater.number).count());
            }
        }
    }

    /// Tells of a dataset that assigns some cases to a part and leaves others.
    fn tell_half_given(&mut self) {
        let given = self.entries.iter().filter(|entry| entry.split.is_some()).count();
        if (1..self.entries.len()).contains(&given) {
            let reason = format!(
                "{given} of {} cases lie in a part of the dataset, the others in none: all are divided anew",
                self.entries.len()
            );
            self.findings.push(Finding::new(Severity::Note, Kind::Layout, reason, ""));
        }
    }

    /// Names for the channels of the first case that can be read.
    pub fn channels_of_the_first(&self, root: &Path) -> Result<Vec<String>> {
        let count = self.entries.iter().find_map(|entry| match &entry.source {
            Source::Record(records, index) => {
                records.items[*index].as_ref().ok().map(|record| record.channels)
            }
            Source::Files(files) if files.images.len() > 1 => Some(files.images.len()),
            Source::Files(files) => {
                let image = read(files.images.first()?.as_deref()?, &Limits::default()).ok()?;
                let axis = usize::from(self.reading.depth_is_channels && image.shape[0] == 1);
                Some(image.shape[axis])
            }
        });
        match count {
            Some(count) => Ok(unnamed_channels(count)),
            None => Err(DataError::Dataset {
                path: root.to_owned(),
                reason: format!("none of the {} images can be read", self.entries.len()),
                advice: "check that the files are whole",
            }),
        }
    }

    /// The channels that are asked for.
    fn pick(&mut self, root: &Path, stored: &[String], known: &Known) -> Result<Vec<String>> {
        let Some(wanted) = known.channels.as_ref().filter(|wanted| *wanted != stored) else {
            return Ok(stored.to_vec());
        };
        let place = |channel: &String| {
            stored.iter().position(|name| name == channel).ok_or_else(|| {
                let hint = nearest(channel, stored.iter().map(String::as_str));
                let hint = hint.map_or(String::new(), |name| format!(", perhaps {name:?}"));
                DataError::Dataset {
                    path: root.to_owned(),
                    reason: format!("there is no channel {channel:?} among {}{hint}", stored.join(", ")),
                    advice: "correct data.channels in the config",
                }
            })
        };
        self.reading.pick = Some(wanted.iter().map(place).collect::<Result<_>>()?);
        Ok(wanted.clone())
    }

    /// Names of the classes, and with them the rule of labels.
    fn classes(&mut self, known: &Known) -> Vec<String> {
        if let Some(coding) = &known.coding {
            self.reading.coding = coding.clone();
        }
        if let Some(classes) = known.classes.clone().or(self.classes.take()) {
            return classes;
        }
        if let LabelCoding::Threshold(_) = self.reading.coding {
            return vec!["background".to_owned(), "foreground".to_owned()];
        }
        let present = values_in_use(&self.entries);
        let (coding, classes) = LabelCoding::for_values(&present);
        if known.coding.is_none() {
            self.findings.extend(noisy_labels(&present));
        }
        if known.coding.is_none() {
            self.reading.coding = coding;
        }
        classes
    }
}

/// More values than these are no classes that somebody drew.
const MOST_LABELS: usize = 32;

/// Tells of values that look like a mask that lost its exact values, by compression or interpolation.
fn noisy_labels(present: &[bool; 256]) -> Option<Finding> {
    let values: Vec<usize> = (0..256).filter(|&value| present[value]).collect();
    let last = values.last().copied().unwrap_or(0);
    let gaps = values.len() <= last;
    let noisy = values.len() > MOST_LABELS || (values.len() > 2 && gaps && last == 255);
    noisy.then(|| {
        let reason =
            format!("the labels have {} different values up to {last}, each taken for a class", values.len());
        let advice =
            "if they are masks that lost their exact values, set label_threshold = 127 in the config";
        Finding::new(Severity::Warning, Kind::LabelRange, reason, advice)
    })
}

/// Refuses class names that do not fit the rule of labels.
fn check_classes(root: &Path, classes: &[String], coding: &LabelCoding) -> Result<()> {
    let reason = match coding {
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
    Err(DataError::Dataset { path: root.to_owned(), reason, advice })
}
