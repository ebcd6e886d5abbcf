//! Users' datasets in, ordered batches out. Knows nothing of torch.
//!
//! Data flows one way: a layout finds the files of a dataset, a [`Cases`] loads them as [`Case`]s, patches are cut
//! and augmented, and the loader hands out [`Batch`]es, each a function of the seed and its number alone.
//!
//! Letters in shapes: `b` batch, `c` channels, `d h w` space (2D images have depth 1), `n` raters, `t` targets.
//!
//! ```
//! use std::sync::Arc;
//! use ssn_data::recipe::{BatchConfig, Recipe};
//! use ssn_data::{AugmentConfig, Order, PatchConfig, Synthetic, SyntheticConfig};
//!
//! // A made-up set; `Dataset::open` finds one on disk. Batch k is a function of the seed and k.
//! let set = Synthetic::new(SyntheticConfig { cases: 10, ..SyntheticConfig::default() })?;
//! let config = BatchConfig {
//!     batch_size: 4,
//!     order: Order::Passes,
//!     patch: PatchConfig::default(),
//!     augment: AugmentConfig::default(),
//!     seen: None,
//! };
//! let batches = Recipe::new(Arc::new(set), 7, config, 1 << 20)?;
//! let batch = batches.batch(3)?;
//! assert_eq!(batch.image_shape, [4, 1, 1, 64, 64]);
//! assert_eq!(batch, batches.batch(3)?);
//! # Ok::<(), ssn_data::DataError>(())
//! ```

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
pub mod launch;
pub mod layouts;
pub mod loader;
pub mod map;
pub mod memory;
pub mod nearest;
pub mod noise;
pub mod normalize;
pub mod parallel;
pub mod patch;
pub mod plan;
pub mod prepare;
pub mod prepared;
pub mod random;
pub mod recipe;
pub mod records;
pub mod resample;
pub mod shard;
pub mod share;
pub mod source;
pub mod split;
pub mod statistics;
pub mod synthetic;
pub mod template;
pub mod text;
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
pub use normalize::Normalization;
pub use patch::{PatchConfig, Place, RaterChoice};
pub use plan::Order;
pub use random::Stream;
pub use recipe::{BatchConfig, Recipe};
pub use shard::Shard;
pub use share::Share;
pub use split::{Split, SplitFile};
pub use synthetic::{Synthetic, SyntheticConfig};
