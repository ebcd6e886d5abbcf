//! Users' datasets in, ordered batches out. Knows nothing of torch.
//!
//! Data flows one way: a layout finds the files of a dataset, a [`Cases`] loads them as [`Case`]s, patches are cut
//! and augmented, and the loader hands out [`Batch`]es, each a function of the seed and its number alone.
//!
//! Letters in shapes: `b` batch, `c` channels, `d h w` space (2D images have depth 1), `n` raters, `t` targets.

pub mod batch;
pub mod case;
pub mod error;
pub mod random;

pub use batch::{Batch, Origin};
pub use case::{Case, Cases};
pub use error::{DataError, Result};
pub use random::Stream;
