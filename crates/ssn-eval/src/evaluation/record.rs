//! What is kept of a scored case, so that an evaluation that was stopped goes on where it was.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_core::LabelMap;
use ssn_io::{Limits, read_bytes, write_atomically};

use super::summary::Scored;
use crate::error::{EvalError, Result};
use crate::scores::ScoreConfig;
use ssn_data::text::hex;

/// Changes whenever scores change their meaning, so that old ones are not taken for new ones.
const VERSION: u32 = 2;

/// The scores of a case, with what they depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of what the scores were made: see [`key`].
    pub key: String,
    /// The scores.
    #[serde(flatten)]
    pub scored: Scored,
}

/// A hash of all that the scores of a case depend on: the settings, the content of the distribution file, and the label
/// maps of the raters.
///
/// # Errors
/// When the settings cannot be written as JSON.
pub fn key(config: &ScoreConfig, distribution_sha256: &str, raters: &[LabelMap]) -> Result<String> {
    let text = serde_json::to_string(&(VERSION, config, distribution_sha256))
        .map_err(|error| EvalError::Parts(error.to_string()))?;
    let mut digest = Sha256::new_with_prefix(text);
    for rater in raters {
        digest.update((rater.labels().len() as u64).to_le_bytes());
        digest.update(rater.labels());
    }
    Ok(hex(&digest.finalize()))
}

impl Record {
    /// The record in a file, if it is there, can be read, and was made of the same.
    pub fn read(path: &Path, key: &str, id: &str) -> Option<Self> {
        let bytes = read_bytes(path, &Limits::default()).ok()?;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        (record.key == key && record.scored.id == id).then_some(record)
    }

    /// Writes the record, atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| EvalError::Parts(error.to_string()))?;
        Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
    }
}
