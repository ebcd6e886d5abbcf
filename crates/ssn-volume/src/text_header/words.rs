//! Words and numbers of text headers: parsed strictly, shown safely in refusals.

use std::str::FromStr;

use crate::error::Problem;

/// Characters of a value that a refusal repeats: enough to find it, not enough to flood a terminal.
const SHOWN_CHARACTERS: usize = 60;

/// A value as refusals show it: quoted, with control characters escaped, and cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_CHARACTERS).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}

/// The refusal of a value.
pub(crate) fn refused(
    field: &'static str,
    found: &str,
    allowed: &'static str,
    advice: &'static str,
) -> Problem {
    Problem::Field { field, found: shown(found), allowed, advice }
}

/// The refusal of a header without a field that it needs.
pub(crate) fn missing(field: &'static str, allowed: &'static str, advice: &'static str) -> Problem {
    Problem::Field { field, found: "missing".to_owned(), allowed, advice }
}

/// One number.
pub(crate) fn number<T: FromStr>(
    field: &'static str,
    text: &str,
    allowed: &'static str,
) -> Result<T, Problem> {
    let refuse = |_| refused(field, text, allowed, "correct the header or export the image again");
    text.trim().parse().map_err(refuse)
}

/// Exactly `count` numbers between white space.
pub(crate) fn numbers<T: FromStr>(
    field: &'static str,
    text: &str,
    count: usize,
    allowed: &'static str,
) -> Result<Vec<T>, Problem> {
    let advice = "correct the header or export the image again";
    // One more than wanted shows that there are too many; the rest of a long line need not be looked at.
    let words: Vec<&str> = text.split_whitespace().take(count + 1).collect();
    if words.len() != count {
        return Err(refused(field, text, allowed, advice));
    }
    words.iter().map(|word| number(field, word, allowed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_and_parsed() {
        assert_eq!(numbers::<usize>("sizes", " 4  3\t2 ", 3, "three").unwrap(), [4, 3, 2]);
        for bad in ["4 3", "4 3 2 1", "4 3 x", "4 3 -2", "4 3 2.0", ""] {
            let message = numbers::<usize>("sizes", bad, 3, "three").unwrap_err().to_string();
            assert!(message.contains("sizes is") && message.contains("three"), "{message}");
        }
    }

    #[test]
    fn long_and_odd_values_are_shown_safely() {
        let text = format!("\u{1b}[2J{}", "x".repeat(1000));
        let message = shown(&text);
        assert!(message.len() < 100 && !message.contains('\u{1b}') && message.ends_with('…'), "{message}");
    }
}
