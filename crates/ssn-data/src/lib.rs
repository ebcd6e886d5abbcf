//! Datasets: layouts, checks, splits, preprocessing, patch sampling, augmentation and an ordered loader. No torch.
//!
//! Data flows one way: a layout finds the files of a dataset, a [`Cases`] loads them as [`Case`]s, patches are cut
//! and augmented, and the loader hands out [`Batch`]es, each a function of the seed and its number alone.
//!
//! Letters in shapes: `b` batch, `c` channels, `d h w` space (2D images have depth 1), `n` raters, `t` targets.
//!
//! ```
//! use std::sync::Arc;
//! use ssn_data::{BatchConfig, BatchSampler, Synthetic, SyntheticConfig};
//!
//! // A synthetic dataset; `Dataset::open` finds one on disk. Batch k is a function of the seed and k.
//! let set = Synthetic::new(SyntheticConfig { cases: 10, ..SyntheticConfig::default() })?;
//! let batches = BatchSampler::new(Arc::new(set), 7, BatchConfig::new(4), 1 << 20)?;
//! let batch = batches.batch(3)?;
//! assert_eq!(batch.image_shape, [4, 1, 1, 64, 64]);
//! assert_eq!(batch, batches.batch(3)?);
//! # Ok::<(), ssn_data::Error>(())
//! ```

mod augment;
mod check;
pub mod config;
mod dataset;
mod layouts;
mod loader;
pub mod parallel;
pub mod prepare;
mod random;
mod resolve;
pub mod seed;
mod synthetic;
pub mod text;

pub use augment::{AugmentConfig, AugmentPreset, Augmentation, Axis, LabelInterpolation};
pub use check::{
    Agreement, ChannelFigures, CheckReport, ClassFigures, PartFigures, Statistics, check, check_until,
};
pub use config::DataConfig;
pub use dataset::{
    AnnotationSource, Case, CaseEntry, CaseFiles, Cases, Dataset, Finding, FindingKind, HALF, LabelCoding,
    LabelPolicy, LabelReading, LabelTable, Layout, MemoryCases, MissingRater, NamedLabels, Normalization,
    Preprocessing, RaterFiles, RaterMaps, Ratios, ReadOptions, SameValues, Severity, Split, SplitAssignment,
    SplitConfig, SplitFile, UnknownLabels, divide, fold, mask_box, read_label_map, resample_labels,
};
pub use layouts::{CACHE_ENDING, DatasetOverrides, FileContent, FilesByCase};
pub use loader::{
    Batch, BatchConfig, BatchSampler, CaseOrder, DataLoader, LoaderConfig, Origin, PatchConfig, PatchSampler,
    RaterChoice, Replica,
};
pub use parallel::{DeviceChoice, Launched, Shard, ShardProgress, launched};
pub use ssn_io::{Error, Result};
pub use synthetic::{Lesion, Scene, Synthetic, SyntheticConfig, SyntheticRater};
pub use text::nearest;
