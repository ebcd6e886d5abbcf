//! How label files are read, and how their values become classes.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_io::{Error, Format, Image, Limits, Problem, Volume, Voxels, raster, read, read_bytes};

use crate::dataset::{Finding, FindingKind};
use crate::text::counted;

/// The rule from stored values to classes 0, 1, …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelCoding {
    /// The value is the class.
    #[default]
    Plain,
    /// Class k is stored as the k-th of these values, such as `[0, 255]`.
    Values(Vec<u8>),
    /// Values above this one are class 1, others class 0: for masks that lost their exact values, as in JPEG.
    Threshold(u8),
}

/// A label map with more values than this was not drawn by hand.
pub const MOST_CLASSES: usize = 32;
/// Values above this are foreground in masks that lost their exact values.
pub const HALF: u8 = 127;

/// Stored values that no class has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLabels {
    /// The values, in order.
    pub values: Vec<u8>,
    /// How many voxels have one of them.
    pub voxels: usize,
}

impl LabelCoding {
    /// Replaces stored values by classes below `classes`; unknown values become background and are returned.
    pub fn decode(&self, labels: &mut [u8], classes: usize) -> Option<UnknownLabels> {
        self.table(classes).decode(labels)
    }

    /// The stored value of every class, where classes are not stored as their numbers.
    pub fn stored(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain => None,
            Self::Values(values) => Some(values.clone()),
            Self::Threshold(_) => Some(vec![0, u8::MAX]),
        }
    }

    /// Describes the stored values of `classes` classes, such as `0, 2, 1`.
    pub(crate) fn describe(&self, classes: usize) -> String {
        let listed = |values: Vec<usize>| values.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Plain => listed((0..classes).collect()),
            Self::Values(values) => listed(values.iter().map(|&value| usize::from(value)).collect()),
            Self::Threshold(threshold) => format!("values above {threshold}"),
        }
    }

    /// Returns the class below `classes` of each stored value.
    pub fn table(&self, classes: usize) -> LabelTable {
        let class = |value: usize| -> Option<u8> {
            let class = match self {
                Self::Plain => value,
                Self::Values(values) => values.iter().position(|&stored| usize::from(stored) == value)?,
                Self::Threshold(threshold) => usize::from(value > usize::from(*threshold)),
            };
            (class < classes).then_some(class as u8)
        };
        LabelTable(std::array::from_fn(class))
    }

    /// The rule and the names of the classes for files in which these values occur.
    ///
    /// Values without gaps are classes as they are; with gaps, as 0 and 255 or 0, 1, 2 and 4, each value that
    /// occurs is a class, named after its value. Masks of 0 and 255 with other values between, or more values than
    /// classes have, were compressed or smoothed. Where each file marks either with 1 or with 255, both are the foreground.
    pub(crate) fn for_values(found: &LabelHistogram) -> (Self, Vec<String>) {
        let mut values: Vec<u8> =
            (0..=u8::MAX).filter(|&v| v == 0 || found.counts[usize::from(v)] > 0).collect();
        if values.len() == 1 {
            values.push(1);
        }
        if found.marks_with_1_or_255() {
            return (Self::Threshold(0), vec!["background".to_owned(), "foreground".to_owned()]);
        }
        let many = values.len() > MOST_CLASSES && values.ends_with(&[u8::MAX]);
        if many || found.is_smoothed() {
            return (Self::Threshold(HALF), vec!["background".to_owned(), "foreground".to_owned()]);
        }
        let plain = values.iter().enumerate().all(|(class, &value)| class == usize::from(value));
        let names = match values[..] {
            [_, _] => vec!["background".to_owned(), "foreground".to_owned()],
            _ => std::iter::once("background".to_owned())
                .chain(values[1..].iter().map(|value| format!("label_{value}")))
                .collect(),
        };
        (if plain { Self::Plain } else { Self::Values(values) }, names)
    }
}

/// The class of each stored value that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelTable([Option<u8>; 256]);

impl LabelTable {
    /// A table in which 0 is the background and no other value has a class.
    pub fn background() -> Self {
        Self(std::array::from_fn(|value| (value == 0).then_some(0)))
    }

    /// Sets the class of a value.
    pub fn set(&mut self, value: u8, class: u8) {
        self.0[usize::from(value)] = Some(class);
    }

    /// Returns the class of a value.
    pub fn class(&self, value: u8) -> Option<u8> {
        self.0[usize::from(value)]
    }

    /// Replaces stored values by classes; unknown values become background and are returned.
    pub fn decode(&self, labels: &mut [u8]) -> Option<UnknownLabels> {
        let mut seen = [0usize; 256];
        for label in labels.iter_mut() {
            seen[usize::from(*label)] += 1;
            *label = self.class(*label).unwrap_or(0);
        }
        let strange = |value: &u8| seen[usize::from(*value)] > 0 && self.class(*value).is_none();
        let values: Vec<u8> = (0..=u8::MAX).filter(strange).collect();
        let voxels = values.iter().map(|&value| seen[usize::from(value)]).sum();
        (!values.is_empty()).then_some(UnknownLabels { values, voxels })
    }
}

/// Values up to this are near 0, and values as far below 255 are near full scale.
const NEAR: u8 = 25;
/// Values of fewer voxels, as a part of all that are not 0, are those of edges: one in this many.
const RARE: u64 = 50;

/// How often each value occurs in label files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelHistogram {
    counts: [u64; 256],
    /// Files with values that are neither near 0 nor near full scale.
    files_between: usize,
    /// Whether a file that stores values exactly has none above [`NEAR`], but marks something.
    has_low_file: bool,
    /// Files that mark with 1 alone, with 255 alone, and in another way.
    files_with: [usize; 3],
    /// Voxels near 0 in files that do not store values exactly and have bright ones: those are noise.
    noise: u64,
}

impl Default for LabelHistogram {
    fn default() -> Self {
        Self { counts: [0; 256], files_between: 0, has_low_file: false, files_with: [0; 3], noise: 0 }
    }
}

impl LabelHistogram {
    pub fn add(&mut self, labels: &[u8], is_lossy: bool) {
        let mut counts = [0; 256];
        labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        let own = Self { counts, ..Self::default() };
        let has_low_file = !is_lossy && own.range(1, NEAR) > 0 && own.range(NEAR + 1, u8::MAX) == 0;
        let (ones, full, marked) = (own.range(1, 1), own.range(u8::MAX, u8::MAX), own.range(1, u8::MAX));
        let files_with = [ones == marked, full == marked, ![ones, full].contains(&marked)]
            .map(|is_so| usize::from(is_so && marked > 0));
        let files_between = usize::from(own.between() > 0);
        let noise = if is_lossy && own.range(HALF, u8::MAX) > 0 { own.range(1, NEAR) } else { 0 };
        self.merge(&Self { files_between, has_low_file, files_with, noise, ..own });
    }

    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.files_between += other.files_between;
        self.noise += other.noise;
        self.has_low_file |= other.has_low_file;
        self.files_with.iter_mut().zip(other.files_with).for_each(|(sum, files)| *sum += files);
    }

    /// Whether some files mark with 1, others with 255, and none with both or with anything else.
    fn marks_with_1_or_255(&self) -> bool {
        matches!(self.files_with, [ones, full, 0] if ones > 0 && full > 0)
    }

    /// Voxels with values from one to another.
    fn range(&self, first: u8, last: u8) -> u64 {
        self.counts[usize::from(first)..=usize::from(last)].iter().sum()
    }

    /// Returns the values that occur, in order.
    pub(crate) fn values(&self) -> Vec<u8> {
        (0..=u8::MAX).filter(|&value| self.counts[usize::from(value)] > 0).collect()
    }

    /// Returns the number of voxels above half of the largest value.
    pub fn above_half(&self) -> u64 {
        let half = self.values().last().copied().unwrap_or(0) / 2;
        self.range(half + 1, u8::MAX)
    }

    pub fn distinct(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    /// Whether these are values of masks, rather than of pictures: smoothed, and near 0 or full scale for the most part.
    pub fn is_mask(&self) -> bool {
        self.is_smoothed() && 2 * self.between() <= self.range(1, u8::MAX)
    }

    fn between(&self) -> u64 {
        self.range(NEAR + 1, u8::MAX - NEAR - 1)
    }

    /// Whether these are masks of 0 and 255 with values between, as JPEG and smooth edges leave them: near both, or
    /// each of them rare. Where 255 is rarer than 1, 2, … (a label to ignore), or some files mark with 1, they are not.
    fn is_smoothed(&self) -> bool {
        let (low, high) = (self.range(1, NEAR), self.range(u8::MAX - NEAR, u8::MAX));
        let marked = self.range(1, u8::MAX);
        let is_rare = |v: u8| self.range(v, v) == 0 || RARE * self.range(v, v) < marked;
        let has_others = self.range(1, u8::MAX - 1) > 0;
        has_others
            && high > 0
            && high >= low - self.noise
            && !self.has_low_file
            && (NEAR + 1..u8::MAX - NEAR).all(is_rare)
    }

    /// What a threshold does to masks with other values than 0 and 255; nothing if there are none between.
    pub fn threshold_note(&self, threshold: u8) -> Option<Finding> {
        if threshold == 0 {
            let [ones, full, _] = self.files_with.map(|files| counted(files, "mask"));
            let reason = format!(
                "{ones} mark with 1 and {full} with 255: both are foreground (data.label_threshold = 0)"
            );
            let note = Finding::note(FindingKind::ImplausibleLabels, reason);
            return self.marks_with_1_or_255().then_some(note);
        }
        let between = match self.between() {
            0 if self.range(1, u8::MAX - 1) == 0 => return None,
            0 => "all are near 0 or near 255".to_owned(),
            voxels => format!(
                "{} in {} are neither near 0 nor near 255",
                counted(voxels as usize, "voxel"),
                counted(self.files_between, "file")
            ),
        };
        let reason = format!(
            "the masks have other values than 0 and 255, as JPEG and smooth edges leave them: values above {threshold} \
             are foreground (data.label_threshold); {between}"
        );
        Some(Finding::note(FindingKind::ImplausibleLabels, reason))
    }
}

/// Whether a file does not store values exactly.
pub fn is_lossy(path: &Path) -> bool {
    Format::of(path).is_ok_and(Format::is_lossy)
}

/// Reads a label map of one channel. Of a picture, a palette gives its indices, 16 bit of full scale become 8, a mask in one
/// color is its brightest channel, and opacity is ignored unless nothing else varies.
pub fn read_labels(path: &Path) -> Result<Volume<u8>, Finding> {
    read_label_image(path)?.to_labels().map_err(|problem| Finding::unreadable(problem.in_file(path)))
}

/// Reads a label map or a mask like [`read_labels`], with its values as they are stored.
pub(super) fn read_label_image(path: &Path) -> Result<Image, Finding> {
    let limits = Limits::default();
    let is_picture = Format::of(path).is_ok_and(Format::is_picture);
    let parse: fn(&[u8], &Limits) -> Result<Image, Problem> = match Format::of(path) {
        Ok(Format::Tiff) => raster::parse_tiff_labels,
        _ => raster::parse_png_labels,
    };
    let image = match Format::of(path) {
        Ok(Format::Png | Format::Tiff) => read_bytes(path, &limits)
            .and_then(|bytes| parse(&bytes, &limits).map_err(|problem| problem.in_file(path))),
        _ => read(path, &limits),
    };
    let image = image.map_err(Finding::unreadable)?;
    let image = if is_picture { of_picture(image, is_lossy(path)) } else { Ok(image) };
    let image = image.map_err(|finding| finding.in_file(path))?;
    if image.shape[0] != 1 {
        let reason = format!("the number of channels is {}, but a label map or mask has 1", image.shape[0]);
        let finding = Finding::error(FindingKind::SizeMismatch, reason, "store one label per voxel");
        return Err(finding.in_file(path));
    }
    Ok(image)
}

/// Reads a label map of a case as those of raters are read.
///
/// # Errors
/// A file that cannot be read, or is no label map.
pub fn read_label_map(case: &str, path: &Path) -> Result<Volume<u8>, Error> {
    read_labels(path).map_err(|finding| finding.of_case(case).into_error())
}

/// A mask that a picture shows, with one channel.
fn of_picture(image: Image, is_lossy: bool) -> Result<Image, Finding> {
    let [channels, d, h, w] = image.shape;
    let voxels = match image.voxels {
        Voxels::U16(values) if values.contains(&u16::MAX) => {
            Voxels::U8(values.into_iter().map(|value| (value / 257) as u8).collect())
        }
        other => other,
    };
    let Voxels::U8(values) = &voxels else { return Ok(Image { voxels, ..image }) };
    if channels == 1 || values.is_empty() {
        return Ok(Image { voxels, ..image });
    }
    let planes: Vec<&[u8]> = values.chunks(d * h * w).collect();
    let varies = |plane: &&[u8]| plane.iter().any(|value| *value != plane[0]);
    let flat = match &planes[..] {
        [colors @ .., opacity] if channels % 2 == 0 => match !colors.iter().any(varies) && varies(opacity) {
            true => opacity.to_vec(),
            false => brightest(colors, is_lossy)?,
        },
        colors => brightest(colors, is_lossy)?,
    };
    Ok(Image { voxels: Voxels::U8(flat), shape: [1, d, h, w], ..image })
}

/// Colors within this of each other are the same, in files that store values exactly and in others.
const SAME_COLOR: [i32; 2] = [48, 112];
/// A second color is one that so many of the marked voxels have: one in this many.
const SECOND_COLOR: usize = 20;

/// The brightest channel of each voxel of a mask that is drawn in one color.
///
/// # Errors
/// Several colors: those of voxels that are no darker shade of the most frequent bright one.
fn brightest(colors: &[&[u8]], is_lossy: bool) -> Result<Vec<u8>, Finding> {
    let color = |v: usize| colors.iter().map(|plane| i32::from(plane[v])).collect::<Vec<i32>>();
    let all: Vec<u8> =
        (0..colors[0].len()).map(|v| colors.iter().map(|plane| plane[v]).max().unwrap_or(0)).collect();
    if colors.iter().all(|plane| plane == &colors[0]) {
        return Ok(all);
    }
    let most = all.iter().copied().max().unwrap_or(0);
    let mut bright = BTreeMap::<Vec<i32>, usize>::new();
    for v in (0..all.len()).filter(|&v| all[v] > most / 2) {
        *bright.entry(color(v).iter().map(|x| x / 16 * 17).collect()).or_default() += 1;
    }
    let main = bright.into_iter().max_by_key(|(_, count)| *count).map(|(color, _)| color).unwrap_or_default();
    let brightest = main.iter().copied().max().unwrap_or(0).max(1);
    // In a lossy file dark voxels may have any color.
    let (same, darkest) = (SAME_COLOR[usize::from(is_lossy)], if is_lossy { HALF } else { 0 });
    let mut others = BTreeMap::<Vec<i32>, usize>::new();
    for (v, &shade) in all.iter().enumerate().filter(|(_, shade)| **shade > darkest) {
        let color = color(v);
        let differs = |(x, main): (&i32, &i32)| (x - main * i32::from(shade) / brightest).abs() > same;
        if color.iter().zip(&main).any(differs) {
            *others.entry(color.iter().map(|x| x / 16 * 17).collect()).or_default() += 1;
        }
    }
    if others.len() > MOST_CLASSES {
        let advice = "give the label map of this image";
        return Err(Finding::error(
            FindingKind::Unreadable,
            "this is a color picture, not a label map",
            advice,
        ));
    }
    let marked = all.iter().filter(|shade| **shade > 0).count();
    let frequent = others.iter().filter(|(_, count)| SECOND_COLOR * **count > marked);
    let frequent: Vec<String> = frequent.take(3).map(|(color, _)| format!("{color:?}")).collect();
    if frequent.is_empty() {
        return Ok(all);
    }
    let reason = format!("the mask has several colors: {main:?} and about {}", frequent.join(", "));
    let advice = "store a gray value for each class, or a mask for each structure in a folder of its own, as in \
                  rater1/cup/case1.png";
    Err(Finding::error(FindingKind::LabelRange, reason, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_classes() {
        let decode = |coding: LabelCoding, classes, mut labels: Vec<u8>| {
            let strangers = coding.decode(&mut labels, classes);
            (labels, strangers)
        };
        assert_eq!(decode(LabelCoding::Plain, 3, vec![0, 2, 1]), (vec![0, 2, 1], None));
        let strangers = UnknownLabels { values: vec![3, 9], voxels: 3 };
        assert_eq!(decode(LabelCoding::Plain, 3, vec![3, 2, 9, 9]), (vec![0, 2, 0, 0], Some(strangers)));
        assert_eq!(decode(LabelCoding::Values(vec![0, 255]), 2, vec![255, 0]), (vec![1, 0], None));
        assert_eq!(decode(LabelCoding::Threshold(127), 2, vec![127, 128, 255]), (vec![0, 1, 1], None));
    }

    #[test]
    fn the_rule_follows_from_the_values() {
        let rule = |values: &[u8]| {
            let mut found = LabelHistogram::default();
            found.add(values, false);
            LabelCoding::for_values(&found)
        };
        assert_eq!(rule(&[0, 1]).0, LabelCoding::Plain);
        assert_eq!(rule(&[]).1, ["background", "foreground"]);
        assert_eq!(rule(&[0, 255]).0, LabelCoding::Values(vec![0, 255]));
        let (coding, names) = rule(&[0, 1, 2, 4]);
        assert_eq!(coding, LabelCoding::Values(vec![0, 1, 2, 4]));
        assert_eq!(names, ["background", "label_1", "label_2", "label_4"]);
        assert_eq!(rule(&[1, 2, 3]).0, LabelCoding::Plain);
        assert_eq!(rule(&(0..=103).collect::<Vec<u8>>()).0, LabelCoding::Plain);
        let (coding, names) = rule(&(0..=255).step_by(5).collect::<Vec<u8>>());
        assert_eq!((coding, names.len()), (LabelCoding::Threshold(127), 2));
    }

    #[test]
    fn masks_with_smooth_edges_are_cut() {
        let coding = |files: &[&[(u8, usize)]]| {
            let mut found = LabelHistogram::default();
            for file in files {
                let values: Vec<u8> = file.iter().flat_map(|&(value, n)| vec![value; n]).collect();
                found.add(&values, false);
            }
            LabelCoding::for_values(&found).0
        };
        let cut = LabelCoding::Threshold(HALF);
        assert_eq!(coding(&[&[(0, 900), (255, 100), (128, 1), (64, 1)]]), cut, "smooth edges");
        assert_eq!(coding(&[&[(0, 900), (3, 40), (254, 60)]]), cut, "near both ends");
        assert_ne!(coding(&[&[(0, 900), (128, 40), (255, 60)]]), cut, "three classes");
        assert_ne!(
            coding(&[&[(0, 900), (255, 60)], &[(0, 900), (1, 5)]]),
            cut,
            "1 in one file, 255 in another"
        );
        assert_ne!(coding(&[&[(0, 900), (1, 50), (2, 60), (255, 9)]]), cut, "255 is a label to ignore");
        let mut jpeg = LabelHistogram::default();
        jpeg.add(&[[0; 50].as_slice(), &[3; 80], &[100], &[250; 60]].concat(), true);
        assert_eq!(LabelCoding::for_values(&jpeg).0, cut, "noise of a small mask in JPEG");
    }

    #[test]
    fn colors_become_one_channel() {
        let read = |planes: &[[u8; 4]], is_lossy: bool| {
            let shape = [planes.len(), 1, 2, 2];
            let image =
                Image::new(Voxels::U8(planes.concat()), shape, Default::default(), &Limits::default());
            let flat = of_picture(image.unwrap(), is_lossy);
            flat.map(|image| image.to_labels().unwrap().data).map_err(|finding| finding.reason)
        };
        let flat = |planes: &[[u8; 4]]| read(planes, false);
        let (red, none, full) = ([0, 255, 130, 0], [0; 4], [255; 4]);
        assert_eq!(flat(&[red, red, red]), Ok(red.to_vec()));
        assert_eq!(flat(&[red, none, none]), Ok(red.to_vec()));
        assert_eq!(flat(&[red, none, none, [9, 99, 199, 0]]), Ok(red.to_vec()), "opacity is ignored");
        assert_eq!(flat(&[full, full, full, red]), Ok(red.to_vec()), "nothing but opacity varies");
        assert_eq!(flat(&[full, red]), Ok(red.to_vec()));
        let several = flat(&[[0, 255, 0, 0], [0, 0, 255, 0], none]).unwrap_err();
        assert!(several.contains("several colors: [255, 0, 0] and about [0, 255, 0]"), "{several}");
        // Green in JPEG, whose edges have other colors.
        let green = [[0, 3, 78, 20], [250, 254, 203, 10], [2, 0, 77, 30]];
        assert!(flat(&green).unwrap_err().contains("several colors"));
        assert_eq!(read(&green, true), Ok(vec![250, 254, 203, 30]));
        assert!(read(&[[250, 250, 0, 0], [3, 0, 250, 250], none], true).is_err());
    }
}
