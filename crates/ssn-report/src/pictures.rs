//! The pictures of one case, image, raters, prediction, entropy and samples, in a view cut to where something is marked.

use std::slice::from_ref;

use ssn_core::metrics::PairwiseDistances;
use ssn_core::{LabelMap, Steering};

use ssn_eval::predictions::{PredictionKind, summarize};
use ssn_io::Result;

use crate::figures::svg::class;
use crate::figures::{Entry, Key, Picture, PictureTile, Sheet, SheetRow};
use crate::gallery::{self, SampleGroup, nothing};
use crate::material::{LoadedCase, PredictionSet};
use crate::view::View;

/// Pictures beside each other at most.
pub(crate) const COLUMNS: usize = 8;

/// The view of a case in one folder or several: where raters marked most, or else where the networks did whose images have the
/// size of the first.
pub(crate) fn view(subjects: &[LoadedCase]) -> View {
    let (first, about) = (&subjects[0], subjects[0].file.description());
    let same = || subjects.iter().filter(|subject| subject.file.description().size == about.size);
    let raters: Vec<&LabelMap> = first.raters.iter().collect();
    let mut others: Vec<&LabelMap> = same().map(|subject| &subject.prediction).collect();
    // Samples of independent voxels are everywhere.
    let distributed =
        same().filter(|subject| subject.file.description().kind != PredictionKind::Deterministic);
    others.extend(distributed.flat_map(|subject| &subject.samples));
    View::new(about, &raters, &others).with_contrast_of(first.image.as_deref())
}

/// The contours of all raters of a case on its image, with fills that are the stronger the more of them agree; nothing without a
/// rater.
pub(crate) fn truth(subject: &LoadedCase, view: &View) -> Option<Picture> {
    let image = view.image(subject.image.as_deref(), view.slice);
    let with_rater = |picture: Picture, rater: &LabelMap| {
        let (labels, columns) = view.cut(rater.labels(), view.slice);
        picture.with_labels(&labels, columns)
    };
    (!subject.raters.is_empty()).then(|| subject.raters.iter().fold(image, with_rater))
}

/// What that picture is called: the name of the only rater, or how many they are.
pub(crate) fn truth_name(subject: &LoadedCase) -> String {
    match subject.rater_names.as_slice() {
        [one] => one.clone(),
        all => format!("{} raters", all.len()),
    }
}

/// Pictures in the strip of a typical case at most, and raters among them.
const LEAD_TILES: usize = 12;
const LEAD_RATERS: usize = 4;

/// One strip of a case: image, raters, prediction, entropy and samples.
pub(crate) fn lead(
    material: &PredictionSet,
    subject: &LoadedCase,
    distances: &PairwiseDistances,
) -> Result<String> {
    let (view, id) = (view(from_ref(subject)), &subject.file.description().case);
    let image = subject.image.as_deref();
    let mut tiles = vec![];
    if image.is_some() {
        tiles.push(PictureTile { picture: view.image(image, view.slice), caption: "image".to_owned() });
    }
    tiles.extend(raters(subject, &view).into_iter().take(LEAD_RATERS));
    tiles.extend(predicted(material, subject, &view)?);
    let groups = gallery::groups(distances, LEAD_TILES - tiles.len());
    tiles.extend(gallery::tiles(subject, &view, &groups));
    let description = format!("Image, raters, prediction, entropy and samples of case {id}.");
    Ok(drawing(id, &description, material.classes(), vec![SheetRow::labeled("", tiles)]))
}

/// All pictures of a case as one drawing, with a sample of each group.
pub(crate) fn overview(
    material: &PredictionSet,
    subject: &LoadedCase,
    view: &View,
    groups: &[SampleGroup],
) -> Result<String> {
    let mut strips = given(subject, view);
    strips.push(SheetRow::labeled("prediction", predicted(material, subject, view)?));
    let label = match subject.file.description().kind {
        PredictionKind::Deterministic => "voxels drawn\none by one",
        PredictionKind::Stochastic | PredictionKind::Sampled => "samples",
    };
    strips.push(SheetRow::labeled(label, gallery::tiles(subject, view, groups)));
    if subject.file.description().size[0] > 1 {
        strips.extend(montage(subject, view));
    }
    let id = &subject.file.description().case;
    let description = format!("Image, raters, prediction, entropy and samples of case {id}.");
    Ok(drawing(id, &description, material.classes(), strips))
}

/// The mean prediction and the marginal entropy.
fn predicted(material: &PredictionSet, subject: &LoadedCase, view: &View) -> Result<Vec<PictureTile>> {
    let (map, slice) = (&subject.prediction, view.slice);
    let nothing = nothing(map, view).map_or(String::new(), |nothing| format!("\n{nothing}"));
    let prediction = PictureTile {
        picture: view.labels(subject.image.as_deref(), map, slice),
        caption: format!("mean prediction{nothing}"),
    };
    let entropy = PictureTile {
        picture: view.heat(&entropy(material, subject)?, slice),
        caption: "marginal entropy".to_owned(),
    };
    Ok(vec![prediction, entropy])
}

/// What each rater marked.
fn raters(subject: &LoadedCase, view: &View) -> Vec<PictureTile> {
    let tile = |(map, name): (&LabelMap, &String)| {
        let nothing = nothing(map, view).map_or(String::new(), |nothing| format!(", {nothing}"));
        let picture = view.labels(subject.image.as_deref(), map, view.slice);
        PictureTile { picture, caption: format!("{name}{nothing}") }
    };
    subject.raters.iter().zip(&subject.rater_names).map(tile).collect()
}

/// What is given: the image and what raters marked, in as many rows as they need.
pub(crate) fn given(subject: &LoadedCase, view: &View) -> Vec<SheetRow> {
    let (image, slice) = (subject.image.as_deref(), view.slice);
    let mut tiles = vec![];
    if image.is_some() {
        let caption = if view.is_cut() { "whole image" } else { "image" }.to_owned();
        tiles.push(PictureTile { picture: view.overview(image, slice), caption });
        if view.is_cut() {
            tiles.push(PictureTile { picture: view.image(image, slice), caption: "window".to_owned() });
        }
    }
    tiles.extend(raters(subject, view));
    let mut strips = vec![];
    while !tiles.is_empty() {
        let rest = tiles.split_off(tiles.len().min(COLUMNS));
        let label = if strips.is_empty() { "image and\nraters" } else { "" };
        strips.push(SheetRow::labeled(label, tiles));
        tiles = rest;
    }
    strips
}

/// Slices evenly through what is marked: the prediction, and the first rater above it.
fn montage(subject: &LoadedCase, view: &View) -> Vec<SheetRow> {
    let (start, count) = (view.marked.start, view.marked.len());
    let shown = COLUMNS.min(count);
    let slices: Vec<usize> = (0..shown).map(|i| start + (2 * i + 1) * count / (2 * shown)).collect();
    let image = subject.image.as_deref();
    let strip = |label: &str, map: &LabelMap| {
        let tile =
            |&z: &usize| PictureTile { picture: view.labels(image, map, z), caption: format!("slice {z}") };
        SheetRow::labeled(label, slices.iter().map(tile).collect())
    };
    let rater = subject.raters.first().map(|rater| strip("through the\nvolume: rater 0", rater));
    rater.into_iter().chain([strip("through the\nvolume:\nprediction", &subject.prediction)]).collect()
}

/// The entropy of the mean probabilities, on the whole image.
pub(crate) fn entropy(material: &PredictionSet, subject: &LoadedCase) -> Result<Vec<f32>> {
    let (file, samples) = (&subject.file, 0..subject.samples.len() as u64);
    let summary = summarize(file, material.seed, &Steering::default(), samples, &[])?;
    file.values_on_image(&summary.marginal_entropy()?, 0.0)
}

/// Draws rows of pictures with the colors of the classes.
pub(crate) fn drawing(title: &str, description: &str, classes: &[String], rows: Vec<SheetRow>) -> String {
    let (title, description) = (title.to_owned(), description.to_owned());
    Sheet { title, description, legend: class_legend(classes), columns: vec![], rows }.svg()
}

/// Returns the colors of the classes, without the background.
pub(crate) fn class_legend(classes: &[String]) -> Vec<Entry> {
    let named = classes.iter().enumerate().skip(1);
    named.map(|(label, name)| Entry::new(name.as_str(), class(label as u8), Key::Area)).collect()
}
