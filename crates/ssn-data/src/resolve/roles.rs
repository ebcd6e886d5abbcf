//! Roles of files by the parts of their names that are not the case.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::resolve::files::stem;
use crate::resolve::{BEFORE_RATER, Hint, channel_of, cuts, numbered};
use crate::text::natural_order;

/// Content of a file of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Channel,
    /// The labels of a rater.
    Labels,
    /// The region of interest.
    Mask,
}

impl Role {
    /// Returns the role by a name without its case.
    pub fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let plain = numbered(&lower, Hint::MapRater).map_or(lower.as_str(), |(before, _)| before);
        let words: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).collect();
        let has_part = |hint: Hint| hint.words().any(|part| lower.contains(part));
        let without_number = |word: &&str| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        if has_part(Hint::RegionPart) || words.iter().any(|word| Hint::RegionWord.fits(word)) {
            Self::Mask
        } else if has_part(Hint::MapPart)
            || words.iter().any(|word| Hint::MapWord.fits(&without_number(word)))
        {
            Self::Labels
        } else {
            Self::Channel
        }
    }
}

/// Files of cases by channel.
pub type ByChannel = BTreeMap<String, BTreeMap<usize, PathBuf>>;

/// Returns the channels of each case, and the largest number of channels. Four digits at the ends of names are
/// channels, unless label files have names with these digits.
pub fn channels_by_case(files: &[PathBuf], labels: &[PathBuf]) -> (ByChannel, usize) {
    let mut cases = ByChannel::new();
    let channels = are_channels(files, labels);
    for path in files {
        let stem = stem(path);
        let (id, channel) = match channel_of(&stem) {
            Some((id, channel)) if channels => (id.to_owned(), channel),
            _ => (stem, 0),
        };
        cases.entry(id).or_default().insert(channel, path.clone());
    }
    let channels = cases.values().filter_map(|files| files.keys().max()).max().map_or(1, |last| last + 1);
    (cases, channels)
}

/// Returns cases in natural order, each with its image files.
pub fn in_order((cases, channels): &(ByChannel, usize)) -> Vec<(&String, Vec<Option<PathBuf>>)> {
    let images = |files: &BTreeMap<usize, PathBuf>| (0..*channels).map(|c| files.get(&c).cloned()).collect();
    let mut found: Vec<_> = cases.iter().map(|(id, files)| (id, images(files))).collect();
    found.sort_by(|a, b| natural_order(a.0, b.0));
    found
}

/// Returns `true` if four digits at the ends of the names of images are channels. Slices may have such numbers, too:
/// then labels have whole names of images, or the numbers differ from case to case.
fn are_channels(files: &[PathBuf], labels: &[PathBuf]) -> bool {
    let stems: BTreeSet<String> = files.iter().map(|path| stem(path)).collect();
    let mut sets = BTreeMap::<&str, BTreeSet<usize>>::new();
    for stem in &stems {
        let Some((id, channel)) = channel_of(stem) else { return false };
        sets.entry(id).or_default().insert(channel);
    }
    let labels: Vec<String> = labels.iter().map(|path| stem(path)).collect();
    let of_image = |label: &String| {
        let before = cuts(label, BEFORE_RATER).next().map(|(before, _)| before);
        stems.contains(label) || before.is_some_and(|before| stems.contains(before))
    };
    if labels.iter().any(of_image) {
        return false;
    }
    // A case without one of the channels still is a case if it has labels.
    let starts = |label| cuts(label, BEFORE_RATER).map(|(before, _)| before).chain([label]);
    let labeled: BTreeSet<&str> = labels.iter().flat_map(|label| starts(label.as_str())).collect();
    let first = sets.values().next();
    let alike = sets.values().all(|set| Some(set) == first);
    (alike || sets.keys().all(|id| labeled.contains(id))) && sets.values().any(|set| set.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_have_roles() {
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
