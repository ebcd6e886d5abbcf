//! How a trained model read labels, for the verbs that read labels later.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::{LabelCoding, MissingRater};

/// How a trained model read labels. Prediction folders and bundles keep it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelReading {
    /// The rule from stored values to classes.
    pub coding: LabelCoding,
    /// Whether background and foreground change places.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert: bool,
    /// What it means that a rater has no file of a case.
    #[serde(default)]
    pub missing_rater: MissingRater,
    /// The folder of raters in use, where the dataset has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<String>,
}
