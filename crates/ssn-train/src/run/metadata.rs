//! What a file of a trained network says about it.

use serde::{Deserialize, Serialize};
use ssn_data::{LabelReading, Normalization};

/// Everything that a prediction needs beside the network, and where the network came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelMetadata {
    /// Names of the channels, in the order of the network's.
    pub channels: Vec<String>,
    /// Names of the classes, the background first.
    pub classes: Vec<String>,
    /// The scale of intensities.
    pub normalization: Normalization,
    /// The spacing along w, h, d in millimeters that images are brought to; nothing means their own.
    pub spacing: Option<[f64; 3]>,
    /// The size `[d, h, w]` of what the network predicted at once in training.
    pub patch: [usize; 3],
    /// How labels were read in training, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelReading>,
    /// The first 16 digits of the SHA-256 of each image that it trained on, if they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub training_images: Vec<String>,
    /// Where it came from.
    pub provenance: Provenance,
}

/// Where a network came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The name of the run.
    pub run: String,
    /// Steps of training.
    pub step: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The best GED² on the validation set, if this checkpoint is the one that reached it.
    pub validation_ged: Option<f64>,
    /// The name of the dataset.
    pub dataset: String,
    /// Cases for training, validation and test.
    pub cases: [usize; 3],
    /// The version of the program.
    pub version: String,
}
