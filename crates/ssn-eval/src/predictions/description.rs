//! What a distribution file says beside its tensors: which case, which model, which classes, and where in the image.

use serde::{Deserialize, Serialize};
use ssn_core::LowRankNormal;
use ssn_io::Geometry;

/// How a network describes its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A distribution of logits.
    Stochastic,
    /// Logits alone: rank 0 and a diagonal of zeros.
    Deterministic,
    /// Samples that the network drew itself: the mean holds the logarithm of their mean probabilities, rank 0 and a
    /// diagonal of zeros as for a deterministic network, and the label maps of the samples lie beside it.
    Sampled,
}

/// A model by its content and by the name that people gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelId {
    /// SHA-256 of the model, in hexadecimal.
    pub sha256: String,
    /// The name of the model or of the run that made it.
    pub name: String,
}

/// A box of voxels of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The first voxel along d, h, w.
    pub start: [usize; 3],
    /// Voxels along d, h, w.
    pub size: [usize; 3],
}

impl Region {
    /// The whole of an image of a size `[d, h, w]`.
    pub fn whole(size: [usize; 3]) -> Self {
        Self { start: [0; 3], size }
    }

    /// The number of voxels; the largest of all numbers if it cannot be counted.
    pub fn voxels(&self) -> usize {
        product(self.size).unwrap_or(usize::MAX)
    }

    /// Where in the image the voxel with a flat index within the box lies, `[d, h, w]`.
    pub fn voxel(&self, index: usize) -> [usize; 3] {
        let [_, h, w] = self.size;
        let within = [index / (h * w), index / w % h, index % w];
        [0, 1, 2].map(|axis| within[axis] + self.start[axis])
    }

    /// Whether the box lies in an image of a size `[d, h, w]`.
    pub fn lies_in(&self, size: [usize; 3]) -> bool {
        (0..3).all(|axis| {
            self.start[axis].checked_add(self.size[axis]).is_some_and(|end| end <= size[axis])
                && self.size[axis] > 0
        })
    }

    /// The values of the box out of those `[d, h, w]` of an image of a size.
    pub fn cut<T: Copy>(&self, values: &[T], size: [usize; 3]) -> Vec<T> {
        self.rows(size).flat_map(|row| &values[row]).copied().collect()
    }

    /// Where the rows along w lie in an image of a size `[d, h, w]`, as ranges of flat indices.
    pub(crate) fn rows(&self, [_, h, w]: [usize; 3]) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let Self { start, size } = *self;
        (start[0]..start[0] + size[0]).flat_map(move |z| {
            (start[1]..start[1] + size[1]).map(move |y| {
                let first = (z * h + y) * w + start[2];
                first..first + size[2]
            })
        })
    }
}

/// What the file says about its distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The id of the case.
    pub case: String,
    /// The names of the labels, the background first; two for a distribution of a single class, off and on.
    pub classes: Vec<String>,
    /// Whether there is a distribution, logits alone, or samples.
    pub kind: Kind,
    /// The size `[d, h, w]` of the whole image.
    pub size: [usize; 3],
    /// Where the voxels of the whole image lie.
    #[serde(with = "GeometryFields")]
    pub geometry: Geometry,
    /// The box that the distribution covers; everything outside is background.
    pub region: Region,
    /// The model that made it.
    pub model: ModelId,
}

/// [`Geometry`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Geometry")]
struct GeometryFields {
    spacing: [f64; 3],
    origin: [f64; 3],
    direction: [[f64; 3]; 3],
}

impl Description {
    /// The number of voxels of the whole image.
    pub fn voxels(&self) -> usize {
        product(self.size).unwrap_or(usize::MAX)
    }

    /// What is wrong with the description itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { classes, size, geometry, region, .. } = self;
        if product(*size).is_none_or(|voxels| voxels == 0) {
            return Err(format!(
                "the size of the image is {size:?}, but it must be positive along each axis, and countable"
            ));
        }
        if !region.lies_in(*size) {
            return Err(format!(
                "the region starts at {:?} with size {:?}, but it must lie in the image of size {size:?}",
                region.start, region.size
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
            None => Ok(()),
        }
    }

    /// What in the description disagrees with a distribution and a mask `[v]`.
    pub(crate) fn check_against(
        &self,
        distribution: &LowRankNormal,
        mask: Option<&[u8]>,
    ) -> Result<(), String> {
        let (labels, voxels) = (distribution.classes().max(2), distribution.voxels());
        if self.classes.len() != labels {
            return Err(format!(
                "the names of {} classes are given, but the distribution has {labels}",
                self.classes.len()
            ));
        }
        if self.region.voxels() != voxels {
            let size = self.region.size;
            return Err(format!("the region has size {size:?}, but the distribution has {voxels} voxels"));
        }
        let without_noise = match self.kind {
            Kind::Stochastic => None,
            Kind::Deterministic => Some("a deterministic network"),
            Kind::Sampled => Some("a network that draws samples itself"),
        };
        if let Some(network) = without_noise {
            let noise = (0..distribution.diagonal().len()).find(|&i| distribution.diagonal().get(i) != 0.0);
            if distribution.rank() != 0 || noise.is_some() {
                return Err(format!("{network} has rank 0 and a diagonal of zeros"));
            }
        }
        let Some(mask) = mask else { return Ok(()) };
        if mask.len() != voxels {
            return Err(format!("the mask has {} voxels, but the distribution has {voxels}", mask.len()));
        }
        match mask.iter().find(|&&x| x > 1) {
            Some(value) => Err(format!("the mask holds {value}, but it must be 0 or 1")),
            None => Ok(()),
        }
    }

    /// What in the description disagrees with the labels `[m, v]` of samples that a network drew itself.
    pub(crate) fn check_samples(&self, samples: Option<&[u8]>) -> Result<(), String> {
        let (labels, voxels) = (self.classes.len(), self.region.voxels());
        let samples = match (self.kind, samples) {
            (Kind::Sampled, Some(samples)) => samples,
            (Kind::Sampled, None) => {
                return Err(
                    "the kind is sampled, but there are no samples; give those that the network drew"
                        .to_owned(),
                );
            }
            (Kind::Stochastic | Kind::Deterministic, None) => return Ok(()),
            (Kind::Stochastic | Kind::Deterministic, Some(_)) => {
                return Err("there are samples, but the kind is not sampled; leave them out".to_owned());
            }
        };
        if samples.is_empty() || !samples.len().is_multiple_of(voxels) {
            return Err(format!(
                "the samples have {} labels together, but each has {voxels}, and there must be at least one",
                samples.len()
            ));
        }
        // The maximum runs vectorized over all labels.
        match samples.iter().max() {
            Some(&label) if usize::from(label) >= labels => {
                Err(format!("a sample has the label {label}, but the labels are 0 to {}", labels - 1))
            }
            _ => Ok(()),
        }
    }
}

/// The number of voxels of a size, if it does not overflow.
fn product(size: [usize; 3]) -> Option<usize> {
    size.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}
