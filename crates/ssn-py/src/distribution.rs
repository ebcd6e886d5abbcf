//! A distribution file in memory, and its samples.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use ssn_core::modes::canonicalize;
use ssn_core::{LowRankNormal, SampleSummary, Sampler, Steering, Values};
use ssn_eval::{
    CaseDescription, DistributionFile, ModelId, PredictionKind, PredictionRule, Region, SampleSource,
    StoredImage, StoredPrecision, blocks, case_seed, predict_labels,
};
use ssn_io::Limits;

use crate::convert::{exception, not_a_slice, shape};
use crate::image::geometry;
use crate::work;

/// What a network said about one image.
#[pyclass(frozen)]
pub struct Distribution {
    file: Arc<DistributionFile>,
    #[pyo3(get)]
    case: String,
    #[pyo3(get)]
    classes: Vec<String>,
    #[pyo3(get)]
    kind: &'static str,
    /// The size of the whole image, `[d, h, w]`.
    #[pyo3(get)]
    size: [usize; 3],
    /// The box that the distribution covers: first voxel and size, along d, h, w, on the grid of the network.
    #[pyo3(get)]
    region: ([usize; 3], [usize; 3]),
    /// `[d, h, w]`, where the image says how large voxels are.
    #[pyo3(get)]
    spacing: Option<[f64; 3]>,
    /// From (i, j, k) to RAS+ millimeters.
    #[pyo3(get)]
    affine: [[f64; 4]; 4],
    #[pyo3(get)]
    channels: usize,
    #[pyo3(get)]
    rank: usize,
    /// How many samples the network drew itself.
    #[pyo3(get)]
    stored_samples: usize,
    #[pyo3(get)]
    has_mask: bool,
}

impl From<DistributionFile> for Distribution {
    fn from(file: DistributionFile) -> Self {
        let about = file.description();
        let [i, j, k] = about.geometry.affine();
        Self {
            case: about.case.clone(),
            classes: about.classes.clone(),
            kind: match about.kind {
                PredictionKind::Stochastic => "stochastic",
                PredictionKind::Deterministic => "deterministic",
                PredictionKind::Sampled => "sampled",
            },
            size: about.size,
            region: (about.region.start, about.region.size),
            spacing: about.has_spacing().then(|| about.spacing()),
            affine: [i, j, k, [0.0, 0.0, 0.0, 1.0]],
            channels: file.distribution().classes(),
            rank: file.distribution().rank(),
            stored_samples: file.sample_count(),
            has_mask: file.mask().is_some(),
            file: Arc::new(file),
        }
    }
}

/// How samples are drawn: seed, first number, temperature, scale per class, weight per mode, and the diagonal noise.
type Settings = (u64, u64, f32, Vec<f32>, Vec<f32>, bool);

fn steering(settings: &Settings) -> Steering {
    let (_, _, temperature, class_scales, mode_weights, diagonal_noise) = settings.clone();
    Steering { temperature, class_scales, mode_weights, diagonal_noise }
}

/// The numbers of `count` samples.
fn numbers(settings: &Settings, count: u64) -> PyResult<Range<u64>> {
    let first = settings.1;
    let end = first.checked_add(count);
    end.map(|end| first..end).ok_or_else(|| PyValueError::new_err("there is no sample of such a number"))
}

#[pymethods]
impl Distribution {
    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = work::run(py, move |_| DistributionFile::read(&path, &Limits::default()))?;
        Ok(file.map_err(exception)?.into())
    }

    /// Reads the bytes of a file.
    #[staticmethod]
    fn of_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let bytes = bytes.to_vec();
        let file = work::run(py, move |_| DistributionFile::of_bytes(bytes, &Limits::default()))?;
        Ok(file.map_err(exception)?.into())
    }

    /// Returns the bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.file.clone();
        let bytes = work::run(py, move |_| file.to_bytes())?.map_err(exception)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A distribution of the logits of a whole image.
    ///
    /// # Shapes
    /// `mean` and `diagonal` `[c, d, h, w]`, `factor` `[r, c, d, h, w]`, `mask` `[d, h, w]`, 0 or 1. `spacing` along d, h, w;
    /// `affine` as rows, from (i, j, k) to RAS+ millimeters.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "called by keywords from one place")]
    fn new(
        py: Python<'_>,
        mean: PyReadonlyArrayDyn<'_, f32>,
        diagonal: PyReadonlyArrayDyn<'_, f32>,
        factor: PyReadonlyArrayDyn<'_, f32>,
        mask: Option<PyReadonlyArrayDyn<'_, u8>>,
        classes: Vec<String>,
        spacing: Option<[f64; 3]>,
        affine: Option<[[f64; 4]; 4]>,
        case: String,
    ) -> PyResult<Self> {
        let [channels, size @ ..] = shape::<4>(&mean)?;
        let rank = shape::<5>(&factor)?[0];
        let copy =
            |array: &PyReadonlyArrayDyn<'_, f32>| array.as_slice().map(<[f32]>::to_vec).map_err(not_a_slice);
        let mask = mask.map(|mask| mask.as_slice().map(<[u8]>::to_vec).map_err(not_a_slice)).transpose()?;
        let (mean, diagonal, factor) = (copy(&mean)?, copy(&diagonal)?, copy(&factor)?);
        let voxels = size.iter().product();
        let made = move |_: &_| LowRankNormal::new(channels, voxels, rank, mean, diagonal, factor);
        let distribution = work::run(py, made)?.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let image =
            StoredImage { has_spacing: spacing.is_some() || affine.is_some(), ..StoredImage::default() };
        let description = CaseDescription {
            case,
            classes,
            kind: PredictionKind::Stochastic,
            size,
            geometry: geometry(spacing, affine)?,
            network_grid: None,
            region: Region::whole(size),
            model: ModelId { sha256: String::new(), name: "Python".to_owned() },
            image: Some(image),
            labels_only: false,
        };
        Ok(DistributionFile::new(description, distribution, mask).map_err(exception)?.into())
    }

    /// Writes a file.
    fn save(&self, py: Python<'_>, path: PathBuf, precision: &str) -> PyResult<()> {
        let precision = match precision {
            "single" => StoredPrecision::Single,
            "half-factor" => StoredPrecision::HalfFactor,
            "half" => StoredPrecision::Half,
            other => {
                let message =
                    format!("precision is {other:?}, but it must be \"single\", \"half-factor\" or \"half\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let file = self.file.clone();
        work::run(py, move |_| DistributionFile::clone(&file).with_precision(precision)?.write(&path))?
            .map_err(exception)
    }

    /// Copies mean, diagonal or factor, widened to single precision.
    fn read_values(&self, name: &str, mut out: PyReadwriteArrayDyn<'_, f32>) -> PyResult<()> {
        let distribution = self.file.distribution();
        let values: &Values = match name {
            "mean" => distribution.mean(),
            "diagonal" => distribution.diagonal(),
            _ => distribution.factor(),
        };
        let out = out.as_slice_mut().map_err(not_a_slice)?;
        values.read(0, out);
        Ok(())
    }

    /// Copies the mask.
    fn read_mask(&self, mut out: PyReadwriteArrayDyn<'_, u8>) -> PyResult<()> {
        let mask = self.file.mask().unwrap_or_default();
        out.as_slice_mut().map_err(not_a_slice)?.copy_from_slice(mask);
        Ok(())
    }

    /// Draws samples on the whole image, `[n, d, h, w]`.
    fn sample(
        &self,
        py: Python<'_>,
        mut out: PyReadwriteArrayDyn<'_, u8>,
        settings: Settings,
    ) -> PyResult<()> {
        let voxels = self.file.description().voxels();
        let out = out.as_slice_mut().map_err(not_a_slice)?;
        let numbers = numbers(&settings, (out.len() / voxels) as u64)?;
        let mut rest = out;
        for block in blocks(numbers, voxels) {
            let (here, later) = rest.split_at_mut((block.end - block.start) as usize * voxels);
            let (file, settings) = (self.file.clone(), settings.clone());
            let maps = work::run(py, move |_| -> ssn_io::Result<Vec<Vec<u8>>> {
                let source = SampleSource::new(&file, settings.0, &steering(&settings))?;
                let maps = source.labels(block)?;
                maps.par_iter().map(|map| file.labels_on_image(map)).collect()
            })?;
            for (map, out) in maps.map_err(exception)?.iter().zip(here.chunks_exact_mut(voxels)) {
                out.copy_from_slice(map);
            }
            rest = later;
        }
        Ok(())
    }

    /// What samples say together, as by `ssn_eval::summarize`: their mean probabilities, `[l, d, h, w]`, or the entropy of these,
    /// `[d, h, w]`, 0 to 1.
    fn summarize(
        &self,
        py: Python<'_>,
        mut out: PyReadwriteArrayDyn<'_, f32>,
        samples: u64,
        settings: Settings,
        entropy: bool,
    ) -> PyResult<()> {
        let out = out.as_slice_mut().map_err(not_a_slice)?;
        let (file, numbers) = (self.file.clone(), numbers(&settings, samples)?);
        let rows = work::run(py, move |cancelled| {
            let seed = case_seed(settings.0, &file.description().case);
            let sampler = Sampler::new(file.distribution(), seed, &steering(&settings))?;
            let mut summary = SampleSummary::new(&sampler, &[])?;
            // Without noise, one says it all.
            let noisy = file.description().kind == PredictionKind::Stochastic;
            let numbers = if noisy { numbers } else { 0..numbers.count().min(1) as u64 };
            let end = numbers.end;
            for first in numbers.step_by(AT_ONCE as usize).take_while(|_| !cancelled.load(Ordering::Relaxed))
            {
                summary.extend(&sampler, first..end.min(first + AT_ONCE))?;
            }
            if entropy { summary.marginal_entropy() } else { summary.mean_probabilities() }
        })?;
        let rows = rows.map_err(|error| exception(error.into()))?;
        let (voxels, image) = (self.file.distribution().voxels(), self.file.description().voxels());
        for (place, (row, out)) in rows.chunks_exact(voxels).zip(out.chunks_exact_mut(image)).enumerate() {
            // Outside, all is background.
            let outside = if place == 0 && !entropy { 1.0 } else { 0.0 };
            out.copy_from_slice(&self.file.values_on_image(row, outside).map_err(exception)?);
        }
        Ok(())
    }

    /// The one segmentation that stands for the distribution, `[d, h, w]`.
    fn prediction(
        &self,
        py: Python<'_>,
        mut out: PyReadwriteArrayDyn<'_, u8>,
        marginal: bool,
    ) -> PyResult<()> {
        let rule = if marginal { PredictionRule::Marginal } else { PredictionRule::Mean };
        let file = self.file.clone();
        let map = work::run(py, move |_| file.labels_on_image(&predict_labels(&file, rule)?))?;
        out.as_slice_mut().map_err(not_a_slice)?.copy_from_slice(&map.map_err(exception)?);
        Ok(())
    }

    /// Orthogonal modes of variation, the strongest first, `[k, c, v]`; gives the share of each in the whole variance.
    fn modes(&self, py: Python<'_>, mut out: PyReadwriteArrayDyn<'_, f32>) -> PyResult<Vec<f64>> {
        let file = self.file.clone();
        let modes = work::run(py, move |_| canonicalize(file.distribution()))?;
        let modes = modes.map_err(|error| exception(error.into()))?;
        modes.distribution.factor().read(0, out.as_slice_mut().map_err(not_a_slice)?);
        Ok(modes.shares_of_total())
    }
}

/// Samples that are summed before Ctrl-C ends it.
const AT_ONCE: u64 = 64;
