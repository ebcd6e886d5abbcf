//! Text as people expect it: numbers in names count, more than one is many, and tables.

mod table;

use std::cmp::Ordering;

pub use table::{CsvRow, UnclosedQuote, csv_rows, csv_text};

/// Compares names with numbers in them by the values of the numbers.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    while let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) {
        if first_a.is_ascii_digit() && first_b.is_ascii_digit() {
            let (number_a, after_a) = leading_number(rest_a);
            let (number_b, after_b) = leading_number(rest_b);
            let by_value = number_a.len().cmp(&number_b.len()).then(number_a.cmp(number_b));
            if by_value != Ordering::Equal {
                return by_value;
            }
            (rest_a, rest_b) = (after_a, after_b);
        } else if first_a != first_b {
            return first_a.cmp(&first_b);
        } else {
            (rest_a, rest_b) = (&rest_a[first_a.len_utf8()..], &rest_b[first_b.len_utf8()..]);
        }
    }
    rest_a.len().cmp(&rest_b.len()).then(a.cmp(b))
}

/// The digits at the start of a text without leading zeros, and what follows them.
fn leading_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

/// A number with its noun, which takes an s for all but one.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["case10", "case2", "case02b", "b", "case1", "case"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["b", "case", "case1", "case2", "case02b", "case10"]);
        assert_eq!(natural_order("a01", "a1"), Ordering::Less);
    }
}
