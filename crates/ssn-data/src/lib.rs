//! Users' datasets in, ordered batches out. Knows nothing of torch.
//!
//! Data flows one way: a layout finds the files of a dataset, a [`Cases`] loads them as [`Case`]s, patches are cut
//! and augmented, and the loader hands out [`Batch`]es, each a function of the seed and its number alone.
//!
//! Letters in shapes: `b` batch, `c` channels, `d h w` space (2D images have depth 1), `n` raters, `t` targets.

pub mod augment;
pub mod batch;
pub mod cache;
pub mod case;
pub mod check;
pub mod config;
pub mod crop;
pub mod dataset;
pub mod division;
pub mod error;
pub mod finding;
pub mod folders;
pub mod gather;
pub mod grid;
pub mod labels;
pub mod layouts;
pub mod loader;
pub mod map;
pub mod memory;
pub mod nearest;
pub mod noise;
pub mod normalise;
pub mod parallel;
pub mod patch;
pub mod plan;
pub mod prepare;
pub mod prepared;
pub mod random;
pub mod recipe;
pub mod records;
pub mod resample;
pub mod source;
pub mod split;
pub mod statistics;
pub mod synthetic;
pub mod template;
pub mod voxel_set;

pub use augment::{AugmentConfig, Augmentation, Preset};
pub use batch::{Batch, Origin};
pub use case::{Case, Cases};
pub use config::DataConfig;
pub use dataset::{Dataset, Entry, Layout, Preprocessing, Subset};
pub use error::{DataError, Result};
pub use finding::{Finding, Severity};
pub use grid::Grid;
pub use layouts::Known;
pub use loader::{Loader, LoaderConfig};
pub use memory::MemoryCases;
pub use normalise::Normalisation;
pub use patch::{PatchConfig, Place, RaterChoice};
pub use plan::Order;
pub use random::Stream;
pub use recipe::{BatchConfig, Recipe};
pub use split::{Split, SplitFile};
pub use synthetic::{Synthetic, SyntheticConfig};
