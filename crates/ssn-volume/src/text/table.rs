//! Tables as comma-separated values (RFC 4180).

use std::io::Read;

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRow {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// Its cells, without surrounding blanks.
    pub cells: Vec<String>,
}

/// A cell that begins with a quote and never ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row of line {line} has a cell whose quote is not closed")]
pub struct UnclosedQuote {
    /// The line that its row begins in, from 1.
    pub line: usize,
}

/// The rows of a text; those without any text are left out. A quote counts at the very start of a cell.
///
/// # Errors
/// When a quote is not closed.
pub fn csv_rows(text: &str) -> Result<Vec<CsvRow>, UnclosedQuote> {
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
        rows.push(CsvRow { line, cells: record.iter().map(|cell| cell.trim().to_owned()).collect() });
    }
    Err(UnclosedQuote { line })
}

/// Rows as text, with cells in quotes where they need them and `\n` after each row.
pub fn csv_text(rows: &[Vec<String>]) -> String {
    let mut text = vec![];
    {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(&mut text);
        for row in rows {
            // Writing to memory cannot fail.
            let _ = writer.write_record(row);
        }
    }
    String::from_utf8(text).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn cells_come_out_as_written() {
        let text = "\u{feff}id,seg\r\n a ,\"x,\"\"y\"\"\nz\" \n\n \n,\r\n,b\"\nend\n\n";
        let row = |line, of: &[&str]| CsvRow { line, cells: cells(of) };
        let expected =
            [row(1, &["id", "seg"]), row(2, &["a", "x,\"y\"\nz"]), row(7, &["", "b\""]), row(8, &["end"])];
        assert_eq!(csv_rows(text).unwrap(), expected);
        for empty in ["", "\u{feff}", "\n", "\r\n \n,,"] {
            assert_eq!(csv_rows(empty).unwrap(), [], "{empty:?}");
        }
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let rows = [cells(&["plain", "a b", "x,\"y\"", "", "a\nb"]), cells(&["1", "–"])];
        let text = csv_text(&rows);
        assert_eq!(text, "plain,a b,\"x,\"\"y\"\"\",,\"a\nb\"\n1,–\n");
        assert!(csv_rows(&text).unwrap().into_iter().map(|row| row.cells).eq(rows));
    }

    #[test]
    fn a_quote_that_is_not_closed_is_found_in_its_line() {
        for (text, line) in
            [("id,seg\r\na,b\r\n\r\nb,\"c\nd,e\n", 4), ("\"", 1), ("a,\"b\"\"", 1), ("a\n\"end", 2)]
        {
            assert_eq!(csv_rows(text), Err(UnclosedQuote { line }), "{text:?}");
        }
    }
}
