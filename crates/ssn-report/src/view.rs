//! The part of a case that its pictures show.

use ssn_core::LabelMap;
use ssn_eval::predictions::CaseDescription;

use crate::figures::svg::{CLASSES, probability};
use crate::figures::{Color, Picture};

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
pub(crate) struct View {
    size: [usize; 3],
    pub(crate) slice: usize,
    /// Slices in which something is marked.
    pub(crate) marked: std::ops::Range<usize>,
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
    pub(crate) fn new(about: &CaseDescription, first: &[&LabelMap], second: &[&LabelMap]) -> Self {
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
    pub(crate) fn with_contrast_of(self, image: Option<&[f32]>) -> Self {
        let plane = self.size[1] * self.size[2];
        let slice = image.map(|image| &image[self.slice * plane..(self.slice + 1) * plane]);
        let contrast = slice.map_or([0.0, 1.0], contrast);
        Self { contrast, ..self }
    }

    /// Whether pictures show only a part of the slice.
    pub(crate) fn is_cut(&self) -> bool {
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
    pub(crate) fn cut<T: Copy>(&self, values: &[T], slice: usize) -> (Vec<T>, usize) {
        let [_, h, w] = self.size;
        let (rows, columns) = (self.lines(0), self.lines(1));
        let value = |y: usize, x: usize| values[(slice * h + y) * w + x];
        let cut = rows.iter().flat_map(|&y| columns.iter().map(move |&x| (y, x))).map(|(y, x)| value(y, x));
        (cut.collect(), columns.len())
    }

    /// The labels of the slice that is shown, `[h, w]`.
    pub(crate) fn slice_of<'a>(&self, map: &'a LabelMap) -> &'a [u8] {
        let plane = self.size[1] * self.size[2];
        &map.labels()[self.slice * plane..(self.slice + 1) * plane]
    }

    /// The image of a slice; a flat background where there is none.
    pub(crate) fn image(&self, image: Option<&[f32]>, slice: usize) -> Picture {
        let Some(image) = image else {
            let (rows, columns) = (self.lines(0).len(), self.lines(1).len());
            return Picture::gray(&vec![NO_IMAGE; rows * columns], columns, [0.0, 1.0], self.zoom());
        };
        let (values, columns) = self.cut(image, slice);
        Picture::gray(&values, columns, self.contrast, self.zoom())
    }

    /// The whole slice, with the window outlined if it shows only a part.
    pub(crate) fn overview(&self, image: Option<&[f32]>, slice: usize) -> Picture {
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

    pub(crate) fn labels(&self, image: Option<&[f32]>, map: &LabelMap, slice: usize) -> Picture {
        let (labels, columns) = self.cut(map.labels(), slice);
        self.image(image, slice).with_labels(&labels, columns)
    }

    /// Values in 0 … 1, from light to dark.
    pub(crate) fn heat(&self, values: &[f32], slice: usize) -> Picture {
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

#[cfg(test)]
mod tests {
    use ssn_io::Geometry;

    use super::*;
    use ssn_eval::predictions::{ModelId, PredictionKind, Region};

    fn about(size: [usize; 3]) -> CaseDescription {
        CaseDescription {
            case: "a".into(),
            classes: vec!["background".into(), "lesion".into()],
            kind: PredictionKind::Stochastic,
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
