//! What the names of images tell where the channels of a model are known: which case a file belongs to, and as what.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ssn_io::{Limits, read};

use super::nnunet::channel_of;
use super::role::Role;
use crate::dataset::unnamed_channels;
use crate::folders::stem;

/// What stands between the parts of a name.
const SEPARATORS: [char; 3] = ['_', '-', '.'];

/// How the channels of a model are found in names.
pub(super) struct Names<'a> {
    channels: &'a [String],
    /// Four digits at the end of names are channels, as in nnU-Net.
    numbered: bool,
    /// What all names have behind the channel, as `_normalized` in `flair_normalized`.
    ending: String,
}

impl<'a> Names<'a> {
    /// Looks at the names of all files, and into one where names do not tell.
    pub fn of(files: &BTreeSet<PathBuf>, channels: &'a [String]) -> Self {
        let stems: Vec<String> = files.iter().map(|path| stem(path)).collect();
        let mut names =
            Self { channels, numbered: are_channels(files, &stems, channels.len()), ending: String::new() };
        // One file alone shares its whole name with all files.
        if channels.len() > 1 && !stems.iter().any(|stem| names.named(stem).is_some()) {
            names.ending = shared_ending(&stems).to_owned();
        }
        names
    }

    /// The case and the channel in the name of a file; a file without a channel may be a whole case.
    pub fn channel<'s>(&self, stem: &'s str) -> Option<(&'s str, usize)> {
        self.named(stem).or_else(|| channel_of(stem).filter(|_| self.numbered))
    }

    /// The case and the channel in `case_flair`; the case is empty in `flair`.
    fn named<'s>(&self, stem: &'s str) -> Option<(&'s str, usize)> {
        // Names that nobody gave, such as `image`, may stand in any name.
        if self.channels == unnamed_channels(self.channels.len()) {
            return None;
        }
        let stem = stem.strip_suffix(&self.ending)?;
        let before = |name: &String| {
            let at = stem.len().checked_sub(name.len())?;
            let same = stem.get(at..)?.eq_ignore_ascii_case(name);
            let before = &stem[..at];
            let case = if before.is_empty() { Some("") } else { before.strip_suffix(SEPARATORS) };
            case.filter(|_| same && !name.is_empty())
        };
        let found = self.channels.iter().enumerate().filter_map(|(c, name)| Some((before(name)?, c)));
        // `case_post_t1` is of the channel `post_t1` and not of `t1`.
        found.max_by_key(|(_, channel)| self.channels[*channel].len())
    }
}

/// Whether four digits at the end of names are channels. Slices may be numbered so too: then the files hold all channels.
fn are_channels(files: &BTreeSet<PathBuf>, stems: &[String], channels: usize) -> bool {
    let mut numbers = stems.iter().filter_map(|stem| channel_of(stem)).map(|(_, number)| number);
    if channels == 1 {
        return numbers.all(|number| number == 0);
    }
    let mut numbered = files.iter().zip(stems).filter(|(_, stem)| channel_of(stem).is_some());
    let first = numbered.find_map(|(path, _)| read(path, &Limits::default()).ok());
    first.is_none_or(|image| image.shape[0] != channels)
}

/// The ending, from a `_` on, that the names of all images share.
fn shared_ending(stems: &[String]) -> &str {
    let mut images = stems.iter().filter(|stem| Role::of(stem) == Role::Channel);
    let first = images.next().map_or("", String::as_str);
    let common = images.fold(first, |ending, stem| {
        let same = ending.chars().rev().zip(stem.chars().rev()).take_while(|(a, b)| a == b);
        &ending[ending.len() - same.map(|(letter, _)| letter.len_utf8()).sum::<usize>()..]
    });
    common.find('_').map_or("", |at| &common[at..])
}

/// The case whose name a name starts with, the longest of several that `fits` takes, and what else the name has.
pub(super) fn beside<'s>(
    stem: &'s str,
    cases: &BTreeSet<String>,
    fits: impl Fn(&str, &str) -> bool,
) -> Option<(&'s str, &'s str)> {
    let parts = stem.rmatch_indices(SEPARATORS).map(|(at, _)| (&stem[..at], &stem[at + 1..]));
    parts
        .chain([("", stem)])
        .find(|(case, rest)| cases.contains(*case) && !rest.is_empty() && fits(case, rest))
}

/// What a file beside an image is. A `mask` alone is a region of interest, for nobody has to have drawn labels.
pub(super) fn role(rest: &str) -> Role {
    if rest.eq_ignore_ascii_case("mask") { Role::Mask } else { Role::of(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn channels_are_found_in_names() {
        let channels = texts(&["t1", "post_t1"]);
        let names = |ending: &str| Names { channels: &channels, numbered: true, ending: ending.to_owned() };
        for (stem, expected) in [
            ("t1", Some(("", 0))),
            ("case-1_T1", Some(("case-1", 0))),
            ("case_post_t1", Some(("case", 1))),
            ("case_0001", Some(("case", 1))),
            ("art1", None),
            ("t1_1", None),
        ] {
            assert_eq!(names("").channel(stem), expected, "{stem}");
        }
        assert_eq!(names("_norm").channel("a_t1_norm"), Some(("a", 0)));
        let unnamed = texts(&["image"]);
        let names = Names { channels: &unnamed, numbered: false, ending: String::new() };
        assert_eq!((names.channel("image"), names.channel("a_0000")), (None, None));
    }

    #[test]
    fn shared_endings_start_at_a_separator() {
        assert_eq!(shared_ending(&texts(&["a_flair_norm", "b_t1_norm", "brainmask"])), "_norm");
        assert_eq!(shared_ending(&texts(&["norm", "anorm"])), "");
        assert_eq!(shared_ending(&texts(&["ä", "ö"])), "");
    }

    #[test]
    fn files_stand_beside_the_longest_name() {
        let cases = texts(&["a", "a_1"]).into_iter().collect();
        assert_eq!(beside("a_1_mask", &cases, |_, _| true), Some(("a_1", "mask")));
        assert_eq!(beside("a_1_mask", &cases, |_, rest| rest != "mask"), Some(("a", "1_mask")));
        assert_eq!(beside("b_mask", &cases, |_, _| true), None);
    }
}
