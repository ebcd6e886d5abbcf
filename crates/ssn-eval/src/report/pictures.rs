//! The pictures of one case: image, raters, prediction, entropy and samples.

use crate::error::Result;
use crate::figures::color::{Color, class};
use crate::figures::strips::{Block, Strip, Tile, strips_with_legend};
use crate::predictions::Kind;
use ssn_core::{LabelMap, SampleSummary, Sampler, Steering};

use super::material::{Material, Subject};
use super::view::View;

/// Pictures beside each other at most.
pub(super) const COLUMNS: usize = 8;

/// The view of a case: where raters marked most, or else where the network did.
pub(super) fn view(subject: &Subject) -> View {
    let raters: Vec<&LabelMap> = subject.raters.iter().collect();
    let mut others = vec![&subject.prediction];
    // Samples of independent voxels are everywhere.
    if subject.file.description().kind != Kind::Deterministic {
        others.extend(&subject.samples);
    }
    View::new(subject.file.description(), &raters, &others).with_contrast_of(subject.image.as_deref())
}

/// Colors of the classes, where there are several.
pub(super) fn legend(classes: &[String]) -> Vec<(String, Color)> {
    let named = classes.iter().enumerate().skip(1);
    named.map(|(label, name)| (name.clone(), class(label as u8))).collect()
}

/// All pictures of a case as one drawing, with these of its samples.
pub(super) fn overview(
    material: &Material,
    subject: &Subject,
    view: &View,
    samples: &[usize],
) -> Result<String> {
    let (image, slice) = (subject.image.as_deref(), view.slice);
    let tile = |map: &LabelMap, caption: String| Tile { picture: view.labels(image, map, slice), caption };
    let mut strips = given(subject, view);
    let entropy = Tile {
        picture: view.heat(&entropy(material, subject)?, slice),
        caption: "marginal entropy".to_owned(),
    };
    let tiles = vec![tile(&subject.prediction, "mean prediction".to_owned()), entropy];
    strips.push(Strip { label: "prediction".to_owned(), tiles });
    let label = match subject.file.description().kind {
        Kind::Deterministic => "voxels drawn\none by one",
        Kind::Stochastic | Kind::Sampled => "samples",
    };
    let tiles = samples.iter().map(|&i| tile(&subject.samples[i], format!("sample {i}"))).collect();
    strips.push(Strip { label: label.to_owned(), tiles });
    if subject.file.description().size[0] > 1 {
        strips.extend(montage(subject, view));
    }
    let id = &subject.file.description().case;
    let description = format!("Image, raters, prediction, entropy and samples of case {id}.");
    let blocks = [Block { title: String::new(), strips }];
    Ok(strips_with_legend(id, &description, &legend(material.classes()), &blocks))
}

/// What is given: the image and what raters marked, in as many rows as they need.
pub(super) fn given(subject: &Subject, view: &View) -> Vec<Strip> {
    let (image, slice) = (subject.image.as_deref(), view.slice);
    let mut tiles = vec![];
    if image.is_some() {
        let caption = if view.is_cut() { "whole image" } else { "image" }.to_owned();
        tiles.push(Tile { picture: view.overview(image, slice), caption });
        if view.is_cut() {
            tiles.push(Tile { picture: view.image(image, slice), caption: "window".to_owned() });
        }
    }
    let empty = |map: &LabelMap| map.labels().iter().all(|label| *label == 0);
    tiles.extend(subject.raters.iter().enumerate().map(|(number, map)| {
        let nothing = if empty(map) { ": nothing" } else { "" };
        Tile { picture: view.labels(image, map, slice), caption: format!("rater {number}{nothing}") }
    }));
    let mut strips = vec![];
    while !tiles.is_empty() {
        let rest = tiles.split_off(tiles.len().min(COLUMNS));
        let label = if strips.is_empty() { "image and\nraters" } else { "" }.to_owned();
        strips.push(Strip { label, tiles });
        tiles = rest;
    }
    strips
}

/// Slices evenly through what is marked: the prediction, and the first rater above it.
fn montage(subject: &Subject, view: &View) -> Vec<Strip> {
    let (start, count) = (view.marked.start, view.marked.len());
    let shown = COLUMNS.min(count);
    let slices: Vec<usize> = (0..shown).map(|i| start + (2 * i + 1) * count / (2 * shown)).collect();
    let image = subject.image.as_deref();
    let strip = |label: &str, map: &LabelMap| Strip {
        label: label.to_owned(),
        tiles: slices
            .iter()
            .map(|&z| Tile { picture: view.labels(image, map, z), caption: format!("slice {z}") })
            .collect(),
    };
    let rater = subject.raters.first().map(|rater| strip("through the\nvolume: rater 0", rater));
    rater.into_iter().chain([strip("through the\nvolume:\nprediction", &subject.prediction)]).collect()
}

/// The entropy of the mean probabilities, on the whole image.
fn entropy(material: &Material, subject: &Subject) -> Result<Vec<f32>> {
    let file = &subject.file;
    let seed = material.seed_of(file);
    let sampler = Sampler::new(file.distribution(), seed, &Steering::default())?;
    let mut summary = SampleSummary::new(&sampler, &[])?;
    // Without noise, every sample has the same probabilities; those of samples that the network drew itself are in the mean.
    let samples = match file.description().kind {
        Kind::Stochastic => 0..subject.samples.len() as u64,
        Kind::Deterministic | Kind::Sampled => 0..1,
    };
    summary.extend(&sampler, samples)?;
    file.values_on_image(&summary.marginal_entropy()?, 0.0)
}
