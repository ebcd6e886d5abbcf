//! Predictions as files: a distribution, logits or samples of each case, and folders of them.

mod distribution_file;
mod draw;
mod ensemble;
mod folder;
mod tensors;

pub use distribution_file::{
    CaseDescription, DistributionFile, Header, ModelId, NetworkGrid, PredictionKind, StoredImage,
};
pub use draw::{SampleSource, blocks, case_seed, predict_labels, summarize};
pub(crate) use ensemble::stored_logarithm;
pub use ensemble::{ensemble_id, mixture};
pub use folder::{
    ABOUT_FILE, About, DISTRIBUTION_ENDING, Found, IMAGE_ENDINGS, ImagePaths, Output, Predictions,
    check_free, check_free_or, claim, file_stem, find_distribution_files, is_config, unknown_name,
};
pub use folder::{create_folder, remove_own_files, write_text};
pub(crate) use folder::{listed_ids, name_of};
pub use ssn_args::{PredictionRule, StoredPrecision};
pub use ssn_core::Region;
