//! Raters by the numbers and names in files.

use std::cmp::Ordering;

use crate::resolve::{Hint, without_kinds, words};
use crate::text::natural_order;

/// Rater by a number or a name; numbers come first, and names are in natural order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaterKey {
    Number(usize),
    Name(String),
}

impl RaterKey {
    /// Returns the rater that the end of a name stands for: `r2`, `2` or `alice`.
    pub fn of(text: &str) -> Self {
        Hint::Rater.number(text).map_or_else(|| Self::Name(text.to_lowercase()), Self::Number)
    }

    pub fn is_number(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Name(name) => name.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }
}

impl Ord for RaterKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Number(_), Self::Name(_)) => Ordering::Less,
            (Self::Name(_), Self::Number(_)) => Ordering::Greater,
            (Self::Name(a), Self::Name(b)) => natural_order(a, b),
        }
    }
}

impl PartialOrd for RaterKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the rater of a label map by what follows the name of the image: `mask`, `mask_2`, `rater2` or `mask_anna`.
pub fn rater_of(rest: &str) -> Option<RaterKey> {
    let words = words(rest);
    let is_labels = Hint::Labels.fits_one(&words) || Hint::Person.fits_one(&words);
    let own = without_kinds(&words);
    match own {
        _ if !is_labels || Hint::Made.fits_one(&words) => None,
        [] => Some(RaterKey::Number(0)),
        own => Some(RaterKey::of(&own.concat())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_images_are_raters() {
        let name = |text: &str| Some(RaterKey::Name(text.to_owned()));
        for (rest, expected) in [
            ("mask", Some(RaterKey::Number(0))),
            ("GT", Some(RaterKey::Number(0))),
            ("mask_2", Some(RaterKey::Number(2))),
            ("rater3", Some(RaterKey::Number(3))),
            ("mask_Anna", name("anna")),
            ("2", None),
            ("t1", None),
        ] {
            assert_eq!(rater_of(rest), expected, "{rest}");
        }
    }
}
