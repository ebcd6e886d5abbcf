//! What the header of a distribution file says, and whether it is consistent in itself.

use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_io::{Limits, Problem};

use crate::error::{EvalError, Result};
use crate::predictions::description::{Description, Kind};
use crate::predictions::tensors::{CHOOSE, Reader};

/// The version of the format.
const VERSION: u32 = 1;
/// The tensors that a file may have, in the order in which they are read.
const TENSORS: [&str; 5] = ["diagonal", "factor", "mask", "mean", "samples"];

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
    /// The samples that the network drew itself; 0 where samples are drawn from the distribution.
    pub samples: usize,
}

impl Header {
    /// Refuses to go on where the first `needed` samples cannot be had: a distribution gives any number of them, a network
    /// that draws them itself left so many in the file.
    ///
    /// # Errors
    /// [`EvalError::TooFewSamples`] with both numbers.
    pub fn check_samples(&self, needed: u64) -> Result<()> {
        match self.description.kind {
            Kind::Sampled if needed > self.samples as u64 => Err(EvalError::TooFewSamples {
                case: self.description.case.clone(),
                stored: self.samples,
                needed,
            }),
            _ => Ok(()),
        }
    }
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
pub(crate) fn text(description: &Description) -> Result<String> {
    let envelope = Envelope { version: VERSION, description };
    serde_json::to_string(&envelope).map_err(|error| EvalError::Parts(error.to_string()))
}

/// What the header says, once it is consistent in itself.
pub(crate) fn header(path: &Path, reader: &Reader, limits: &Limits) -> Result<Header> {
    let unreadable =
        |error: serde_json::Error| refuse(path, format!("its description cannot be read ({error})"), CHOOSE);
    let Version { version } = serde_json::from_str(&reader.text).map_err(unreadable)?;
    if version != VERSION {
        let reason = format!("its format has version {version}, but this program reads {VERSION}");
        return Err(refuse(path, reason, "use a program of the same version, or predict the case again"));
    }
    let Envelope::<Description> { description, .. } =
        serde_json::from_str(&reader.text).map_err(unreadable)?;
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
    let samples = check_samples(&description, reader).map_err(|reason| refuse(path, reason, CHOOSE))?;
    Ok(Header { description, sha256: reader.sha256.clone(), classes, rank, samples })
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
            Kind::Sampled if rank > 0 => {
                Err(format!("its rank is {rank}, but that of a network that draws samples itself is 0"))
            }
            _ => Ok([rank, expected[0]]),
        },
        other => Err(format!("`factor` has shape {other:?}, but it must be the rank and {expected:?}")),
    }
}

/// Refuses samples that the kind of the file does not have, and the lack of those that it has; gives their number.
fn check_samples(description: &Description, reader: &Reader) -> Result<usize, String> {
    let voxels = description.region.voxels();
    match (description.kind, reader.shape("samples")) {
        (Kind::Stochastic | Kind::Deterministic, None) => Ok(0),
        (Kind::Stochastic | Kind::Deterministic, Some(_)) => {
            Err("it has a tensor `samples`, which only a network that draws samples itself has".to_owned())
        }
        (Kind::Sampled, None) => Err("it has no tensor `samples`".to_owned()),
        (Kind::Sampled, Some(&[samples, v])) if samples > 0 && v == voxels => Ok(samples),
        (Kind::Sampled, Some(other)) => Err(format!(
            "`samples` has shape {other:?}, but it must be the number of samples, at least 1, and {voxels}"
        )),
    }
}

/// That a file cannot be used, why, and what to do.
pub(crate) fn refuse(path: &Path, reason: String, advice: &'static str) -> EvalError {
    EvalError::Unusable { path: path.to_owned(), reason, advice }
}
