//! Users' datasets in, ordered batches out. Knows nothing of torch.
//!
//! Data flows one way: a layout finds the files of a dataset, a [`Cases`] loads them as [`Case`]s, patches are cut
//! and augmented, and the loader hands out [`Batch`]es, each a function of the seed and its number alone.
//!
//! Letters in shapes: `b` batch, `c` channels, `d h w` space (2D images have depth 1), `n` raters, `t` targets.

pub mod batch;
pub mod case;
pub mod check;
pub mod config;
pub mod crop;
pub mod dataset;
pub mod error;
pub mod finding;
pub mod folders;
pub mod labels;
pub mod layouts;
pub mod nearest;
pub mod normalise;
pub mod parallel;
pub mod prepare;
pub mod random;
pub mod records;
pub mod resample;
pub mod source;
pub mod split;
pub mod statistics;
pub mod template;

pub use batch::{Batch, Origin};
pub use case::{Case, Cases};
pub use config::DataConfig;
pub use dataset::{Dataset, Entry, Layout, Preprocessing, Subset};
pub use error::{DataError, Result};
pub use finding::{Finding, Severity};
pub use layouts::Known;
pub use normalise::Normalisation;
pub use random::Stream;
pub use split::{Split, SplitFile};
