//! Text: natural order of names, the most similar name, numbers and durations for people, and tables of comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::Read;

use strsim::osa_distance;

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

/// Up to `most` of some names, and how many there are besides.
pub fn listed<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A whole number with commas between thousands.
pub fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = if n < 0 { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration as people say it, with two or three digits that count.
pub fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", 1e3 * s),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 36.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

/// A word as a shell takes it for one.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A text without characters that steer a terminal, which stand as `\u001b`: control characters but the end of a line, and
/// those that turn the direction of text. As escapes of JSON, they leave JSON as it is.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match is_hidden(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRow {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// Its cells, without surrounding blanks.
    pub cells: Vec<String>,
}

/// The rows of a text; those without any text are left out. A quote counts at the very start of a cell, and the apostrophe that
/// [`csv_text`] puts before formulas is taken away.
///
/// # Errors
/// A sentence about a quote that is not closed.
pub fn csv_rows(text: &str) -> Result<Vec<CsvRow>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A quote that is not closed takes the row after the text's own into its cell.
    let input = text.as_bytes().chain("\nend".as_bytes());
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let (mut rows, mut record) = (vec![], csv::StringRecord::new());
    let (mut line, mut counted) = (1, 0);
    // Reading text from memory cannot fail where rows may differ in length.
    while let Ok(true) = reader.read_record(&mut record) {
        // Where the row before ended, which may be before some line ends.
        let before = record.position().map_or(0, |position| position.byte() as usize).min(text.len());
        let line_ends = text.as_bytes()[before..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let start = before + line_ends;
        if start == text.len() {
            rows.retain(|row: &CsvRow| row.cells.iter().any(|cell| !cell.is_empty()));
            return Ok(rows);
        }
        line += text[counted..start].matches('\n').count();
        counted = start;
        let cells = record.iter().map(|cell| unguarded(cell.trim()).to_owned());
        rows.push(CsvRow { line, cells: cells.collect() });
    }
    Err(format!("the row of line {line} has a cell whose quote is not closed"))
}

/// Whether a spreadsheet could take a cell for a formula, as it is or behind apostrophes. Numbers are none.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
        && cell.parse::<f64>().is_err()
}

/// A cell as [`csv_text`] took it.
fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

/// Rows as text, with cells in quotes where they need them and `\n` after each row. Text that a spreadsheet would run as a
/// formula gets an apostrophe in front, which [`csv_rows`] takes away.
pub fn csv_text(rows: &[Vec<String>]) -> String {
    let mut text = vec![];
    {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(&mut text);
        for row in rows {
            let guarded = |cell: &String| if is_formula(cell) { format!("'{cell}") } else { cell.clone() };
            // Writing to memory cannot fail.
            let _ = writer.write_record(row.iter().map(guarded));
        }
    }
    String::from_utf8(text).expect("cells are text")
}

/// The candidate with the smallest edit distance to a name, upper and lower case being the same, if it is near enough
/// to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let edits = |candidate: &str| osa_distance(&name, &candidate.to_lowercase());
    let ranked = candidates.into_iter().map(|candidate| (edits(candidate), candidate));
    let (edits, candidate) = ranked.min_by_key(|(edits, _)| *edits)?;
    // A third of the letters may be wrong; more is another word.
    (edits * 3 <= name.chars().count().max(candidate.chars().count()).max(3)).then_some(candidate)
}

/// Texts for the tests of this crate.
#[cfg(test)]
pub(crate) fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_read_well() {
        assert_eq!([0, 999, 1000, -1_234_567].map(grouped), ["0", "999", "1,000", "-1,234,567"]);
        let durations = [0.0045, 1.23, 45.6, 600.0, 9000.0, 300_000.0].map(spoken);
        assert_eq!(durations, ["4 ms", "1.2 s", "46 s", "10 min", "2.5 h", "3.5 days"]);
    }

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["case10", "case2", "case02b", "b", "case1", "case"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["b", "case", "case1", "case2", "case02b", "case10"]);
        assert_eq!(natural_order("a01", "a1"), Ordering::Less);
    }

    #[test]
    fn cells_come_out_as_written() {
        let text = "\u{feff}id,seg\r\n a ,\"x,\"\"y\"\"\nz\" \n\n \n,\r\n,b\"\nend\n\n";
        let row = |line, of: &[&str]| CsvRow { line, cells: texts(of) };
        let expected =
            [row(1, &["id", "seg"]), row(2, &["a", "x,\"y\"\nz"]), row(7, &["", "b\""]), row(8, &["end"])];
        assert_eq!(csv_rows(text).unwrap(), expected);
        for empty in ["", "\u{feff}", "\n", "\r\n \n,,"] {
            assert_eq!(csv_rows(empty).unwrap(), [], "{empty:?}");
        }
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let rows = [texts(&["plain", "a b", "x,\"y\"", "", "a\nb"]), texts(&["1", "–"])];
        let text = csv_text(&rows);
        assert_eq!(text, "plain,a b,\"x,\"\"y\"\"\",,\"a\nb\"\n1,–\n");
        assert!(csv_rows(&text).unwrap().into_iter().map(|row| row.cells).eq(rows));
    }

    #[test]
    fn spreadsheets_run_no_cell_and_all_come_back() {
        let rows = [
            texts(&["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@x", "'=y", "''-z", "-case", "'quoted'"]),
            texts(&["-0.5", "+3", "-1e-5", "-inf", "a=b", "1-2", "'", ""]),
        ];
        let text = csv_text(&rows);
        assert_eq!(
            text,
            "'=cmd|' /C calc'!A0,'+1+1,'-2+3,'@x,''=y,'''-z,'-case,'quoted'\n-0.5,+3,-1e-5,-inf,a=b,1-2,',\n"
        );
        assert!(csv_rows(&text).unwrap().into_iter().map(|row| row.cells).eq(rows));
    }

    #[test]
    fn nothing_steers_a_terminal() {
        let text = "\u{1b}]0;x\u{7}a\r\u{9b}b\u{202e}c\u{2066}\u{7f}\t\nü²";
        let expected = "\\u001b]0;x\\u0007a\\u000d\\u009bb\\u202ec\\u2066\\u007f\\u0009\nü²";
        assert_eq!(without_controls(text), expected);
        let json = serde_json::to_string(text).unwrap();
        assert_eq!(serde_json::from_str::<String>(&without_controls(&json)).unwrap(), text);
    }

    #[test]
    fn a_quote_that_is_not_closed_is_found_in_its_line() {
        for (text, line) in
            [("id,seg\r\na,b\r\n\r\nb,\"c\nd,e\n", 4), ("\"", 1), ("a,\"b\"\"", 1), ("a\n\"end", 2)]
        {
            let message = format!("the row of line {line} has a cell whose quote is not closed");
            assert_eq!(csv_rows(text), Err(message), "{text:?}");
        }
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let keys = ["path", "layout", "channels", "classes"];
        assert_eq!(nearest("chanels", keys), Some("channels"));
        assert_eq!(nearest("Calsses", keys), Some("classes"));
        assert_eq!(nearest("pth", keys), Some("path"));
        assert_eq!(nearest("learning_rate", keys), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn shells_take_words_as_they_are_meant() {
        assert_eq!(shell_quoted("training.steps=4"), "training.steps=4");
        assert_eq!(shell_quoted("model.head={stochastic={rank=0}}"), "'model.head={stochastic={rank=0}}'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
        assert_eq!(shell_quoted(""), "''");
    }
}
