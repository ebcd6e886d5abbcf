//! The mathematics of stochastic segmentation on the host.
//!
//! Everything that happens after a network has run: the low-rank normal distribution over the logits of a
//! whole image, its samples, their manipulation, and the scores that compare them with raters. Nothing here
//! knows files, networks or torch, and space is flat: a volume is `v` voxels, whatever its rank.
//!
//! Letters in shapes: `c` classes, `v` voxels, `r` rank, `m` samples, `n` raters.
//!
//! ```
//! use ssn_core::metrics::ged;
//! use ssn_core::{BitPlanes, LabelMap, LowRankNormal, Sampler, Steering};
//!
//! // Two classes on three voxels; the last two voxels switch together.
//! let mean = vec![4.0, 0.0, 0.0, /* class 1 */ -4.0, 0.0, 0.0];
//! let diagonal = vec![1e-8f32; 6];
//! let factor = vec![0.0, -5.0, -5.0, /* class 1 */ 0.0, 5.0, 5.0];
//! let distribution = LowRankNormal::new(2, 3, 1, mean, diagonal, factor)?;
//!
//! let samples = Sampler::new(&distribution, 42, &Steering::default())?.labels(0..100)?;
//! assert!(samples.iter().all(|map| map.labels()[1] == map.labels()[2]));
//!
//! let planes: Vec<BitPlanes> = samples.iter().map(BitPlanes::new).collect();
//! let raters = [vec![0, 0, 0], vec![0, 1, 1]].map(|labels| LabelMap::new(labels, 2));
//! let raters = raters.into_iter().map(|map| Ok(BitPlanes::new(&map?))).collect::<ssn_core::Result<Vec<_>>>()?;
//! assert!(ged(&planes, &raters)?.squared < 0.05);
//! # Ok::<(), ssn_core::CoreError>(())
//! ```

pub mod distribution;
pub mod error;
pub mod labels;
pub mod lattice;
pub mod metrics;
pub mod modes;
mod popcount;
pub mod progress;
pub mod random;
pub mod sampling;
pub mod simd;
pub mod space;
pub mod summary;

pub use distribution::{LowRankNormal, MAX_PARAMETER, Values};
pub use error::{CoreError, Result};
pub use labels::{BitPlanes, LabelMap};
pub use lattice::{Lattice, Window};
pub use progress::{Control, OnProgress, Phase, PhaseId, Progress};
pub use sampling::{CategoricalSampler, Sampler, Steering};
pub use space::Region;
pub use summary::SampleSummary;
