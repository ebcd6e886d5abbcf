//! What a file in a case's folder is, by its name.

use crate::folders::numbered_suffix;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Channel,
    /// The labels of a rater.
    Labels,
    /// The region of interest.
    Mask,
}

/// Parts of names of regions of interest.
const MASKS: [&str; 5] = ["brainmask", "brain_mask", "sampling_mask", "roi", "bodymask"];
/// Parts of names of label maps.
const LABELS: [&str; 9] =
    ["seg", "label", "lesion", "tumor", "tumour", "truth", "annotation", "multiclass", "consensus"];
/// Whole words that are label maps.
const LABEL_WORDS: [&str; 5] = ["gt", "mask", "ot", "manual", "rater"];

/// A name in lower case without the number of a rater: `Seg_2`, `seg-r1` and `seg3` are `seg`.
pub(super) fn without_number(name: &str) -> String {
    let lower = name.to_lowercase();
    let plain = numbered_suffix(&lower, &["rater", "r"]).map_or(lower.as_str(), |(before, _)| before);
    plain.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['_', '-']).to_owned()
}

impl Role {
    /// The role that a name says, the name of the case taken away.
    pub fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let plain = numbered_suffix(&lower, &["rater", "r"]).map_or(lower.as_str(), |(before, _)| before);
        let words: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).collect();
        if MASKS.iter().any(|part| if *part == "roi" { words.contains(part) } else { lower.contains(part) }) {
            return Self::Mask;
        }
        let word = |word: &&str| LABEL_WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
        if LABELS.iter().any(|part| lower.contains(part)) || words.iter().any(word) {
            return Self::Labels;
        }
        Self::Channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_raters_are_taken_off() {
        for name in ["seg", "seg_2", "Seg-r1", "seg3", "seg_rater4"] {
            assert_eq!(without_number(name), "seg", "{name}");
        }
        assert_ne!(without_number("liver_seg"), without_number("tumor_seg"));
    }

    #[test]
    fn names_in_use_are_understood() {
        for name in ["flair", "t1ce", "T1c_subtrMeanDivStd", "image", "adc", "heroic"] {
            assert_eq!(Role::of(name), Role::Channel, "{name}");
        }
        for name in ["seg", "seg_2", "OTMultiClass", "mask", "mask_r1", "gt2", "label", "rater3"] {
            assert_eq!(Role::of(name), Role::Labels, "{name}");
        }
        for name in ["brainmask", "roi", "brain_mask", "sampling_mask"] {
            assert_eq!(Role::of(name), Role::Mask, "{name}");
        }
    }
}
