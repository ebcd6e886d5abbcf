//! Predictions as files: a distribution, logits or samples of each case, and folders of them.

pub mod description;
pub mod distribution_file;
pub mod draw;
pub mod file_names;
mod find;
pub mod folder;
pub mod header;
pub mod index;
mod placement;
pub mod seed;
mod tensors;

pub use description::{Description, Kind, ModelId, Region};
pub use distribution_file::{DistributionFile, Precision};
pub use draw::Draw;
pub use file_names::{DISTRIBUTION_ENDING, Output, file_stem};
pub(crate) use find::named;
pub use find::{check_free, check_free_or, find, is_config, unknown_name};
pub use folder::{About, Found, Predictions};
pub use header::Header;
pub use seed::case_seed;
