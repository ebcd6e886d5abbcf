//! The distribution of the logits of one case as a file: sampling needs no network.
//!
//! `docs/reference/distribution-files.md` describes the format; this module is that page in Rust.

use std::path::Path;

use half::f16;
use ssn_core::{LowRankNormal, Values};
use ssn_io::{Limits, write_atomically};

use crate::error::{EvalError, Result};
use crate::predictions::description::Description;
use crate::predictions::header::{Header, header, refuse, text};
use crate::predictions::tensors;
use crate::predictions::tensors::{CHOOSE, Data, Reader, Tensor};

/// The distribution of one case, what it is about, the region of interest, and the samples of a network that draws them
/// itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionFile {
    description: Description,
    distribution: LowRankNormal,
    mask: Option<Vec<u8>>,
    /// `[m, v]`; none unless the kind is `Kind::Sampled`.
    samples: Option<Vec<u8>>,
}

/// How precisely a file holds its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// All in single precision.
    Single,
    /// The factor, which is by far the largest, in half precision; mean and diagonal in single.
    HalfFactor,
    /// All in half precision.
    Half,
}

impl DistributionFile {
    /// Puts a distribution and what it is about together.
    ///
    /// # Shapes
    /// `mask` `[v]`: 1 in the region of interest, 0 elsewhere; nothing means everywhere.
    ///
    /// # Errors
    /// [`EvalError::Parts`] when they disagree in classes or voxels, when the region is not in the image, and for
    /// [`Kind::Sampled`](crate::Kind::Sampled), which needs samples.
    pub fn new(description: Description, distribution: LowRankNormal, mask: Option<Vec<u8>>) -> Result<Self> {
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
    /// [`EvalError::Parts`] unless the kind is [`Kind::Sampled`](crate::Kind::Sampled), there is at least one
    /// sample, all have as many voxels as the region, and all labels have a name, and as [`DistributionFile::new`];
    /// [`EvalError::Core`] for a mean of another length, or with a value that is not finite.
    pub fn sampled(
        description: Description,
        mean: impl Into<Values>,
        samples: Vec<u8>,
        mask: Option<Vec<u8>>,
    ) -> Result<Self> {
        description.check().map_err(EvalError::Parts)?;
        let (mean, labels, v) = (mean.into(), description.classes.len(), description.region.voxels());
        let rows = if labels == 2 && mean.len() == v { 1 } else { labels };
        let (diagonal, factor) = (vec![0f32; mean.len()], vec![0f32; 0]);
        let distribution = LowRankNormal::new(rows, v, 0, mean, diagonal, factor)?;
        Self::of_parts(description, distribution, mask, Some(samples))
    }

    /// Puts all parts together, once they agree.
    fn of_parts(
        description: Description,
        distribution: LowRankNormal,
        mask: Option<Vec<u8>>,
        samples: Option<Vec<u8>>,
    ) -> Result<Self> {
        description
            .check()
            .and_then(|()| description.check_against(&distribution, mask.as_deref()))
            .and_then(|()| description.check_samples(samples.as_deref()))
            .map_err(EvalError::Parts)?;
        Ok(Self { description, distribution, mask, samples })
    }

    /// The same with its numbers in another precision.
    ///
    /// # Errors
    /// [`EvalError::Core`] for a number beyond 65504 that half precision cannot hold: keep single precision then.
    pub fn with_precision(self, precision: Precision) -> Result<Self> {
        let d = &self.distribution;
        let (rest, factor) = match precision {
            Precision::Single => (single as fn(&Values) -> Values, single as fn(&Values) -> Values),
            Precision::HalfFactor => (single as _, half as _),
            Precision::Half => (half as _, half as _),
        };
        let (mean, diagonal, factor) = (rest(d.mean()), rest(d.diagonal()), factor(d.factor()));
        let distribution = LowRankNormal::new(d.classes(), d.voxels(), d.rank(), mean, diagonal, factor)?;
        Ok(Self { distribution, ..self })
    }

    /// What the distribution is about.
    pub fn description(&self) -> &Description {
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

    /// Writes the file, atomically; replaces a file of that name. The same content gives the same bytes.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = text(&self.description)?;
        let d = &self.distribution;
        let (c, v, r) = (d.classes(), d.voxels(), d.rank());
        let floats = |name, shape, values| Tensor { name, shape, data: Data::Floats(values) };
        write_atomically(path, |out| {
            let mut all = vec![
                floats("mean", vec![c, v], d.mean()),
                floats("diagonal", vec![c, v], d.diagonal()),
                floats("factor", vec![r, c, v], d.factor()),
            ];
            if let Some(mask) = &self.mask {
                all.push(Tensor { name: "mask", shape: vec![v], data: Data::Bytes(mask) });
            }
            if let Some(samples) = &self.samples {
                let shape = vec![self.sample_count(), v];
                all.push(Tensor { name: "samples", shape, data: Data::Bytes(samples) });
            }
            tensors::write(out, &text, all)
        })?;
        Ok(())
    }

    /// Reads a file. Memory is bounded by what the file holds.
    ///
    /// # Errors
    /// A sentence for a file that is none of ours, of another version, cut off or damaged, whose shapes disagree, or
    /// whose numbers are not finite.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self> {
        let mut reader = Reader::open(path, limits)?;
        let Header { description, classes, rank, samples: stored, .. } = header(path, &reader, limits)?;
        let (diagonal, factor) = (reader.floats("diagonal")?, reader.floats("factor")?);
        let mask = reader.shape("mask").is_some().then(|| reader.bytes("mask")).transpose()?;
        let mean = reader.floats("mean")?;
        let samples = (stored > 0).then(|| reader.bytes("samples")).transpose()?;
        let v = description.region.voxels();
        reader.verify()?;
        let distribution = LowRankNormal::new(classes, v, rank, mean, diagonal, factor)
            .map_err(|error| refuse(path, error.to_string(), "predict the case again"))?;
        Self::of_parts(description, distribution, mask, samples)
            .map_err(|error| refuse(path, error.to_string(), CHOOSE))
    }

    /// Reads what the file is about, and checks that its length and its shapes are right; its numbers are not looked at.
    pub fn read_header(path: &Path, limits: &Limits) -> Result<Header> {
        header(path, &Reader::open(path, limits)?, limits)
    }
}

fn single(values: &Values) -> Values {
    Values::F32(values.to_f32())
}

fn half(values: &Values) -> Values {
    match values {
        Values::F16(values) => Values::F16(values.clone()),
        Values::F32(values) => Values::F16(values.iter().map(|&x| f16::from_f32(x)).collect()),
    }
}
