//! The distribution of the logits of one case as a file: sampling needs no network.
//!
//! `docs/reference/distribution-files.md` describes the format; this module is that page in Rust.

use std::path::Path;

use half::f16;
use serde::{Deserialize, Serialize};
use ssn_core::{LowRankNormal, Values};
use ssn_volume::{Limits, Problem, write_atomically};

use crate::description::{Description, Kind};
use crate::error::{PredictionError, Result};
use crate::tensors::{self, CHOOSE, Data, Reader, Tensor};

/// The version of the format.
const VERSION: u32 = 1;
/// The tensors that a file may have, in the order in which they are read.
const TENSORS: [&str; 4] = ["diagonal", "factor", "mask", "mean"];

/// The distribution of one case, what it is about, and the region of interest.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionFile {
    description: Description,
    distribution: LowRankNormal,
    mask: Option<Vec<u8>>,
}

/// What the header of a file says, which is read in no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// What the file is about.
    pub description: Description,
    /// SHA-256 of description and tensors: two files with the same are the same.
    pub sha256: String,
    /// The classes of the distribution; 1 where a single class is off or on.
    pub classes: usize,
    /// The rank of the distribution.
    pub rank: usize,
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

/// The JSON object in the metadata.
#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    #[serde(flatten)]
    description: Description,
}

/// What is read first: other versions may have other fields.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl DistributionFile {
    /// Puts a distribution and what it is about together.
    ///
    /// # Shapes
    /// `mask` `[v]`: 1 in the region of interest, 0 elsewhere; nothing means everywhere.
    ///
    /// # Errors
    /// [`PredictionError::Parts`] when they disagree in classes or voxels, or when the region is not in the image.
    pub fn new(description: Description, distribution: LowRankNormal, mask: Option<Vec<u8>>) -> Result<Self> {
        description
            .check()
            .and_then(|()| description.check_against(&distribution, mask.as_deref()))
            .map_err(PredictionError::Parts)?;
        Ok(Self { description, distribution, mask })
    }

    /// The same with its numbers in another precision.
    ///
    /// # Errors
    /// [`PredictionError::Core`] for a number beyond 65504 that half precision cannot hold: keep single precision then.
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

    /// The number of labels: the classes, or two for a single class that is off or on.
    pub fn labels(&self) -> usize {
        self.description.classes.len()
    }

    /// Writes the file, atomically; replaces a file of that name. The same content gives the same bytes.
    pub fn write(&self, path: &Path) -> Result<()> {
        let envelope = Envelope { version: VERSION, description: self.description.clone() };
        let text =
            serde_json::to_string(&envelope).map_err(|error| PredictionError::Parts(error.to_string()))?;
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
        let Header { description, classes, rank, .. } = header(path, &reader, limits)?;
        let (diagonal, factor) = (reader.floats("diagonal")?, reader.floats("factor")?);
        let mask = reader.shape("mask").is_some().then(|| reader.bytes("mask")).transpose()?;
        let mean = reader.floats("mean")?;
        let v = description.region.voxels();
        reader.verify()?;
        let distribution = LowRankNormal::new(classes, v, rank, mean, diagonal, factor)
            .map_err(|error| refuse(path, error.to_string(), "predict the case again"))?;
        Self::new(description, distribution, mask).map_err(|error| refuse(path, error.to_string(), CHOOSE))
    }

    /// Reads what the file is about, and checks that its length and its shapes are right; its numbers are not looked at.
    pub fn read_header(path: &Path, limits: &Limits) -> Result<Header> {
        header(path, &Reader::open(path, limits)?, limits)
    }
}

/// What the header says, once it is consistent in itself.
fn header(path: &Path, reader: &Reader, limits: &Limits) -> Result<Header> {
    let unreadable =
        |error: serde_json::Error| refuse(path, format!("its description cannot be read ({error})"), CHOOSE);
    let Version { version } = serde_json::from_str(&reader.text).map_err(unreadable)?;
    if version != VERSION {
        let reason = format!("its format has version {version}, but this program reads {VERSION}");
        return Err(refuse(path, reason, "use a program of the same version, or predict the case again"));
    }
    let Envelope { description, .. } = serde_json::from_str(&reader.text).map_err(unreadable)?;
    description.check().map_err(|reason| refuse(path, reason, CHOOSE))?;
    // Label maps of the whole image will be made, whatever the size of the region.
    let found = description.voxels() as u64;
    for (limit, name) in [(limits.values, "values"), (limits.memory(reader.length), "memory_ratio")] {
        if found > limit {
            let what = "the number of voxels of the image";
            return Err(Problem::Limit { what, found, limit, name }.in_file(path).into());
        }
    }
    let [rank, classes] =
        check_shapes(&description, reader).map_err(|reason| refuse(path, reason, CHOOSE))?;
    Ok(Header { description, sha256: reader.sha256.clone(), classes, rank })
}

/// Refuses tensors that the format does not know and shapes that disagree; gives the rank and the classes.
fn check_shapes(description: &Description, reader: &Reader) -> Result<[usize; 2], String> {
    if let Some(name) = reader.names().iter().find(|name| !TENSORS.contains(&name.as_str())) {
        return Err(format!("it has a tensor `{name}`, which the format does not know"));
    }
    let shape = |name: &str| reader.shape(name).ok_or_else(|| format!("it has no tensor `{name}`"));
    let voxels = description.region.voxels();
    let (labels, mean) = (description.classes.len(), shape("mean")?);
    let expected: &[usize] =
        if labels == 2 && mean.first() == Some(&1) { &[1, voxels] } else { &[labels, voxels] };
    for name in ["mean", "diagonal"] {
        if shape(name)? != expected {
            return Err(format!("`{name}` has shape {:?}, but it must be {expected:?}", shape(name)?));
        }
    }
    if let Some(mask) = reader.shape("mask").filter(|shape| *shape != [voxels]) {
        return Err(format!("`mask` has shape {mask:?}, but it must be {:?}", [voxels]));
    }
    match shape("factor")? {
        &[rank, ref rest @ ..] if rest == expected => match description.kind {
            Kind::Deterministic if rank > 0 => {
                Err(format!("its rank is {rank}, but a deterministic network has rank 0"))
            }
            _ => Ok([rank, expected[0]]),
        },
        other => Err(format!("`factor` has shape {other:?}, but it must be the rank and {expected:?}")),
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

fn refuse(path: &Path, reason: String, advice: &'static str) -> PredictionError {
    PredictionError::Unusable { path: path.to_owned(), reason, advice }
}
