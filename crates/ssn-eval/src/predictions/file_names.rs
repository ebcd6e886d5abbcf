//! How the files of a case are named: safe on every file system that tells upper from lower case, one name per id.

use sha2::{Digest, Sha256};
use ssn_data::text::hex;

/// How distribution files end.
pub const DISTRIBUTION_ENDING: &str = ".ssn.safetensors";

/// The longest stem of a name. File systems allow 255 bytes, and what a file is stands behind the stem.
const MAX_STEM: usize = 180;
/// Bytes of a longer stem that stay readable before its hash.
const KEPT: usize = 100;

/// What a file beside the distribution holds, by the names of the authors' tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Output {
    /// The label map of the mean.
    Prediction,
    /// The mean probabilities over samples.
    Probabilities,
    /// The marginal entropy over samples.
    Entropy,
    /// The mean of the logits.
    Mean,
    /// The diagonal of the covariance.
    Diagonal,
    /// The factor of the covariance.
    Factor,
}

impl Output {
    /// All of them, in the order of the index.
    pub const ALL: [Self; 6] =
        [Self::Prediction, Self::Probabilities, Self::Entropy, Self::Mean, Self::Diagonal, Self::Factor];

    /// What stands behind the stem in the name of the file, and the name of its column in the index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Probabilities => "prob_maps",
            Self::Entropy => "marginal_entropy",
            Self::Mean => "logit_mean",
            Self::Diagonal => "cov_diag",
            Self::Factor => "cov_factor",
        }
    }
}

/// The stem of the names of a case's files.
///
/// Letters and digits of ASCII, `-`, `_` and `.` stay, except for a `.` at the start; every other byte becomes `%` and two
/// hexadecimal digits. So two ids never share a name, and none leads out of its folder. A stem of more than 180
/// bytes is cut to 100, with `%~` and the SHA-256 of the id behind.
pub fn file_stem(id: &str) -> String {
    let mut stem = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && at > 0;
        match plain {
            true => stem.push(char::from(byte)),
            false => stem.push_str(&format!("%{byte:02X}")),
        }
    }
    if id.is_empty() {
        return "%".to_owned();
    }
    if stem.len() <= MAX_STEM {
        return stem;
    }
    format!("{}%~{}", &stem[..KEPT], hex(&Sha256::digest(id)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_safe_and_readable() {
        for (id, expected) in [
            ("Brats17_CBICA_AAB_1", "Brats17_CBICA_AAB_1"),
            ("z-12.5_c0", "z-12.5_c0"),
            ("p 1/s%2", "p%201%2Fs%252"),
            ("../up", "%2E.%2Fup"),
            ("ü", "%C3%BC"),
            ("", "%"),
        ] {
            assert_eq!(file_stem(id), expected);
        }
        let long = "x/".repeat(200);
        let stem = file_stem(&long);
        assert!(stem.len() <= MAX_STEM && stem.starts_with("x%2Fx%2F"), "{stem}");
    }

    #[test]
    fn no_two_ids_share_a_name() {
        let mut ids: Vec<String> = (0u32..0x300).filter_map(char::from_u32).map(String::from).collect();
        ids.extend(["a b", "a%20b", "a_b", "a%b", ".a", "a.", "%2Ea"].map(str::to_owned));
        ids.extend((0..50).map(|i| format!("{}{i}", "long".repeat(60))));
        ids.push("é".repeat(100));
        ids.sort();
        ids.dedup();
        let stems: BTreeSet<String> = ids.iter().map(|id| file_stem(id)).collect();
        assert_eq!(stems.len(), ids.len());
        for stem in stems {
            assert!(stem.is_ascii() && !stem.contains(['/', '\\', ' ']) && !stem.starts_with('.'), "{stem}");
        }
    }
}
