//! The distribution of the logits of one case, what it is about, and both as a file: sampling needs no network.
//!
//! `docs/reference/distribution-files.md` describes the format; this module is that page in Rust.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_args::StoredPrecision;
use ssn_core::space::{Grid, Region, voxel_count};
use ssn_core::{LabelMap, LowRankNormal, Sampler, Steering, Values};
use ssn_data::resample_labels;
use ssn_data::text::counted;
use ssn_io::hex::from_hex;
use ssn_io::{Error, Geometry, Image, Limits, Problem, Result, Segment, Voxels, write_atomically};

use super::tensors::{self, CHOOSE, Reader, Tensor};
use crate::memory::check_memory;

/// The version of files, and that of files with a grid of the network's own, which readers of the first cannot place.
const VERSION: u32 = 1;
const VERSION_WITH_GRID: u32 = 2;
/// The tensors that a file may have, in the order in which they are read.
const TENSORS: [&str; 6] = ["diagonal", "factor", "labels", "mask", "mean", "samples"];

/// How a network describes its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PredictionKind {
    /// A distribution of logits.
    Stochastic,
    /// Logits alone: rank 0 and a diagonal of zeros.
    Deterministic,
    /// Samples that the network drew itself: the mean holds the logarithm of their mean probabilities, rank 0 and a
    /// diagonal of zeros as for a deterministic network, and the label maps of the samples lie beside it.
    Sampled,
}

/// A model by its content and by the name that people gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelId {
    /// SHA-256 of the model, in hexadecimal.
    pub sha256: String,
    /// The name of the model or of the run that made it.
    pub name: String,
}

/// What the file says about its distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseDescription {
    /// The id of the case.
    pub case: String,
    /// The names of the labels, the background first; two for a distribution of a single class, off and on.
    pub classes: Vec<String>,
    /// Whether there is a distribution, logits alone, or samples.
    pub kind: PredictionKind,
    /// The size `[d, h, w]` of the whole image.
    pub size: [usize; 3],
    /// Where the voxels of the whole image lie.
    #[serde(with = "GeometryFields")]
    pub geometry: Geometry,
    /// The grid of the network where it is another than the image's, as with `data.spacing`. Both have the same middle and axes,
    /// and a voxel of the image has what the nearest voxel of the network has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_grid: Option<NetworkGrid>,
    /// The box of the network's grid that the distribution covers; everything outside is background.
    pub region: Region,
    /// The model that made it.
    pub model: ModelId,
    /// How the image that it is of is stored, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<StoredImage>,
    /// Whether there is nothing but one label map, whose labels the mean makes the most probable ones: probabilities say nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub labels_only: bool,
}

/// The voxels on which a network saw an image.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NetworkGrid {
    /// Voxels along d, h, w.
    pub size: [usize; 3],
    /// The distance of neighboring voxels along d, h and w.
    pub spacing: [f64; 3],
}

/// How an image and its labels are stored, so that label maps are stored alike.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredImage {
    /// SHA-256 of its files, by [`ssn_data::Dataset::image_sha256`].
    pub sha256: String,
    /// Whether the files say how far voxels are apart; pictures do not.
    pub has_spacing: bool,
    /// Whether the model trained on the image, though nobody asked for cases of the training set. An evaluation leaves it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trained_on: bool,
    /// The values that the dataset stores classes by, where they are not their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_values: Option<Vec<u8>>,
    /// The NIfTI header in hexadecimal: label maps keep its sform, qform and units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nifti_header: Option<String>,
}

/// [`Geometry`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Geometry")]
struct GeometryFields {
    spacing: [f64; 3],
    origin: [f64; 3],
    direction: [[f64; 3]; 3],
}

impl CaseDescription {
    /// The number of voxels of the whole image.
    pub fn voxels(&self) -> usize {
        voxel_count(self.size).unwrap_or(usize::MAX)
    }

    /// The distance of neighboring voxels along d, h and w; the geometry's own axes are i, j, k.
    pub fn spacing(&self) -> [f64; 3] {
        let [along_w, along_h, along_d] = self.geometry.spacing;
        [along_d, along_h, along_w]
    }

    /// Whether lengths are in millimeters, because the image's files say so. Where it is not known how the image is stored, one slice
    /// in the geometry that files without one get is taken for a picture.
    pub fn has_spacing(&self) -> bool {
        let is_flat = self.size[0] == 1 && self.geometry == Geometry::default();
        self.image.as_ref().map_or(!is_flat, |image| image.has_spacing)
    }

    /// Whether the image is known to be a picture, such as PNG: one slice without spacing.
    pub fn is_picture(&self) -> bool {
        self.size[0] == 1 && self.image.is_some() && !self.has_spacing()
    }

    /// The volume of a voxel in milliliters, a thousand cubic millimeters.
    pub fn milliliters(&self) -> f64 {
        self.geometry.spacing.iter().product::<f64>() / 1000.0
    }

    /// The size `[d, h, w]` of the grid that the region lies in.
    fn network_size(&self) -> [usize; 3] {
        self.network_grid.map_or(self.size, |grid| grid.size)
    }

    /// For each voxel of the image the nearest one of the network's grid, along d, h and w; nothing where the grids are the
    /// same.
    pub fn network_voxels(&self) -> Result<Option<[Vec<usize>; 3]>> {
        let Some((image, network)) = self.grids()? else { return Ok(None) };
        let along_axes = self.size.iter().map(|&n| n as u64).fold(0, u64::saturating_add);
        check_memory(
            &format!("the grid of case {}", self.case),
            along_axes.saturating_mul(size_of::<usize>() as u64),
        )?;
        Ok(Some(image.nearest_voxels(&network)))
    }

    /// The grids of the image and of the network, where they differ.
    fn grids(&self) -> Result<Option<(Grid, Grid)>> {
        let Some(network) = self.network_grid else { return Ok(None) };
        Ok(Some((Grid::new(self.size, self.spacing())?, Grid::new(network.size, network.spacing)?)))
    }

    /// What is wrong with the description itself.
    fn check(&self) -> Result<(), String> {
        let Self { classes, size, geometry, region, .. } = self;
        if voxel_count(*size).is_none_or(|voxels| voxels == 0) {
            return Err(format!(
                "the size of the image is {size:?}, but it must be positive along each axis, and countable"
            ));
        }
        self.grids().map_err(|error| format!("the grid of the network: {error}"))?;
        let size = self.network_size();
        if !region.lies_in(size) {
            return Err(format!(
                "the region starts at {:?} with size {:?}, but it must lie in the image of size {size:?}",
                region.start, region.size
            ));
        }
        let values = self.image.as_ref().and_then(|image| image.label_values.as_ref());
        if values.is_some_and(|values| values.len() != classes.len()) {
            return Err(format!(
                "the values of classes are {values:?}, but there are {} classes",
                classes.len()
            ));
        }
        if classes.len() < 2 {
            return Err(format!("classes are {classes:?}, but there must be two or more"));
        }
        if let Some(value) = geometry.spacing.iter().find(|x| !(x.is_finite() && **x > 0.0)) {
            return Err(format!("a spacing is {value}, but it must be positive"));
        }
        let rest = geometry.origin.iter().chain(geometry.direction.as_flattened());
        match rest.into_iter().find(|x| !x.is_finite()) {
            Some(value) => Err(format!("a number of the geometry is {value}, but it must be finite")),
            None if !geometry.spans_volume() => {
                let direction = geometry.direction;
                Err(format!(
                    "the direction is {direction:?}, but its axes must point in different directions"
                ))
            }
            None => Ok(()),
        }
    }

    /// Refuses tensors whose shapes disagree with the description or with each other; `shape` gives that of a tensor by its name.
    fn check_shapes(&self, shape: impl Fn(&str) -> Option<Vec<usize>>) -> Result<Shapes, String> {
        let needed = |name: &str| shape(name).ok_or_else(|| format!("it has no tensor `{name}`"));
        let (mean, _, factor) = (needed("mean")?, needed("diagonal")?, needed("factor")?);
        let (labels, voxels) = (self.classes.len(), self.region.voxels());
        let classes = if labels == 2 && mean.first() == Some(&1) { 1 } else { labels };
        let (rows, map) = ([classes, voxels], [voxels]);
        for (name, expected) in [("mean", &rows[..]), ("diagonal", &rows), ("labels", &map), ("mask", &map)] {
            if let Some(found) = shape(name).filter(|found| found != expected) {
                return Err(format!("`{name}` has shape {found:?}, but it must be {expected:?}"));
            }
        }
        let rank = match factor.as_slice() {
            [rank, rest @ ..] if *rest == rows => *rank,
            other => {
                return Err(format!("`factor` has shape {other:?}, but it must be the rank and {rows:?}"));
            }
        };
        Err(match (self.kind, shape("samples").as_deref()) {
            (PredictionKind::Deterministic, _) if rank > 0 => {
                format!("its rank is {rank}, but a deterministic network has rank 0")
            }
            (PredictionKind::Sampled, _) if rank > 0 => {
                format!("its rank is {rank}, but that of a network that draws samples itself is 0")
            }
            (PredictionKind::Stochastic | PredictionKind::Deterministic, None) => {
                return Ok(Shapes { classes, rank, samples: 0 });
            }
            (PredictionKind::Stochastic | PredictionKind::Deterministic, Some(_)) => {
                "it has a tensor `samples`, which only a network that draws samples itself has".to_owned()
            }
            (PredictionKind::Sampled, None) => "it has no tensor `samples`".to_owned(),
            (PredictionKind::Sampled, Some(&[samples, v])) if samples > 0 && v == voxels => {
                return Ok(Shapes { classes, rank, samples });
            }
            (PredictionKind::Sampled, Some(other)) => format!(
                "`samples` has shape {other:?}, but it must be the number of samples, at least 1, and {voxels}"
            ),
        })
    }

    /// Refuses values that the description does not allow: noise, values of a mask `[v]`, and labels of samples `[m, v]`.
    fn check_values(
        &self,
        distribution: &LowRankNormal,
        mask: Option<&[u8]>,
        samples: Option<&[u8]>,
    ) -> Result<(), String> {
        let without_noise = match self.kind {
            PredictionKind::Stochastic => None,
            PredictionKind::Deterministic => Some("a deterministic network"),
            PredictionKind::Sampled => Some("a network that draws samples itself"),
        };
        let diagonal = distribution.diagonal();
        if let Some(network) = without_noise.filter(|_| (0..diagonal.len()).any(|i| diagonal.get(i) != 0.0)) {
            return Err(format!("{network} has rank 0 and a diagonal of zeros"));
        }
        if let Some(value) = mask.and_then(|mask| mask.iter().find(|&&x| x > 1)) {
            return Err(format!("the mask holds {value}, but it must be 0 or 1"));
        }
        let labels = self.classes.len();
        // The maximum runs vectorized over all labels.
        match samples.and_then(|samples| samples.iter().max()) {
            Some(&label) if usize::from(label) >= labels => {
                Err(format!("a sample has the label {label}, but the labels are 0 to {}", labels - 1))
            }
            _ => Ok(()),
        }
    }
}

/// What the shapes of tensors say once they fit the description.
struct Shapes {
    classes: usize,
    rank: usize,
    samples: usize,
}

/// The distribution of one case, what it is about, the region of interest, and the samples of a network that draws them
/// itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionFile {
    description: CaseDescription,
    distribution: LowRankNormal,
    mask: Option<Vec<u8>>,
    /// `[m, v]`; none unless the kind is `PredictionKind::Sampled`.
    samples: Option<Vec<u8>>,
    /// The prediction `[v]`, where it is another than the labels of the mean.
    labels: Option<Vec<u8>>,
}

impl DistributionFile {
    /// Puts a distribution and what it is about together.
    ///
    /// # Shapes
    /// `mask` `[v]`: 1 in the region of interest, 0 elsewhere; nothing means everywhere.
    ///
    /// # Errors
    /// When they disagree in classes or voxels, when the region is not in the image, and for
    /// [`PredictionKind::Sampled`](crate::PredictionKind::Sampled), which needs samples.
    pub fn new(
        description: CaseDescription,
        distribution: LowRankNormal,
        mask: Option<Vec<u8>>,
    ) -> Result<Self> {
        Self::of_parts(description, distribution, mask, None)
    }

    /// Puts the samples that a network drew itself and what they are about together.
    ///
    /// # Shapes
    /// `mean` `[c, v]`: the logarithm of the mean over the samples of the probabilities, which must be finite, so that a
    /// probability of 0 has to be bounded from below; for a single class that is off or on, `[1, v]`, their logit.
    /// `samples` `[m, v]`: the labels of the samples. `mask` `[v]` as in [`DistributionFile::new`].
    ///
    /// # Errors
    /// Unless the kind is [`PredictionKind::Sampled`](crate::PredictionKind::Sampled), there is at least one
    /// sample, all have as many voxels as the region, and all labels have a name, and as [`DistributionFile::new`];
    /// For a mean of another length, or with a value that is not finite.
    pub fn sampled(
        description: CaseDescription,
        mean: impl Into<Values>,
        samples: Vec<u8>,
        mask: Option<Vec<u8>>,
    ) -> Result<Self> {
        description.check().map_err(Error::mismatch)?;
        let (mean, labels, v) = (mean.into(), description.classes.len(), description.region.voxels());
        let rows = if labels == 2 && mean.len() == v { 1 } else { labels };
        let (diagonal, factor) = (vec![0f32; mean.len()], vec![0f32; 0]);
        let distribution = LowRankNormal::new(rows, v, 0, mean, diagonal, factor)?;
        Self::of_parts(description, distribution, mask, Some(samples))
    }

    /// Puts all parts together, of any kind: `mask` as in [`DistributionFile::new`], `samples` as in
    /// [`DistributionFile::sampled`], whose distribution is the mean alone.
    ///
    /// # Errors
    /// When they disagree.
    pub fn of_parts(
        description: CaseDescription,
        distribution: LowRankNormal,
        mask: Option<Vec<u8>>,
        samples: Option<Vec<u8>>,
    ) -> Result<Self> {
        description.check().map_err(Error::mismatch)?;
        let (c, v, r) = (distribution.classes(), distribution.voxels(), distribution.rank());
        let shape = |name: &str| match name {
            "mean" | "diagonal" => Some(vec![c, v]),
            "factor" => Some(vec![r, c, v]),
            "mask" => mask.as_ref().map(|mask| vec![mask.len()]),
            // Labels that are no whole samples have no shape but their number.
            "samples" => samples.as_ref().map(|samples| match samples.len().is_multiple_of(v) {
                true => vec![samples.len() / v, v],
                false => vec![samples.len()],
            }),
            _ => None,
        };
        description
            .check_shapes(shape)
            .map_err(|reason| format!("case {}: {reason}", description.case))
            .and_then(|_| description.check_values(&distribution, mask.as_deref(), samples.as_deref()))
            .map_err(Error::mismatch)?;
        Ok(Self { description, distribution, mask, samples, labels: None })
    }

    /// The same for an image of a size `[d, h, w]` that was resampled for the network: the grid so far is the network's.
    ///
    /// # Errors
    /// For a size or geometry that cannot be.
    pub fn resampled_from(mut self, size: [usize; 3], geometry: Geometry) -> Result<Self> {
        let about = &mut self.description;
        if about.size != size || about.geometry.spacing != geometry.spacing {
            about.network_grid = Some(NetworkGrid { size: about.size, spacing: about.spacing() });
            (about.size, about.geometry) = (size, geometry);
        }
        self.description.check().map_err(Error::mismatch)?;
        Ok(self)
    }

    /// The same with a prediction `[v]` that is another than the labels of the mean, as that of another tool.
    ///
    /// # Errors
    /// For labels of another number than the region has voxels, or without a class.
    pub fn with_labels(mut self, labels: Vec<u8>) -> Result<Self> {
        self.check_count("the prediction", labels.len(), "the region", self.distribution.voxels())?;
        LabelMap::new(labels.clone(), self.labels())?;
        self.labels = Some(labels);
        Ok(self)
    }

    /// The same, with how the image that it is of is stored.
    pub fn of_image(mut self, image: Option<StoredImage>) -> Self {
        self.description.image = image;
        self
    }

    /// The same with its numbers in another precision.
    ///
    /// # Errors
    /// For a number beyond 65504 that half precision cannot hold: keep single precision then.
    pub fn with_precision(self, precision: StoredPrecision) -> Result<Self> {
        let [rest, factor]: [fn(Values) -> Values; 2] = match precision {
            StoredPrecision::Single => [Values::into_single; 2],
            StoredPrecision::HalfFactor => [Values::into_single, Values::into_half],
            StoredPrecision::Half => [Values::into_half; 2],
        };
        Ok(Self { distribution: self.distribution.stored(rest, factor)?, ..self })
    }

    /// What the distribution is about.
    pub fn description(&self) -> &CaseDescription {
        &self.description
    }

    /// The distribution over the voxels of the region.
    pub fn distribution(&self) -> &LowRankNormal {
        &self.distribution
    }

    /// The region of interest `[v]`, 1 inside and 0 outside; nothing means everywhere.
    pub fn mask(&self) -> Option<&[u8]> {
        self.mask.as_deref()
    }

    /// The labels `[m, v]` of the samples that the network drew itself; nothing where samples are drawn from the
    /// distribution.
    pub fn samples(&self) -> Option<&[u8]> {
        self.samples.as_deref()
    }

    /// The number of samples that the network drew itself; 0 where samples are drawn from the distribution.
    pub fn sample_count(&self) -> usize {
        self.samples.as_ref().map_or(0, |samples| samples.len() / self.distribution.voxels())
    }

    /// The number of labels: the classes, or two for a single class that is off or on.
    pub fn labels(&self) -> usize {
        self.description.classes.len()
    }

    /// The prediction `[v]` on the region: the labels of the mean, unless there are others. Where the network drew samples itself, those are the
    /// most probable ones over its samples.
    pub fn prediction(&self) -> Result<LabelMap> {
        if let Some(labels) = &self.labels {
            return Ok(LabelMap::new(labels.clone(), self.labels())?);
        }
        let mean = Steering { temperature: 0.0, ..Steering::default() };
        let mut maps = Sampler::new(&self.distribution, 0, &mean)?.labels(0..1)?;
        Ok(maps.remove(0))
    }

    /// A label map of the region as one `[d, h, w]` of the whole image, on its own grid: background outside the region and its
    /// mask.
    pub fn map_on_image(&self, map: &LabelMap) -> Result<LabelMap> {
        Ok(LabelMap::new(self.labels_on_image(map)?, self.labels())?)
    }

    /// [`DistributionFile::map_on_image`] as plain labels.
    pub fn labels_on_image(&self, map: &LabelMap) -> Result<Vec<u8>> {
        self.on_image(map.labels(), 0)
    }

    /// Values `[v]` on the region, put in their place in the whole image, `[d, h, w]`; `outside` everywhere else, and
    /// outside the mask.
    pub fn values_on_image(&self, values: &[f32], outside: f32) -> Result<Vec<f32>> {
        self.on_image(values, outside)
    }

    /// Probabilities `[l, v]` of the region on the whole image, `[l, d, h, w]`: outside, all is background.
    pub(crate) fn probabilities_on_image(&self, rows: &[f32]) -> Result<Vec<f32>> {
        self.rows_on_image(rows, background)
    }

    /// The labels `[v]` of the region, out of a label map `[d, h, w]` of the whole image; on the grid of the network.
    pub fn crop_to_region(&self, labels: &[u8]) -> Result<Vec<u8>> {
        self.check_count("the label map", labels.len(), "the image", self.description.voxels())?;
        let CaseDescription { region, size, .. } = &self.description;
        Ok(match self.description.grids()? {
            None => region.cut(labels, *size),
            Some((image, network)) => region.cut(&resample_labels(labels, &image, &network), network.shape()),
        })
    }

    /// A label map `[d, h, w]` of the whole image as an image, in the geometry of the one that was predicted and by the values that
    /// its dataset stores classes by.
    pub fn as_image(&self, mut labels: Vec<u8>) -> Result<Image> {
        self.check_count("the label map", labels.len(), "the image", self.description.voxels())?;
        if let Some(values) = self.description.image.as_ref().and_then(|image| image.label_values.as_ref()) {
            labels.iter_mut().for_each(|label| *label = values[usize::from(*label)]);
        }
        self.image(Voxels::U8(labels), 1)
    }

    /// The classes but the background with the labels that [`as_image`](Self::as_image) gives them, for files that hold names.
    pub fn segments(&self) -> Vec<Segment> {
        let values = self.description.image.as_ref().and_then(|image| image.label_values.as_ref());
        let label = |class: usize| values.map_or(class as u8, |values| values[class]);
        let classes = self.description.classes.iter().enumerate().skip(1);
        classes.map(|(class, name)| Segment { name: name.clone(), label: label(class) }).collect()
    }

    /// Rows of values `[channels, v]` on the region as an image with a channel for each; `outside` elsewhere, by channel.
    pub fn rows_as_image(&self, rows: &[f32], outside: impl Fn(usize) -> f32) -> Result<Image> {
        let channels = rows.len().div_ceil(self.distribution.voxels());
        self.image(Voxels::F32(self.rows_on_image(rows, outside)?), channels)
    }

    /// Probabilities `[l, v]` of the region as an image with a channel per label; outside, all is background.
    pub fn probabilities_as_image(&self, rows: &[f32]) -> Result<Image> {
        self.rows_as_image(rows, background)
    }

    fn rows_on_image(&self, rows: &[f32], outside: impl Fn(usize) -> f32) -> Result<Vec<f32>> {
        let rows = rows.chunks(self.distribution.voxels());
        // All rows, and one of them before it is among them.
        self.check_image_memory::<f32>(rows.len().saturating_add(1))?;
        let mut values = Vec::with_capacity(rows.len() * self.description.voxels());
        for (channel, row) in rows.enumerate() {
            values.extend(self.on_image(row, outside(channel))?);
        }
        Ok(values)
    }

    fn image(&self, voxels: Voxels, channels: usize) -> Result<Image> {
        let CaseDescription { size: [d, h, w], geometry, .. } = self.description;
        let image =
            Image::new(voxels, [channels, d, h, w], geometry, &Limits::default()).map_err(Error::mismatch)?;
        let header = self.description.image.as_ref().and_then(|image| image.nifti_header.as_deref());
        Ok(Image { source: header.and_then(from_hex), ..image })
    }

    fn on_image<T: Copy>(&self, values: &[T], outside: T) -> Result<Vec<T>> {
        self.check_count("the map", values.len(), "the region", self.distribution.voxels())?;
        self.check_image_memory::<T>(1)?;
        let CaseDescription { size, region, .. } = &self.description;
        if let Some(nearest) = self.description.network_voxels()? {
            return Ok(self.on_other_grid(values, outside, &nearest));
        }
        let row = region.size[2];
        let mut image = vec![outside; self.description.voxels()];
        for (number, place) in region.rows(*size).enumerate() {
            let here = number * row..(number + 1) * row;
            image[place.clone()].copy_from_slice(&values[here.clone()]);
            if let Some(mask) = &self.mask {
                let cleared = image[place].iter_mut().zip(&mask[here]).filter(|(_, inside)| **inside == 0);
                cleared.for_each(|(value, _)| *value = outside);
            }
        }
        Ok(image)
    }

    /// Values `[v]` of the region on the image, of which each voxel has the nearest one of the network's grid along each axis.
    fn on_other_grid<T: Copy>(&self, values: &[T], outside: T, nearest: &[Vec<usize>; 3]) -> Vec<T> {
        let Region { start, size: [_, h, w] } = self.description.region;
        // Where the voxels lie in the region, if they do.
        let inside: [Vec<Option<usize>>; 3] = std::array::from_fn(|axis| {
            let end = self.description.region.size[axis];
            let place = |at: &usize| at.checked_sub(start[axis]).filter(|at| *at < end);
            nearest[axis].iter().map(place).collect()
        });
        let mut image = Vec::with_capacity(self.description.voxels());
        for z in &inside[0] {
            for y in &inside[1] {
                let row = z.zip(*y).map(|(z, y)| (z * h + y) * w);
                image.extend(inside[2].iter().map(|x| match row.zip(*x).map(|(row, x)| row + x) {
                    Some(at) if self.mask.as_ref().is_none_or(|mask| mask[at] > 0) => values[at],
                    _ => outside,
                }));
            }
        }
        image
    }

    /// Refuses to make so many maps of the whole image where memory does not hold them: its size is a claim of the file, and
    /// the region may be small.
    fn check_image_memory<T>(&self, maps: usize) -> Result<()> {
        let voxels = (self.description.voxels() as u64).saturating_mul(maps as u64);
        let what =
            format!("case {} with an image of size {:?}", self.description.case, self.description.size);
        check_memory(&what, voxels.saturating_mul(size_of::<T>() as u64))
    }

    fn check_count(&self, what: &str, found: usize, of: &str, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let case = &self.description.case;
        Err(Error::case(case, format!("{what} has {found} voxels, but {of} has {expected}")))
    }

    /// Writes the file, atomically; replaces a file of that name. The same content gives the same bytes.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = text(&self.description)?;
        write_atomically(path, |out| tensors::write(out, &text, self.tensors()))?;
        Ok(())
    }

    /// Returns the bytes of the file without its hash, which [`DistributionFile::of_bytes`] reads: for another process of this machine.
    ///
    /// # Errors
    /// Too little memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let text = text(&self.description)?;
        let tensors = self.tensors();
        // The header needs its text, and less than a kilobyte per tensor.
        let needed = tensors.iter().map(Tensor::len).sum::<usize>() + 2 * text.len() + 1024 * tensors.len();
        let mut bytes = vec![];
        let refused = |_| Error::memory(format!("case {}", self.description.case), needed as u64);
        bytes.try_reserve_exact(needed).map_err(refused)?;
        tensors::write_unhashed(&mut bytes, &text, tensors).map_err(Error::mismatch)?;
        Ok(bytes)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let d = &self.distribution;
        let (c, v, r) = (d.classes(), d.voxels(), d.rank());
        let mut all = vec![
            Tensor::floats("mean", vec![c, v], d.mean()),
            Tensor::floats("diagonal", vec![c, v], d.diagonal()),
            Tensor::floats("factor", vec![r, c, v], d.factor()),
        ];
        for (name, shape, bytes) in [
            ("mask", vec![v], &self.mask),
            ("labels", vec![v], &self.labels),
            ("samples", vec![self.sample_count(), v], &self.samples),
        ] {
            all.extend(bytes.as_ref().map(|bytes| Tensor::bytes(name, shape, bytes)));
        }
        all
    }

    /// Reads a file. Memory is bounded by what the file holds.
    ///
    /// # Errors
    /// A sentence for a file that is none of ours, of another version, cut off or damaged, whose shapes disagree, or
    /// whose numbers are not finite.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self> {
        Self::of_reader(path, Reader::open(path, limits)?, limits)
    }

    /// Reads the bytes of a file, as [`DistributionFile::read`] does, or those of [`DistributionFile::to_bytes`].
    pub fn of_bytes(bytes: Vec<u8>, limits: &Limits) -> Result<Self> {
        let name = Path::new("the distribution");
        Self::of_reader(name, Reader::of_bytes(name, bytes, limits)?, limits)
    }

    fn of_reader(path: &Path, mut reader: Reader, limits: &Limits) -> Result<Self> {
        let Header { description, classes, rank, samples: stored, .. } = header(path, &reader, limits)?;
        // A file may be as long as it likes without taking room on a disk.
        check_memory(&path.display().to_string(), reader.tensor_bytes())?;
        let (diagonal, factor) = (reader.floats("diagonal")?, reader.floats("factor")?);
        let labels = reader.shape("labels").is_some().then(|| reader.bytes("labels")).transpose()?;
        let mask = reader.shape("mask").is_some().then(|| reader.bytes("mask")).transpose()?;
        let mean = reader.floats("mean")?;
        let samples = (stored > 0).then(|| reader.bytes("samples")).transpose()?;
        let v = description.region.voxels();
        reader.verify()?;
        let distribution = LowRankNormal::new(classes, v, rank, mean, diagonal, factor)
            .map_err(|error| Error::data(path, error).advise("predict the case again"))?;
        let file = Self::of_parts(description, distribution, mask, samples);
        match labels {
            None => file,
            Some(labels) => file.and_then(|file| file.with_labels(labels)),
        }
        .map_err(|error| Error::data(path, error).advise(CHOOSE))
    }

    /// Reads what the file is about, and checks that its length and its shapes are right; its numbers are not looked at.
    pub fn read_header(path: &Path, limits: &Limits) -> Result<Header> {
        header(path, &Reader::open(path, limits)?, limits)
    }
}

/// What probabilities are where there is nothing but background.
fn background(label: usize) -> f32 {
    if label == 0 { 1.0 } else { 0.0 }
}

/// What the header of a file says, which is read in no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// What the file is about.
    pub description: CaseDescription,
    /// SHA-256 of description and tensors: two files with the same are the same.
    pub sha256: String,
    /// The classes of the distribution; 1 where a single class is off or on.
    pub classes: usize,
    /// The rank of the distribution.
    pub rank: usize,
    /// The samples that the network drew itself; 0 where samples are drawn from the distribution.
    pub samples: usize,
}

impl Header {
    /// Refuses to go on where the first `needed` samples cannot be had: a distribution gives any number of them, a network
    /// that draws them itself left so many in the file.
    ///
    /// # Errors
    /// A sentence with both numbers.
    pub fn check_samples(&self, needed: u64) -> Result<()> {
        match self.description.kind {
            PredictionKind::Sampled if needed > self.samples as u64 => {
                Err(too_few_samples(&self.description.case, self.samples, needed))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error of a case whose network left fewer samples in its file than are needed.
pub(super) fn too_few_samples(case: &str, stored: usize, needed: u64) -> Error {
    Error::usage(format!(
        "case {case} holds {} that its network drew, but {needed} are needed",
        counted(stored, "sample")
    ))
    .advise(format!("predict it again with --samples {needed}, or ask for fewer"))
}

/// The JSON object in the metadata.
#[derive(Serialize, Deserialize)]
struct Envelope<D> {
    version: u32,
    #[serde(flatten)]
    description: D,
}

/// What is read first: other versions may have other fields.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The text in the metadata of a file that is about something.
fn text(description: &CaseDescription) -> Result<String> {
    let version = if description.network_grid.is_some() { VERSION_WITH_GRID } else { VERSION };
    let envelope = Envelope { version, description };
    serde_json::to_string(&envelope).map_err(Error::mismatch)
}

/// What the header says, once it is consistent in itself.
fn header(path: &Path, reader: &Reader, limits: &Limits) -> Result<Header> {
    let unreadable = |error: serde_json::Error| {
        Error::data(path, format!("its description cannot be read ({error})")).advise(CHOOSE)
    };
    let Version { version } = serde_json::from_str(&reader.text).map_err(unreadable)?;
    if ![VERSION, VERSION_WITH_GRID].contains(&version) {
        let reason = format!(
            "its format has version {version}, but this program reads {VERSION} and {VERSION_WITH_GRID}"
        );
        return Err(
            Error::data(path, reason).advise("use a program of the same version, or predict the case again")
        );
    }
    let Envelope::<CaseDescription> { description, .. } =
        serde_json::from_str(&reader.text).map_err(unreadable)?;
    description.check().map_err(|reason| Error::data(path, reason).advise(CHOOSE))?;
    // Label maps of the whole image will be made, whatever the size of the region.
    let found = description.voxels() as u64;
    if found > limits.values {
        let (what, name) = ("the number of voxels of the image", "values");
        return Err(Problem::Limit { what, found, limit: limits.values, name }.in_file(path).into());
    }
    if let Some(name) = reader.names().iter().find(|name| !TENSORS.contains(&name.as_str())) {
        let reason = format!("it has a tensor `{name}`, which the format does not know");
        return Err(Error::data(path, reason).advise(CHOOSE));
    }
    let Shapes { classes, rank, samples } = description
        .check_shapes(|name| reader.shape(name).map(<[usize]>::to_vec))
        .map_err(|reason| Error::data(path, reason).advise(CHOOSE))?;
    Ok(Header { description, sha256: reader.sha256.clone(), classes, rank, samples })
}
