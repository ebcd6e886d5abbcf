//! Words and parts of names.

use unicode_normalization::UnicodeNormalization;

use crate::resolve::Hint;

/// Returns the words of a name in lower case. Letters and numbers are words of their own, and numbers have no leading
/// zeros: `Case_007a` is `case`, `7`, `a`.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    let mut before = None;
    for letter in name.nfc() {
        let kind = letter.is_alphanumeric().then(|| letter.is_numeric());
        match words.last_mut() {
            Some(word) if kind.is_some() && kind == before => word.extend(letter.to_lowercase()),
            _ if kind.is_some() => words.push(letter.to_lowercase().collect()),
            _ => {}
        }
        before = kind;
    }
    let significant = |word: String| match word.trim_start_matches('0') {
        "" => "0".to_owned(),
        rest => rest.to_owned(),
    };
    words.into_iter().map(significant).collect()
}

/// Returns words without the kinds of files at their ends; an empty slice if all words are kinds.
pub fn without_kinds(words: &[String]) -> &[String] {
    let is_kind = |word: &&String| Hint::Kind.fits(word);
    let start = words.iter().take_while(is_kind).count();
    let end = words.iter().rev().take_while(is_kind).count();
    words.get(start..words.len() - end).unwrap_or(&[])
}

/// Like [`without_kinds`], but returns all words if all are kinds.
pub fn core(words: &[String]) -> &[String] {
    Some(without_kinds(words)).filter(|core| !core.is_empty()).unwrap_or(words)
}

/// Counts the words that several names share at their starts and at their ends.
pub fn shared_ends(names: &[&[String]]) -> [usize; 2] {
    let [first, others @ ..] = names else { return [0; 2] };
    let shared = |same: &dyn Fn(&[String], usize) -> bool| {
        (0..first.len()).take_while(|&place| others.iter().all(|other| same(other, place))).count()
    };
    let start = shared(&|other, place| other.get(place) == first.get(place));
    let end = shared(&|other, place| other.iter().rev().nth(place) == first.iter().rev().nth(place));
    if others.is_empty() { [0; 2] } else { [start, end] }
}

/// Returns words without `start` at their start and `end` at their end; all words if none would be left.
pub fn without_ends(words: &[String], [start, end]: [usize; 2]) -> &[String] {
    let inner = words.get(start..words.len().saturating_sub(end));
    inner.filter(|inner| !inner.is_empty()).unwrap_or(words)
}

/// Returns both sides of each separator in a name, from the last separator to the first.
pub fn cuts<'a>(name: &'a str, separators: &'a [char]) -> impl Iterator<Item = (&'a str, &'a str)> {
    name.rmatch_indices(separators).map(|(at, separator)| (&name[..at], &name[at + separator.len()..]))
}

/// Separators behind the name of a case.
pub const BEHIND_CASE: &[char] = &['_', '-', '.'];
/// Separators before the number or name of a rater.
pub const BEFORE_RATER: &[char] = &['_', '-'];

/// Splits a name at its last separator if a number follows, alone or behind a word: `case1_r2` is (`case1`, 2).
pub fn numbered(name: &str, hint: Hint) -> Option<(&str, usize)> {
    let (before, last) = cuts(name, BEFORE_RATER).next().filter(|(before, _)| !before.is_empty())?;
    Some((before, hint.number(last)?))
}

/// Number of digits of a channel in a name.
const CHANNEL_DIGITS: usize = 4;

/// Returns the case and the channel in a name such as `case_0001`.
pub fn channel_of(name: &str) -> Option<(&str, usize)> {
    let (id, digits) = name.rsplit_once('_')?;
    let is_channel = digits.len() == CHANNEL_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    (is_channel && !id.is_empty()).then(|| digits.parse().ok().map(|channel| (id, channel))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    #[test]
    fn names_have_words() {
        assert_eq!(words("Case_007a"), texts(&["case", "7", "a"]));
        assert_eq!(words("IMG000-Ä.b"), texts(&["img", "0", "ä", "b"]));
        assert_eq!(words("A\u{308}b"), texts(&["äb"]), "an accent apart");
        assert_eq!(core(&words("Seg_Case1_GT")), texts(&["case", "1"]));
        assert_eq!(core(&words("mask")), texts(&["mask"]));
    }

    #[test]
    fn suffixes_are_numbers() {
        assert_eq!(numbered("case1_0", Hint::Rater), Some(("case1", 0)));
        assert_eq!(numbered("case_1-rater12", Hint::Rater), Some(("case_1", 12)));
        assert_eq!(numbered("case_r2", Hint::Rater), Some(("case", 2)));
        for none in ["case1", "case_x", "_3", "case_r", "case_3a"] {
            assert_eq!(numbered(none, Hint::Rater), None, "{none}");
        }
    }
}
