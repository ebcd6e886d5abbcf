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
pub mod error;
pub mod gather;
pub mod loader;
pub mod map;
pub mod memory;
pub mod noise;
pub mod patch;
pub mod plan;
pub mod prepared;
pub mod random;
pub mod recipe;
pub mod synthetic;
pub mod voxel_set;

pub use augment::{AugmentConfig, Augmentation, Preset};
pub use batch::{Batch, Origin};
pub use case::{Case, Cases};
pub use error::{DataError, Result};
pub use loader::{Loader, LoaderConfig};
pub use memory::MemoryCases;
pub use patch::{PatchConfig, Place, RaterChoice};
pub use plan::Order;
pub use random::Stream;
pub use recipe::{BatchConfig, Recipe};
pub use synthetic::{Synthetic, SyntheticConfig};
