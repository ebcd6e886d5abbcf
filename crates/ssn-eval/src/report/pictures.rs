//! The pictures of one case, image, raters, prediction, entropy and samples, in a view cut to where something is marked.

use std::slice::from_ref;

use ssn_core::metrics::PairwiseDistances;
use ssn_core::{LabelMap, Steering};

use super::gallery::{self, SampleGroup, nothing};
use super::material::{Material, Subject};
use crate::error::Result;
use crate::figures::svg::{CLASSES, class, probability};
use crate::figures::{Block, Color, Picture, Strip, Tile, strips_with_legend};
use crate::predictions::{Description, Kind, summarize};

/// Pixels along the longer side of a picture; a little fewer for small ones, which are enlarged by a whole number.
const PIXELS: usize = 192;
/// The window reaches beyond what is marked by so much of its longer side, and at least by so many pixels.
const MARGIN: f64 = 0.25;
const LEAST_MARGIN: usize = 8;
/// Images that are not larger than this are shown whole.
const SMALL: usize = 96;
/// A window that would show nearly all shows all.
const NEARLY_ALL: f64 = 0.8;
/// Shares of the values below black and above white.
const CLIPPED: f64 = 0.005;
/// The background where there is no image.
const NO_IMAGE: f32 = 0.25;

/// Where pictures of one case look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    size: [usize; 3],
    pub(super) slice: usize,
    /// Slices in which something is marked.
    pub(super) marked: std::ops::Range<usize>,
    /// Rows and columns, start and end.
    window: [[usize; 2]; 2],
    /// Whether rows and columns run the other way.
    flipped: [bool; 2],
    /// Values that become black and white, the same in all slices.
    contrast: [f32; 2],
}

impl View {
    /// Looks at what the most trusted of maps marked: the slice with most of it, and a window around it.
    ///
    /// `first` are looked at before `second`, which only counts where nothing is marked in the first.
    pub(super) fn new(about: &Description, first: &[&LabelMap], second: &[&LabelMap]) -> Self {
        let [d, h, w] = about.size;
        let marks = |maps: &[&LabelMap]| -> Vec<usize> {
            let count = |labels: &[u8]| labels.iter().filter(|label| **label > 0).count();
            (0..d)
                .map(|z| maps.iter().map(|map| count(&map.labels()[z * h * w..(z + 1) * h * w])).sum())
                .collect()
        };
        let counts = Some(marks(first)).filter(|counts| counts.iter().any(|n| *n > 0));
        let counts = counts.unwrap_or_else(|| marks(second));
        let most = (0..d).rev().max_by_key(|&z| counts[z]).filter(|&z| counts[z] > 0);
        let slice = most.unwrap_or(d / 2);
        let start = counts.iter().position(|n| *n > 0).unwrap_or(0);
        let end = counts.iter().rposition(|n| *n > 0).map_or(d, |z| z + 1);
        let maps: Vec<&LabelMap> = first.iter().chain(second).copied().collect();
        let window = window(&maps, slice, [h, w]);
        // The world is RAS+: the front comes to the top and the right of the patient to the left, as is usual.
        let direction = about.geometry.direction;
        let flipped = [d > 1 && direction[1][1] > 0.5, d > 1 && direction[0][0] > 0.5];
        Self { size: about.size, slice, marked: start..end, window, flipped, contrast: [0.0, 1.0] }
    }

    /// The same with the contrast of the slice with most marked voxels of an image.
    pub(super) fn with_contrast_of(self, image: Option<&[f32]>) -> Self {
        let plane = self.size[1] * self.size[2];
        let slice = image.map(|image| &image[self.slice * plane..(self.slice + 1) * plane]);
        let contrast = slice.map_or([0.0, 1.0], contrast);
        Self { contrast, ..self }
    }

    /// Whether pictures show only a part of the slice.
    pub(super) fn is_cut(&self) -> bool {
        self.window != [[0, self.size[1]], [0, self.size[2]]]
    }

    /// The same view of whole slices.
    fn whole(&self) -> Self {
        Self { window: [[0, self.size[1]], [0, self.size[2]]], ..self.clone() }
    }

    fn longer_side(&self) -> usize {
        self.window.iter().map(|[start, end]| end - start).max().unwrap_or(1).max(1)
    }

    /// Pixels of the picture for each that is shown; 1 where pictures are brought to their size by the choice of lines.
    fn zoom(&self) -> usize {
        if self.longer_side() > PIXELS / 2 { 1 } else { PIXELS / self.longer_side() }
    }

    /// Rows and columns that are shown, in the order in which they are shown: all of a small picture, and so many of a
    /// larger one that its longer side has [`PIXELS`] of them.
    fn lines(&self, axis: usize) -> Vec<usize> {
        let ([start, end], longer) = (self.window[axis], self.longer_side());
        let size = end - start;
        let count = if longer > PIXELS / 2 { (size * PIXELS / longer).max(1) } else { size };
        let mut lines: Vec<usize> = (0..count).map(|i| start + i * size / count).collect();
        if self.flipped[axis] {
            lines.reverse();
        }
        lines
    }

    /// The values of a slice that are shown, `[rows, columns]`, and how many columns there are.
    pub(super) fn cut<T: Copy>(&self, values: &[T], slice: usize) -> (Vec<T>, usize) {
        let [_, h, w] = self.size;
        let (rows, columns) = (self.lines(0), self.lines(1));
        let value = |y: usize, x: usize| values[(slice * h + y) * w + x];
        let cut = rows.iter().flat_map(|&y| columns.iter().map(move |&x| (y, x))).map(|(y, x)| value(y, x));
        (cut.collect(), columns.len())
    }

    /// The labels of the slice that is shown, `[h, w]`.
    pub(super) fn slice_of<'a>(&self, map: &'a LabelMap) -> &'a [u8] {
        let plane = self.size[1] * self.size[2];
        &map.labels()[self.slice * plane..(self.slice + 1) * plane]
    }

    /// The image of a slice; a flat background where there is none.
    pub(super) fn image(&self, image: Option<&[f32]>, slice: usize) -> Picture {
        let Some(image) = image else {
            let (rows, columns) = (self.lines(0).len(), self.lines(1).len());
            return Picture::gray(&vec![NO_IMAGE; rows * columns], columns, [0.0, 1.0], self.zoom());
        };
        let (values, columns) = self.cut(image, slice);
        Picture::gray(&values, columns, self.contrast, self.zoom())
    }

    /// The whole slice, with the window outlined if it shows only a part.
    pub(super) fn overview(&self, image: Option<&[f32]>, slice: usize) -> Picture {
        if !self.is_cut() {
            return self.image(image, slice);
        }
        let whole = self.whole();
        let zoom = whole.zoom();
        let edges = |axis: usize| {
            let lines = whole.lines(axis);
            let [start, end] = self.window[axis];
            let inside = |line: &usize| (start..end).contains(line);
            let first = lines.iter().position(inside).unwrap_or(0);
            let last = lines.iter().rposition(inside).unwrap_or(0);
            [first * zoom, (last + 1) * zoom]
        };
        const OUTLINE: Color = CLASSES[4];
        whole.image(image, slice).with_box(edges(0), edges(1), OUTLINE)
    }

    pub(super) fn labels(&self, image: Option<&[f32]>, map: &LabelMap, slice: usize) -> Picture {
        let (labels, columns) = self.cut(map.labels(), slice);
        self.image(image, slice).with_labels(&labels, columns)
    }

    /// Values in 0 … 1, from light to dark.
    pub(super) fn heat(&self, values: &[f32], slice: usize) -> Picture {
        let (values, columns) = self.cut(values, slice);
        Picture::colored(&values, columns, |x| probability(f64::from(x)), self.zoom())
    }
}

/// Rows and columns around all that is marked in a slice; all of them if that is nearly all, or nothing.
fn window(maps: &[&LabelMap], slice: usize, [h, w]: [usize; 2]) -> [[usize; 2]; 2] {
    let whole = [[0, h], [0, w]];
    let (mut rows, mut columns) = ([h, 0], [w, 0]);
    for map in maps {
        let labels = &map.labels()[slice * h * w..(slice + 1) * h * w];
        for (i, _) in labels.iter().enumerate().filter(|(_, label)| **label > 0) {
            let (y, x) = (i / w, i % w);
            rows = [rows[0].min(y), rows[1].max(y + 1)];
            columns = [columns[0].min(x), columns[1].max(x + 1)];
        }
    }
    if rows[0] >= rows[1] {
        return whole;
    }
    let side = (rows[1] - rows[0]).max(columns[1] - columns[0]);
    let side = side + 2 * ((MARGIN * side as f64) as usize).max(LEAST_MARGIN);
    if h.max(w) <= SMALL || side as f64 >= NEARLY_ALL * h.min(w) as f64 {
        return whole;
    }
    let place = |[start, end]: [usize; 2], size: usize| {
        let first = ((start + end) / 2).saturating_sub(side / 2).min(size - side);
        [first, first + side]
    };
    [place(rows, h), place(columns, w)]
}

/// Values that become black and white: all but a few lie between.
fn contrast(values: &[f32]) -> [f32; 2] {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return [0.0, 1.0] };
    let clipped = (CLIPPED * last as f64) as usize;
    match [sorted[clipped], sorted[last - clipped]] {
        [low, high] if low < high => [low, high],
        _ => [sorted[0], sorted[last]],
    }
}

/// Pictures beside each other at most.
pub(super) const COLUMNS: usize = 8;

/// The view of a case in one folder or several: where raters marked most, or else where the networks did whose images have the
/// size of the first.
pub(super) fn view(subjects: &[Subject]) -> View {
    let (first, about) = (&subjects[0], subjects[0].file.description());
    let same = || subjects.iter().filter(|subject| subject.file.description().size == about.size);
    let raters: Vec<&LabelMap> = first.raters.iter().collect();
    let mut others: Vec<&LabelMap> = same().map(|subject| &subject.prediction).collect();
    // Samples of independent voxels are everywhere.
    let distributed = same().filter(|subject| subject.file.description().kind != Kind::Deterministic);
    others.extend(distributed.flat_map(|subject| &subject.samples));
    View::new(about, &raters, &others).with_contrast_of(first.image.as_deref())
}

/// The contours of all raters of a case on its image, with fills that are the stronger the more of them agree; nothing without a
/// rater.
pub(super) fn truth(subject: &Subject, view: &View) -> Option<Picture> {
    let image = view.image(subject.image.as_deref(), view.slice);
    let with_rater = |picture: Picture, rater: &LabelMap| {
        let (labels, columns) = view.cut(rater.labels(), view.slice);
        picture.with_labels(&labels, columns)
    };
    (!subject.raters.is_empty()).then(|| subject.raters.iter().fold(image, with_rater))
}

/// What that picture is called: the name of the only rater, or how many they are.
pub(super) fn truth_name(subject: &Subject) -> String {
    match subject.rater_names.as_slice() {
        [one] => one.clone(),
        all => format!("{} raters", all.len()),
    }
}

/// Pictures in the strip of a typical case at most, and raters among them.
const LEAD_TILES: usize = 12;
const LEAD_RATERS: usize = 4;

/// One strip of a case: image, raters, prediction, entropy and samples.
pub(super) fn lead(material: &Material, subject: &Subject, distances: &PairwiseDistances) -> Result<String> {
    let (view, id) = (view(from_ref(subject)), &subject.file.description().case);
    let image = subject.image.as_deref();
    let mut tiles = vec![];
    if image.is_some() {
        tiles.push(Tile { picture: view.image(image, view.slice), caption: "image".to_owned() });
    }
    tiles.extend(raters(subject, &view).into_iter().take(LEAD_RATERS));
    tiles.extend(predicted(material, subject, &view)?);
    let groups = gallery::groups(distances, LEAD_TILES - tiles.len());
    tiles.extend(gallery::tiles(subject, &view, &groups));
    let description = format!("Image, raters, prediction, entropy and samples of case {id}.");
    Ok(drawing(id, &description, material.classes(), vec![Strip { label: String::new(), tiles }]))
}

/// All pictures of a case as one drawing, with a sample of each group.
pub(super) fn overview(
    material: &Material,
    subject: &Subject,
    view: &View,
    groups: &[SampleGroup],
) -> Result<String> {
    let mut strips = given(subject, view);
    strips.push(Strip { label: "prediction".to_owned(), tiles: predicted(material, subject, view)? });
    let label = match subject.file.description().kind {
        Kind::Deterministic => "voxels drawn\none by one",
        Kind::Stochastic | Kind::Sampled => "samples",
    };
    strips.push(Strip { label: label.to_owned(), tiles: gallery::tiles(subject, view, groups) });
    if subject.file.description().size[0] > 1 {
        strips.extend(montage(subject, view));
    }
    let id = &subject.file.description().case;
    let description = format!("Image, raters, prediction, entropy and samples of case {id}.");
    Ok(drawing(id, &description, material.classes(), strips))
}

/// The mean prediction and the marginal entropy.
fn predicted(material: &Material, subject: &Subject, view: &View) -> Result<Vec<Tile>> {
    let (map, slice) = (&subject.prediction, view.slice);
    let nothing = nothing(map, view).map_or(String::new(), |nothing| format!("\n{nothing}"));
    let prediction = Tile {
        picture: view.labels(subject.image.as_deref(), map, slice),
        caption: format!("mean prediction{nothing}"),
    };
    let entropy = Tile {
        picture: view.heat(&entropy(material, subject)?, slice),
        caption: "marginal entropy".to_owned(),
    };
    Ok(vec![prediction, entropy])
}

/// What each rater marked.
fn raters(subject: &Subject, view: &View) -> Vec<Tile> {
    let tile = |(map, name): (&LabelMap, &String)| {
        let nothing = nothing(map, view).map_or(String::new(), |nothing| format!(", {nothing}"));
        let picture = view.labels(subject.image.as_deref(), map, view.slice);
        Tile { picture, caption: format!("{name}{nothing}") }
    };
    subject.raters.iter().zip(&subject.rater_names).map(tile).collect()
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
    tiles.extend(raters(subject, view));
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
pub(super) fn entropy(material: &Material, subject: &Subject) -> Result<Vec<f32>> {
    let (file, samples) = (&subject.file, 0..subject.samples.len() as u64);
    let summary = summarize(file, material.seed, &Steering::default(), samples, &[])?;
    file.values_on_image(&summary.marginal_entropy()?, 0.0)
}

/// Strips of pictures with the colors of the classes.
pub(super) fn drawing(title: &str, description: &str, classes: &[String], strips: Vec<Strip>) -> String {
    let named = classes.iter().enumerate().skip(1);
    let legend: Vec<_> = named.map(|(label, name)| (name.clone(), class(label as u8))).collect();
    strips_with_legend(title, description, &legend, &[Block { title: String::new(), strips }])
}

#[cfg(test)]
mod tests {
    use ssn_io::Geometry;

    use super::*;
    use crate::predictions::{ModelId, Region};

    fn about(size: [usize; 3]) -> Description {
        Description {
            case: "a".into(),
            classes: vec!["background".into(), "lesion".into()],
            kind: Kind::Stochastic,
            size,
            geometry: Geometry::default(),
            region: Region::whole(size),
            model: ModelId { sha256: String::new(), name: String::new() },
            network_grid: None,
            image: None,
            labels_only: false,
        }
    }

    #[test]
    fn the_slice_with_most_is_shown_and_cut_to_it() {
        let size = [3, 100, 120];
        let mut labels = vec![0u8; 3 * 100 * 120];
        (30..40).for_each(|x| labels[(100 + 50) * 120 + x] = 1);
        labels[2 * 100 * 120] = 1;
        let map = LabelMap::new(labels, 2).unwrap();
        let view = View::new(&about(size), &[&map], &[]);
        assert_eq!((view.slice, view.marked.clone()), (1, 1..3));
        assert_eq!(view.window, [[37, 63], [22, 48]]);
        assert!(view.is_cut() && view.flipped == [true, true]);
        let picture = view.labels(None, &map, 1);
        assert_eq!(picture.width(), picture.height());
        assert!((PIXELS / 2..=PIXELS).contains(&picture.width()));
        assert_eq!(view.overview(None, 1).width(), PIXELS);
        let nothing = LabelMap::new(vec![0; 3 * 100 * 120], 2).unwrap();
        let view = View::new(&about(size), &[], &[&nothing]);
        assert!(!view.is_cut() && view.slice == 1 && view.marked == (0..3));
    }

    #[test]
    fn large_pictures_become_small_ones() {
        let size = [1, 1000, 500];
        let view = View::new(&about(size), &[], &[]);
        let picture = view.image(Some(&vec![1.0; 500_000]), 0);
        assert_eq!((picture.height(), picture.width()), (PIXELS, PIXELS / 2));
        assert_eq!(view.flipped, [false; 2], "pictures are as they are");
        assert_eq!(contrast(&[f32::NAN, 2.0, 2.0]), [2.0, 2.0]);
    }
}
