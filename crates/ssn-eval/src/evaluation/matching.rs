//! Which prediction belongs to which case of the dataset, and the raters of that case on the grid of its prediction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ssn_args::SplitChoice;
use ssn_core::LabelMap;
use ssn_data::{Case, Cases, DataConfig, Dataset, DatasetOverrides, LabelPolicy, LabelReading, Split};
use ssn_io::{Error, Result, Tolerance};

use crate::predictions::{
    About, CaseDescription, Found, ImagePaths, PredictionKind, Predictions, is_config, listed_ids,
};

/// A prediction, and the index in the dataset of the case that it is of.
pub struct ScoringJob {
    /// The prediction.
    pub found: Found,
    /// The case of the dataset.
    pub index: usize,
}

/// What is to be scored.
pub struct ScoringPlan {
    /// The dataset.
    pub dataset: Dataset,
    /// The name of its part.
    pub part: &'static str,
    /// In natural order of the ids.
    pub jobs: Vec<ScoringJob>,
    /// Cases of the part without a prediction.
    pub missing: Vec<String>,
    /// Predictions of cases of other parts.
    pub others: usize,
    /// Predictions of cases that the model trained on, which are left out.
    pub trained_on: usize,
    /// How the model describes its uncertainty.
    pub kind: PredictionKind,
    /// The names of the labels, the background first.
    pub classes: Vec<String>,
}

impl ScoringPlan {
    /// Opens the dataset, the one that is named or that of the predictions, and finds the case of every prediction.
    ///
    /// Cases with raters that the model trained on are left out, unless `with_trained`.
    pub fn new(
        predictions: &Predictions,
        data: Option<&Path>,
        part: SplitChoice,
        with_trained: bool,
    ) -> Result<Self> {
        let found = predictions.cases()?;
        let classes = found.first().map(|case| case.header.description.classes.clone()).unwrap_or_default();
        let (dataset, parts) = open_of(predictions.about(), data, &classes, part)?;
        check_classes(&dataset, &found)?;
        let places = places(&dataset);
        let unknown = found.iter().map(Found::id).filter(|id| !places.contains_key(id));
        let unknown: Vec<String> = unknown.map(str::to_owned).collect();
        if !unknown.is_empty() {
            return Err(Error::mismatch(format!(
                "{} of {} predictions in {} are of cases that {} does not have: {}; is this the dataset that was \
                 predicted?",
                unknown.len(),
                found.len(),
                predictions.root().display(),
                dataset.root.display(),
                listed_ids(&unknown)
            )));
        }
        let wanted = |index: usize| part.split().is_none_or(|split| parts.get(index) == Some(&split));
        let all = found.len();
        let mut jobs: Vec<ScoringJob> = found
            .into_iter()
            .map(|found| ScoringJob { index: places[found.id()], found })
            .filter(|job| wanted(job.index))
            .collect();
        let others = all - jobs.len();
        let has_raters = |job: &ScoringJob| dataset.rater_count(job.index) > 0;
        let is_left_out = |job: &ScoringJob| !with_trained && job.found.is_trained_on() && has_raters(job);
        let left_out: BTreeSet<usize> =
            jobs.iter().filter(|job| is_left_out(job)).map(|job| job.index).collect();
        if left_out.len() == jobs.len() && !jobs.is_empty() {
            return Err(Error::mismatch(format!(
                "the model trained on all {} cases that {} has predictions of, so their scores would say nothing about \
                 new images; predict other cases, or score these with --split all",
                jobs.len(),
                predictions.root().display()
            )));
        }
        jobs.retain(|job| !is_left_out(job));
        let Some(CaseDescription { kind, classes, .. }) =
            jobs.first().map(|job| &job.found.header.description)
        else {
            return Err(Error::mismatch(format!(
                "none of the {all} predictions in {} is of a case of the part {}",
                predictions.root().display(),
                part.name()
            )));
        };
        let (kind, classes) = (*kind, classes.clone());
        let predicted: BTreeSet<usize> = jobs.iter().map(|job| job.index).collect();
        let missing = (0..dataset.entries.len())
            .filter(|index| wanted(*index) && !predicted.contains(index) && !left_out.contains(index))
            .map(|index| dataset.entries[index].id.clone())
            .collect();
        let trained_on = left_out.len();
        Ok(Self { part: part.name(), jobs, missing, others, trained_on, kind, classes, dataset })
    }
}

/// The index of each case of a dataset by its id.
pub fn places(dataset: &Dataset) -> BTreeMap<&str, usize> {
    dataset.entries.iter().enumerate().map(|(index, entry)| (entry.id.as_str(), index)).collect()
}

/// Opens what predictions with these classes are compared with: `data`, or else the dataset or the images that they are
/// of. Labels are read as the model read them, unless a config says otherwise. Returns the part of each case, as [`open`].
pub fn open_of(
    about: &About,
    data: Option<&Path>,
    classes: &[String],
    part: SplitChoice,
) -> Result<(Dataset, Vec<Split>)> {
    let labels = about.labels.as_ref();
    let known = labels.map(|labels| (classes, labels));
    if let Some(data) = data {
        return open(data, part, known);
    }
    if about.labels_only {
        let path = Path::new(&about.dataset);
        return Ok((Dataset::of_labels(path, &DatasetOverrides::default())?, vec![]));
    }
    let Some(ImagePaths { paths, channels }) = &about.images else {
        return open(Path::new(&about.dataset), part, known);
    };
    let annotations = labels.and_then(|labels| labels.annotations.clone());
    let known =
        DatasetOverrides { classes: Some(classes.to_vec()), annotations, ..DatasetOverrides::default() };
    let mut dataset = Dataset::of_images_with(paths, channels, &known)?;
    dataset.reading.labels = LabelPolicy::Required;
    dataset.read_labels_as(classes, labels);
    Ok((dataset, vec![]))
}

/// Opens a dataset, and returns it with the part of each of its cases, or no parts if all cases are asked for.
///
/// `known` has the classes of a model and how it read labels; a config with a rule of its own wins.
pub fn open(
    data: &Path,
    part: SplitChoice,
    known: Option<(&[String], &LabelReading)>,
) -> Result<(Dataset, Vec<Split>)> {
    let (dataset, parts) = if is_config(data) {
        let config = DataConfig::read(data)?;
        let mut dataset = config.open()?;
        if let Some((classes, labels)) = known.filter(|_| config.coding().is_none() && !config.invert_labels)
        {
            dataset.read_labels_as(classes, Some(labels));
        }
        let parts = match part {
            SplitChoice::All => vec![],
            _ => config.split.parts(&dataset)?,
        };
        (dataset, parts)
    } else {
        let annotations = known.and_then(|(_, labels)| labels.annotations.clone());
        let mut dataset =
            Dataset::open_with(data, &DatasetOverrides { annotations, ..DatasetOverrides::default() })?;
        if let Some((classes, labels)) = known {
            dataset.read_labels_as(classes, Some(labels));
        }
        let given: Option<Vec<Split>> = dataset.entries.iter().map(|entry| entry.split).collect();
        let parts = match (part, given) {
            (SplitChoice::All, _) => vec![],
            (_, Some(parts)) => parts,
            (_, None) => {
                return Err(Error::usage(format!(
                    "{} does not say which of its cases are for {}; name its config with --data, or take all \
                     cases with --split all",
                    data.display(),
                    part.name()
                )));
            }
        };
        (dataset, parts)
    };
    dataset.check_unique()?;
    Ok((dataset, parts))
}

/// Refuses predictions of other classes than the dataset has.
pub fn check_classes(dataset: &Dataset, found: &[Found]) -> Result<()> {
    let ours = &dataset.classes;
    let Some(case) = found.iter().find(|case| case.header.description.classes.len() != ours.len()) else {
        return Ok(());
    };
    let theirs = &case.header.description.classes;
    let message = format!(
        "{} has {} classes ({}), but {} has {} ({}); is this the dataset that was predicted?",
        case.path.display(),
        theirs.len(),
        theirs.join(", "),
        dataset.root.display(),
        ours.len(),
        ours.join(", ")
    );
    Err(Error::mismatch(message))
}

/// Loads the label maps `[d, h, w]` of all raters, and what they are called.
pub(crate) fn load_raters(dataset: &Dataset, job: &ScoringJob) -> Result<(Vec<LabelMap>, Vec<String>)> {
    let (case, raters) = load_with_image(dataset, job.index, &job.found.header.description)?;
    let names = dataset.rater_names_of(&case, raters.len());
    Ok((raters, names))
}

/// Loads the image in the intensities in which it is stored, and the label maps `[d, h, w]` of all raters.
pub fn load_with_image(
    dataset: &Dataset,
    index: usize,
    about: &CaseDescription,
) -> Result<(Case, Vec<LabelMap>)> {
    let mut case = dataset.load_raw(index)?;
    check_grid(about, &case)?;
    let raters = std::mem::take(&mut case.raters).into_iter();
    let raters = raters.map(|labels| Ok(LabelMap::new(labels, dataset.classes.len())?));
    let raters = raters.collect::<Result<_>>()?;
    Ok((case, raters))
}

/// Refuses a case on another grid than its prediction.
fn check_grid(about: &CaseDescription, case: &Case) -> Result<()> {
    let Some(table) = differences(about, case) else { return Ok(()) };
    Err(Error::mismatch(format!(
        "case {}: the prediction does not lie on the grid of the dataset; is this the dataset that was \
         predicted?\n{table}",
        case.id
    )))
}

/// In what the grids of a prediction and of a case differ, as a table; nothing if they are the same.
fn differences(about: &CaseDescription, case: &Case) -> Option<String> {
    let mut rows = vec![];
    for (axis, name) in ["depth", "height", "width"].iter().enumerate() {
        if about.size[axis] != case.shape[axis] {
            rows.push(((*name).to_owned(), about.size[axis].to_string(), case.shape[axis].to_string()));
        }
    }
    if let Some(found) = about.geometry.differences(&case.geometry, Tolerance::default()) {
        let row = |d: ssn_io::Difference| (d.quantity, format!("{:.6}", d.first), format!("{:.6}", d.second));
        rows.extend(found.0.into_iter().map(row));
    }
    if rows.is_empty() {
        return None;
    }
    let mut table = format!("  {:<16}{:>16}{:>16}", "", "prediction", "dataset");
    for (quantity, first, second) in rows {
        table += &format!("\n  {quantity:<16}{first:>16}{second:>16}");
    }
    Some(table)
}
