//! Seeds in TOML files: integers of TOML end at 2⁶³ − 1, so that larger seeds are text.
//!
//! For `#[serde(with = "ssn_data::seed")]`; both forms are read.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;

/// Writes a seed.
///
/// # Errors
/// Those of the format.
pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(seed) => serializer.serialize_i64(seed),
        Err(_) => serializer.serialize_str(&seed.to_string()),
    }
}

/// Reads a seed.
///
/// # Errors
/// What is no whole number from 0 to 2⁶⁴ − 1.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Seed)
}

/// A seed that need not be there; for `#[serde(default, deserialize_with = "ssn_data::seed::option::deserialize")]`.
pub mod option {
    use serde::Deserializer;

    /// Reads a seed that is there.
    ///
    /// # Errors
    /// What is no whole number from 0 to 2⁶⁴ − 1.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

/// A seed as TOML writes it.
pub fn to_toml(seed: u64) -> String {
    match i64::try_from(seed) {
        Ok(seed) => seed.to_string(),
        Err(_) => format!("\"{seed}\""),
    }
}

struct Seed;

impl Visitor<'_> for Seed {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 18446744073709551615, in quotes above 9223372036854775807")
    }

    fn visit_u64<E: Error>(self, seed: u64) -> Result<u64, E> {
        Ok(seed)
    }

    fn visit_i64<E: Error>(self, seed: i64) -> Result<u64, E> {
        u64::try_from(seed).map_err(|_| E::invalid_value(Unexpected::Signed(seed), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Settings {
        #[serde(with = "super")]
        seed: u64,
    }

    #[test]
    fn every_seed_comes_back_from_toml_and_json() {
        for seed in [0, 7, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            let settings = Settings { seed };
            let text = toml::to_string(&settings).unwrap();
            assert_eq!(text.trim(), format!("seed = {}", super::to_toml(seed)));
            assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings);
            let json = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
        }
        for text in ["seed = -1", "seed = 0.5", "seed = \"x\"", "seed = \"18446744073709551616\""] {
            let error = toml::from_str::<Settings>(text).unwrap_err().to_string();
            assert!(error.contains("a whole number from 0 to 18446744073709551615"), "{error}");
        }
    }
}
