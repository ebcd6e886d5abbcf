//! Arguments of `ssn import`.

use std::path::PathBuf;

use clap::Args;
use ssn_data::Normalization;

use crate::parsers::name;

/// Which weights of the authors' code are made a model file of, and what they do not say about their images.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ImportConfig {
    /// The authors' weights, a `.pt` file.
    pub weights: PathBuf,
    /// Names of the channels, in the order of training.
    #[arg(long, value_delimiter = ',', value_parser = name, requires = "classes")]
    pub channels: Vec<String>,
    /// Names of the classes, the background first.
    #[arg(long, value_delimiter = ',', value_parser = name, requires = "channels")]
    pub classes: Vec<String>,
    /// How intensities are normalized; the model file has it beside the names, and neither without them.
    #[arg(long, default_value = "none", requires = "channels")]
    #[arg(
        help = "How intensities are normalized: none (they are in the files), z-score, brats (the rule of the paper's experiment), \
                    or a table as in configs, such as '{ kind = \"scale\", subtract = 0.5 }'"
    )]
    pub normalization: Normalization,
    /// The model file to write.
    #[arg(long, default_value = "model.safetensors")]
    pub out: PathBuf,
    /// Replace a file of that name.
    #[arg(long)]
    pub overwrite: bool,
}
