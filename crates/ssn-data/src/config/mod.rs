//! The section `[data]` of a config file: which dataset, and what is done to it before training.
//!
//! Other sections belong to the crates that use them and are not looked at here.

mod explain;
pub mod template;

pub use explain::{explain, line_of, unknown_key, with_hint};

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_io::{Error, Limits, Place, Result, read_bytes};

use crate::dataset::{
    Dataset, Finding, FindingKind, LabelCoding, LabelReading, Layout, MissingRater, Normalization,
    Preprocessing, Split, SplitConfig,
};
use crate::layouts::DatasetOverrides;
use crate::text::nearest;

/// The section `[data]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The folder or file of the dataset; relative paths start at the config file.
    pub path: PathBuf,
    /// The layout that must be found there.
    pub layout: Option<Layout>,
    /// The channels to use, in this order, by their names in the dataset; without it, all.
    pub channels: Option<Vec<String>>,
    /// The names of the classes, the background first; without it, what the dataset says.
    pub classes: Option<Vec<String>>,
    /// The stored values of the classes, in their order, where they are not 0, 1, 2, …
    pub label_values: Option<Vec<u8>>,
    /// Stored values above this are class 1, for masks that lost their exact values.
    pub label_threshold: Option<u8>,
    /// The folder whose raters are used, where a dataset has several such as `Experts` and `Crowd`; without it, the one with
    /// the most label files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<String>,
    /// Exchange background and foreground, for masks of two classes that mark what is outside.
    #[serde(default, skip_serializing_if = "is_default")]
    pub invert_labels: bool,
    /// What it means that a rater of the dataset has no file of a case.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing_rater: MissingRater,
    /// Cases to leave out, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The scale of intensities.
    #[serde(default)]
    pub normalization: Normalization,
    /// A common spacing along w, h, d in millimeters.
    pub spacing: Option<[f64; 3]>,
    /// Cut cases to the box of their region of interest.
    #[serde(default)]
    pub crop_to_mask: bool,
    /// Which cases are for training, validation and test.
    #[serde(default)]
    pub split: SplitConfig,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl DataConfig {
    /// Returns the config of a dataset, with the default of every setting.
    ///
    /// ```
    /// use ssn_data::DataConfig;
    ///
    /// let config = DataConfig { spacing: Some([1.0; 3]), ..DataConfig::new("dataset") };
    /// config.check()?;
    /// # Ok::<(), ssn_data::Error>(())
    /// ```
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            layout: None,
            channels: None,
            classes: None,
            label_values: None,
            label_threshold: None,
            annotations: None,
            invert_labels: false,
            missing_rater: MissingRater::default(),
            exclude: vec![],
            normalization: Normalization::default(),
            spacing: None,
            crop_to_mask: false,
            split: SplitConfig::default(),
        }
    }

    /// Reads the section `[data]` of a config file; paths become those of the file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bytes(path, &Limits::default())?;
        let wrong = |reason: String| Error::data(path, reason);
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let config = Self::parse(&text).map_err(wrong)?;
        Ok(config.seen_from(path.parent().unwrap_or(Path::new(""))))
    }

    /// The same with paths that start at the folder of the config file.
    pub fn seen_from(mut self, folder: &Path) -> Self {
        self.path = folder.join(&self.path);
        self.split.file = folder.join(&self.split.file);
        self
    }

    /// The section `[data]` of the text of a config.
    ///
    /// # Errors
    /// A sentence about the first thing that is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Whole {
            data: Option<DataConfig>,
        }
        let Whole { data } = toml::from_str(text).map_err(|error| explain(text, &error))?;
        let Some(config) = data else {
            let table: toml::Table = toml::from_str(text).unwrap_or_default();
            let near = table.keys().find(|key| nearest(key, ["data"]).is_some());
            return Err(near.map_or_else(
                || "the section [data] is missing; `ssn init DIR` writes one".to_owned(),
                |section| format!("there is no section [{section}]; did you mean [data]?"),
            ));
        };
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.normalization.check()?;
        self.split.ratios.check()?;
        let not_positive = |x: &f64| !(x.is_finite() && *x > 0.0);
        if let Some(spacing) = self.spacing.filter(|spacing| spacing.iter().any(not_positive)) {
            let expected = "three positive numbers of millimeters";
            return Err(Error::setting("data.spacing", format!("{spacing:?}"), expected));
        }
        if self.label_values.is_some() && self.label_threshold.is_some() {
            let found = "set beside data.label_values";
            return Err(Error::setting("data.label_threshold", found, "set alone"));
        }
        match self.split.folds {
            Some(folds) if self.split.fold >= folds => {
                let expected = format!("below data.split.folds, {folds}");
                Err(Error::setting("data.split.fold", self.split.fold, expected))
            }
            _ => Ok(()),
        }
    }

    /// Opens the dataset, as the config says.
    pub fn open(&self) -> Result<Dataset> {
        let known = DatasetOverrides {
            channels: self.channels.clone(),
            classes: self.classes.clone(),
            coding: self.coding(),
            annotations: self.annotations.clone(),
        };
        let mut dataset = Dataset::open_with(&self.path, &known)?;
        if let Some(expected) = self.layout.filter(|layout| *layout != dataset.layout) {
            return Err(Error::data(
                &self.path,
                format!("this is {}, but data.layout is {expected:?}", dataset.layout.describe()),
            )
            .advise("correct data.path or data.layout in the config"));
        }
        if let Some(name) = self.annotations.as_deref().filter(|name| dataset.annotations() != Some(name)) {
            let names: Vec<&str> = dataset.sources.iter().map(|source| source.name.as_str()).collect();
            let expected = match &names[..] {
                [] => "left out: the dataset has a single folder of raters".to_owned(),
                _ => format!("one of {}", names.join(", ")),
            };
            return Err(Error::setting("data.annotations", format!("{name:?}"), expected));
        }
        if self.invert_labels && dataset.classes.len() != 2 {
            let found = format!("true for {} classes", dataset.classes.len());
            return Err(Error::setting("data.invert_labels", found, "set for two classes alone"));
        }
        dataset.reading.invert = self.invert_labels;
        if self.missing_rater == MissingRater::Empty {
            dataset.fill_missing_raters();
        }
        dataset.exclude(&self.exclude)?;
        let Self { spacing, crop_to_mask, normalization, .. } = *self;
        dataset.preprocessing = Preprocessing { spacing, crop_to_mask, normalization };
        Ok(dataset)
    }

    /// The rule from stored labels to classes, if the config has one.
    pub fn coding(&self) -> Option<LabelCoding> {
        let values = self.label_values.clone().map(LabelCoding::Values);
        values.or(self.label_threshold.map(LabelCoding::Threshold))
    }

    /// Returns how the config says that labels are read.
    pub fn label_reading(&self) -> LabelReading {
        LabelReading {
            coding: self.coding().unwrap_or_default(),
            invert: self.invert_labels,
            missing_rater: self.missing_rater,
            annotations: self.annotations.clone(),
        }
    }

    /// The part of each case for a check, which goes on without a split: what is wrong with it joins the findings
    /// of the dataset.
    pub fn parts_or_finding(&self, dataset: &mut Dataset) -> Option<Vec<Split>> {
        let (kind, general) = (FindingKind::Split, "correct data.split in the config");
        let error = match self.split.parts(dataset) {
            Ok(parts) => return Some(parts),
            Err(error) => error,
        };
        let finding = match error {
            // Two cases with the same id: the check reports them itself.
            Error { place: Place::Case(_), .. } => return None,
            Error { place: Place::File(path), reason, advice: Some(advice), .. } => {
                Finding::error(kind, reason, advice).in_file(path)
            }
            other => Finding::error(kind, other.to_string(), general),
        };
        dataset.findings.push(finding);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Ratios;

    #[test]
    fn a_whole_config_is_understood() {
        let text = r#"
        [data]
        path = "set"
        layout = "nn-unet"
        channels = ["flair"]
        classes = ["background", "lesion"]
        label_values = [0, 255]
        normalization = { kind = "scale", subtract = 0.5 }
        spacing = [1.0, 1.0, 2.0]
        crop_to_mask = true
        split = { ratios = [60, 10, 30], seed = 4 }
        [training]
        anything = 1
    "#;
        let config = DataConfig::parse(text).unwrap();
        assert_eq!(
            (config.layout, config.split.ratios, config.split.seed),
            (Some(Layout::NnUnet), Ratios::BRATS, 4)
        );
        assert_eq!(config.normalization, Normalization::Scale { subtract: 0.5, divide: 1.0 });
        let least = DataConfig::parse("[data]\npath = \"x\"").unwrap();
        assert_eq!((&least.normalization, &least.split), (&Normalization::None, &SplitConfig::default()));
        assert_eq!(least, DataConfig::new("x"));
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |text: &str| DataConfig::parse(text).unwrap_err();
        let data = |line: &str| message(&format!("[data]\npath = \"x\"\n{line}\n"));
        insta::assert_snapshot!(
            [
                data("chanels = [\"a\"]"),
                data("layout = \"nnunet\""),
                data("normalization = { kind = \"z-scor\" }"),
                data("normalization = \"z-score\""),
                data("normalization = { kind = \"ct-window\", centr = 40, width = 400 }"),
                data("split = { ratio = [1, 1, 1] }"),
                data("split = { ratios = [0, 1, 1] }"),
                data("split = { folds = 5, fold = 5 }"),
                data("spacing = [1.0, 0.0, 1.0]"),
                data("label_values = [0, 1]\nlabel_threshold = 3"),
                data("path = 3"),
                message("[dtaa]\npath = \"x\""),
                message("[model]\n"),
                message("[data]\nlayout = \"csv\""),
                message("[data\n"),
            ]
            .join("\n")
        );
    }
}
