//! A case as bytes: a header that says what it is, and sections of numbers that the page reads in place.
//!
//! The page's reader, in `page/src`, must agree with this module.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use ssn_core::{LowRankNormal, Values};
use ssn_eval::{CaseScores, DistributionFile, ModelId, PredictionKind, Region, check_memory};
use ssn_io::{Error, Result};

use crate::image::{self, Data, Range};
use crate::keep::{CLASS_SCALE, KeptVoxels, MODE_WEIGHT, RULE, TEMPERATURE};
use crate::scores::{ScoreRow, score_rows};

/// A case to be shown: its distribution and, as far as they are known, its image and what raters marked.
#[derive(Debug, Clone)]
pub struct ViewCase {
    /// The distribution.
    pub file: DistributionFile,
    /// The image.
    pub picture: Option<StoredPicture>,
    /// What raters marked.
    pub raters: Vec<Rater>,
    /// How samples and prediction compare with the raters.
    pub scores: Option<CaseScores>,
}

/// An image in the intensities in which it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPicture {
    /// The names of the channels.
    pub channels: Vec<String>,
    /// Whether they are red, green and blue.
    pub color: bool,
    /// `[channels, d, h, w]`.
    pub values: Vec<f32>,
}

/// One rater.
#[derive(Debug, Clone, PartialEq)]
pub struct Rater {
    /// The name.
    pub name: String,
    /// `[d, h, w]`.
    pub labels: Vec<u8>,
}

/// How cases are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packing {
    /// The seed that the page starts with.
    pub seed: u64,
    /// Whether image, raters and prediction are cut to the box of what can change or is marked.
    pub crop: bool,
}

impl ViewCase {
    /// The id of the case.
    pub fn name(&self) -> &str {
        &self.file.description().case
    }

    /// Refuses an image or raters of another size than the distribution's.
    fn check(&self) -> Result<()> {
        let voxels = self.file.description().voxels();
        let refuse = |reason: String| Err(Error::case(self.name(), reason));
        if let Some(picture) = &self.picture
            && picture.values.len() != picture.channels.len() * voxels
        {
            return refuse(format!(
                "the image has {} values, but {} channels of {voxels} voxels were expected",
                picture.values.len(),
                picture.channels.len()
            ));
        }
        match self.raters.iter().find(|rater| rater.labels.len() != voxels) {
            Some(Rater { name, labels }) => refuse(format!(
                "the label map of {name} has {} voxels, but {voxels} were expected",
                labels.len()
            )),
            None => Ok(()),
        }
    }
}

/// What every package begins with.
pub const MAGIC: &[u8; 8] = b"SSNVIEW1";
/// The largest package. Browsers hold little more in one buffer.
pub const MAX_BYTES: u64 = 2_000_000_000;
/// Header and sections begin at multiples of this.
const ALIGNMENT: usize = 8;

/// Packs a case.
///
/// Means, variances and factors are the very numbers of the file, in its precision.
///
/// # Errors
/// An image or raters of another size than the distribution, and a case that no browser could hold.
pub fn package(case: &ViewCase, packing: &Packing) -> Result<Vec<u8>> {
    case.check()?;
    let (file, about) = (&case.file, case.file.description());
    check_size(case, packing)?;
    let kept = KeptVoxels::of(file);
    let prediction = file.labels_on_image(&file.prediction()?)?;
    let nearest = about.network_voxels()?;
    let nearest = nearest.as_ref();
    let shown = shown(case, packing, &prediction, &kept, nearest);
    let cut = |labels: &[u8]| shown.cut(labels, about.size);
    let picture = case.picture.as_ref().map(|picture| {
        let cut = |channel: &[f32]| shown.cut(channel, about.size);
        let values: Vec<f32> = picture.values.chunks(about.voxels()).flat_map(cut).collect();
        image::levels(&values, shown.voxels())
    });
    let raters: Vec<u8> = case.raters.iter().flat_map(|rater| cut(&rater.labels)).collect();
    let prediction = cut(&prediction);

    let (d, n) = (file.distribution(), kept.count(file.distribution().voxels()));
    let (c, r) = (d.classes(), d.rank());
    let row = |leading: &[usize], last: &[usize]| [leading, last].concat();
    let voxels = kept.voxels.as_deref();
    let mut sections = vec![];
    if let Some(voxels) = voxels {
        sections.push(Section::new("voxels", vec![n], Content::Numbers(voxels)));
    }
    let rows = |values| Content::Rows { values, voxels };
    sections.push(Section::new("mean", vec![c, n], rows(d.mean())));
    if about.kind == PredictionKind::Stochastic {
        sections.push(Section::new("diagonal", vec![c, n], rows(d.diagonal())));
        sections.push(Section::new("factor", vec![r, c, n], rows(d.factor())));
    }
    if let Some(labels) = file.samples() {
        let content = Content::LabelRows { labels, voxels, row: d.voxels() };
        sections.push(Section::new("samples", vec![file.sample_count(), n], content));
    }
    if let Some(picture) = &picture {
        let content = match &picture.data {
            Data::Bytes(bytes) => Content::Bytes(bytes),
            Data::Words(words) => Content::Words(words),
        };
        sections.push(Section::new("image", row(&[picture.ranges.len()], &shown.size), content));
    }
    if !case.raters.is_empty() {
        let shape = row(&[case.raters.len()], &shown.size);
        sections.push(Section::new("raters", shape, Content::Bytes(&raters)));
    }
    sections.push(Section::new("prediction", shown.size.to_vec(), Content::Bytes(&prediction)));

    let ranges = picture.as_ref().map_or(&[][..], |picture| &picture.ranges);
    let names = case.picture.as_ref().map_or(&[][..], |picture| &picture.channels);
    let channels = names.iter().zip(ranges).map(|(name, &Range { low, high })| Channel { name, low, high });
    let channels: Vec<Channel<'_>> = channels.collect();
    let limit = Limit { temperature: TEMPERATURE, class: CLASS_SCALE, mode: MODE_WEIGHT };
    let header = Header {
        version: VERSION,
        name: &about.case,
        kind: about.kind,
        model: &about.model,
        classes: &about.classes,
        logits: c,
        rank: r,
        size: about.size,
        spacing: about.spacing(),
        affine: about.geometry.affine(),
        has_spacing: about.has_spacing(),
        label_values: about.image.as_ref().and_then(|image| image.label_values.as_deref()),
        region: about.region,
        nearest,
        shown,
        frozen: Frozen { voxels: kept.frozen, rule: RULE, limit },
        seed: packing.seed.to_string(),
        color: case.picture.as_ref().is_some_and(|picture| picture.color && channels.len() == 3),
        channels,
        raters: case.raters.iter().map(|rater| rater.name.as_str()).collect(),
        scores: case.scores.as_ref().map_or_else(Vec::new, score_rows),
        modes: shares(d, voxels).into_iter().map(|share| Mode { share }).collect(),
        sections: places(&sections),
    };
    write(case.name(), &header, &sections)
}

/// Returns the error of a case that takes more than a browser can hold.
fn too_large(case: &str, bytes: u64) -> Error {
    let (bytes, most) = (bytes >> 20, MAX_BYTES >> 20);
    Error::mismatch(format!(
        "case {case} takes {bytes} MiB in the browser, but {most} MiB are the most that browsers hold"
    ))
    .advise("predict it on the box of a mask, or in half precision")
}

/// Refuses a case of an image that no browser or this machine could hold, before anything is made of it: the size of the image
/// is a claim of the file, and its distribution may be small.
fn check_size(case: &ViewCase, packing: &Packing) -> Result<()> {
    let voxels = case.file.description().voxels() as u64;
    if voxels > MAX_BYTES && !packing.crop {
        return Err(too_large(case.name(), voxels));
    }
    // Values, levels and bytes of a channel; the labels of the prediction and of raters, cut out, and as bytes.
    let channels = case.picture.as_ref().map_or(0, |picture| picture.channels.len() as u64);
    let per_voxel = 8 * channels + 2 * case.raters.len() as u64 + 3;
    let distribution = case.file.distribution();
    let numbers = [distribution.mean(), distribution.diagonal(), distribution.factor()];
    let bytes = |values: &Values| values.len() as u64 * if matches!(values, Values::F16(_)) { 2 } else { 4 };
    let packed = numbers.into_iter().map(bytes).sum::<u64>();
    let what = format!("the package of case {}", case.name());
    check_memory(&what, voxels.saturating_mul(per_voxel).saturating_add(packed))
}

/// The part of the image that is shown.
fn shown(
    case: &ViewCase,
    packing: &Packing,
    prediction: &[u8],
    kept: &KeptVoxels,
    nearest: Option<&[Vec<usize>; 3]>,
) -> Region {
    let about = case.file.description();
    if !packing.crop {
        return Region::whole(about.size);
    }
    let mut maps: Vec<&[u8]> = case.raters.iter().map(|rater| rater.labels.as_slice()).collect();
    maps.push(prediction);
    let region = about.region;
    let numbers: Box<dyn Iterator<Item = usize>> = match &kept.voxels {
        Some(voxels) => Box::new(voxels.iter().map(|&x| x as usize)),
        // The corners of the box.
        None => Box::new([0, region.voxels() - 1].into_iter()),
    };
    let Some(nearest) = nearest else {
        return marked_box(about.size, &maps, numbers.map(|x| region.voxel(x)));
    };
    // The voxels of the image that show a kept one.
    let corners = Region::around(numbers.map(|x| region.voxel(x))).and_then(|kept| {
        let near = |axis: usize| {
            let inside = |at: &usize| (kept.start[axis]..kept.start[axis] + kept.size[axis]).contains(at);
            Some((nearest[axis].iter().position(inside)?, nearest[axis].iter().rposition(inside)?))
        };
        let [d, h, w] = [near(0)?, near(1)?, near(2)?];
        Some([[d.0, h.0, w.0], [d.1, h.1, w.1]])
    });
    marked_box(about.size, &maps, corners.into_iter().flatten())
}

/// The share of each column of the factor in Σ_q |P_q|² over the voxels of the package; zeros where there is none.
fn shares(distribution: &LowRankNormal, voxels: Option<&[u32]>) -> Vec<f64> {
    let (v, r, factor) = (distribution.voxels(), distribution.rank(), distribution.factor());
    // Sums of rows in their order, so that the thread count changes nothing.
    let rows: Vec<f64> = (0..r * distribution.classes())
        .into_par_iter()
        .map(|row| {
            let square = |x: usize| f64::from(factor.get(row * v + x)).powi(2);
            match voxels {
                Some(voxels) => voxels.iter().map(|&x| square(x as usize)).sum(),
                None => (0..v).map(square).sum(),
            }
        })
        .collect();
    let squares: Vec<f64> = rows.chunks(distribution.classes()).map(|rows| rows.iter().sum()).collect();
    let total: f64 = squares.iter().sum();
    squares.iter().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
}

/// Voxels that a cut image keeps around what can change or is marked.
const MARGIN: usize = 8;

/// The smallest box, with a margin, outside which every label map `[d, h, w]` is background and no voxel of the image is in
/// `kept`; the whole image where there is nothing at all.
fn marked_box(size: [usize; 3], maps: &[&[u8]], kept: impl Iterator<Item = [usize; 3]>) -> Region {
    let whole = Region::whole(size);
    let marked = maps.iter().flat_map(|map| map.chunks(size[2]).enumerate()).flat_map(|(row, labels)| {
        let first = labels.iter().position(|label| *label > 0);
        let last = labels.iter().rposition(|label| *label > 0);
        [first, last].into_iter().flatten().map(move |column| whole.voxel(row * size[2] + column))
    });
    Region::around(kept.chain(marked)).map_or(whole, |region| region.grown(MARGIN, size))
}

const VERSION: u32 = 1;

/// What a package says about itself.
#[derive(Debug, Serialize)]
struct Header<'a> {
    version: u32,
    name: &'a str,
    kind: PredictionKind,
    model: &'a ModelId,
    classes: &'a [String],
    /// Rows of logits; 1 where a single class is off or on.
    logits: usize,
    rank: usize,
    size: [usize; 3],
    /// Along d, h, w.
    spacing: [f64; 3],
    /// (i, j, k, 1) to RAS+.
    affine: [[f64; 4]; 3],
    /// Whether lengths are in millimeters; otherwise in voxels.
    has_spacing: bool,
    /// The values that the dataset stores classes by, where they are not their numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    label_values: Option<&'a [u8]>,
    region: Region,
    /// For each voxel of the image the nearest one of the network's grid, along d, h, w.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'a [Vec<usize>; 3]>,
    shown: Region,
    frozen: Frozen,
    /// As text: JavaScript has no whole numbers of 64 bits.
    seed: String,
    channels: Vec<Channel<'a>>,
    /// Whether the channels are red, green and blue.
    color: bool,
    raters: Vec<&'a str>,
    /// In the order of tables; none where the case was not evaluated.
    scores: Vec<ScoreRow>,
    modes: Vec<Mode>,
    sections: BTreeMap<&'static str, Place>,
}

#[derive(Debug, Serialize)]
struct Frozen {
    voxels: usize,
    rule: &'static str,
    limit: Limit,
}

#[derive(Debug, Serialize)]
struct Limit {
    temperature: f64,
    class: f64,
    mode: f64,
}

#[derive(Debug, Serialize)]
struct Channel<'a> {
    name: &'a str,
    low: f32,
    high: f32,
}

#[derive(Debug, Serialize)]
struct Mode {
    share: f64,
}

struct Section<'a> {
    name: &'static str,
    shape: Vec<usize>,
    content: Content<'a>,
}

/// Where its numbers come from.
enum Content<'a> {
    /// Rows of the numbers of a region, of which the chosen voxels are taken; all if none are named.
    Rows { values: &'a Values, voxels: Option<&'a [u32]> },
    /// The same of labels, with `row` of them in a row.
    LabelRows { labels: &'a [u8], voxels: Option<&'a [u32]>, row: usize },
    /// Numbers of 32 bits.
    Numbers(&'a [u32]),
    /// Numbers of 16 bits.
    Words(&'a [u16]),
    /// Numbers of 8 bits.
    Bytes(&'a [u8]),
}

/// Where a section lies, counted from the end of the header.
#[derive(Debug, Serialize)]
struct Place {
    #[serde(rename = "type")]
    kind: &'static str,
    shape: Vec<usize>,
    offset: usize,
    bytes: usize,
}

impl<'a> Section<'a> {
    fn new(name: &'static str, shape: Vec<usize>, content: Content<'a>) -> Self {
        Self { name, shape, content }
    }

    /// The name of its type, and the bytes of a number.
    fn kind(&self) -> (&'static str, usize) {
        match self.content {
            Content::Rows { values: Values::F32(_), .. } => ("f32", 4),
            Content::Rows { values: Values::F16(_), .. } => ("f16", 2),
            Content::Numbers(_) => ("u32", 4),
            Content::Words(_) => ("u16", 2),
            Content::LabelRows { .. } | Content::Bytes(_) => ("u8", 1),
        }
    }

    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind().1
    }

    /// Writes its numbers, little endian.
    fn fill(&self, out: &mut [u8]) {
        match &self.content {
            Content::Rows { values, voxels } => {
                // The last axis is that of voxels; a package without any has no rows to fill.
                let rows: usize = self.shape[..self.shape.len() - 1].iter().product();
                let row = values.len() / rows.max(1);
                match values {
                    Values::F32(values) => fill_rows(values, row, *voxels, out, |x| x.to_le_bytes()),
                    Values::F16(values) => fill_rows(values, row, *voxels, out, |x| x.to_le_bytes()),
                }
            }
            Content::LabelRows { labels, voxels, row } => fill_rows(labels, *row, *voxels, out, |x| [x]),
            Content::Numbers(values) => fill(out, values, u32::to_le_bytes),
            Content::Words(values) => fill(out, values, u16::to_le_bytes),
            Content::Bytes(values) => out.copy_from_slice(values),
        }
    }
}

/// Writes rows of `row` values, each cut to the chosen voxels.
fn fill_rows<T: Copy + Sync, const N: usize>(
    values: &[T],
    row: usize,
    voxels: Option<&[u32]>,
    out: &mut [u8],
    bytes: impl Fn(T) -> [u8; N] + Sync,
) {
    let count = voxels.map_or(row, <[u32]>::len);
    if count == 0 || row == 0 {
        return;
    }
    out.par_chunks_mut(N * count).zip(values.par_chunks(row)).for_each(|(out, values)| {
        let places = out.as_chunks_mut::<N>().0.iter_mut();
        match voxels {
            Some(voxels) => places.zip(voxels).for_each(|(place, &x)| *place = bytes(values[x as usize])),
            None => places.zip(values).for_each(|(place, &x)| *place = bytes(x)),
        }
    });
}

fn fill<T: Copy, const N: usize>(out: &mut [u8], values: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let places = out.as_chunks_mut::<N>().0.iter_mut();
    places.zip(values).for_each(|(place, &x)| *place = bytes(x));
}

/// Where each section lies.
fn places(sections: &[Section<'_>]) -> BTreeMap<&'static str, Place> {
    let mut offset = 0;
    let mut place = |section: &Section<'_>| {
        let (kind, bytes) = (section.kind().0, section.bytes());
        let place = Place { kind, shape: section.shape.clone(), offset, bytes };
        offset = (offset + bytes).next_multiple_of(ALIGNMENT);
        (section.name, place)
    };
    sections.iter().map(&mut place).collect()
}

/// Header and sections as one array of bytes.
fn write(case: &str, header: &Header<'_>, sections: &[Section<'_>]) -> Result<Vec<u8>> {
    let text = serde_json::to_string(header).map_err(|error| Error::case(case, error))?;
    let length = text.len().next_multiple_of(ALIGNMENT);
    let start = MAGIC.len() + 8 + length;
    let places = places(sections);
    let end = places.values().map(|place| place.offset + place.bytes).max().unwrap_or(0);
    if (start + end) as u64 > MAX_BYTES {
        return Err(too_large(case, (start + end) as u64));
    }
    // The sections are cut out of zeros, which the system gives without touching them.
    let mut out = vec![0; start + end];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    out[16..16 + text.len()].copy_from_slice(text.as_bytes());
    out[16 + text.len()..start].fill(b' ');
    for section in sections {
        let place = &places[section.name];
        section.fill(&mut out[start + place.offset..][..place.bytes]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_marks_is_shown_whole() {
        let nothing = marked_box([1, 40, 50], &[&[0; 2000]], std::iter::empty());
        assert_eq!(nothing, Region::whole([1, 40, 50]));
    }
}
