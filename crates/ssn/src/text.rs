//! Text for people: Markdown tables that read well as they are, and commands as they could be typed.

use std::fmt::Write;

use ssn_data::text::shell_quoted;

/// A table whose first row is its heading. The first `left` columns begin on the left, as names do, and the others end
/// on the right, as numbers do. Rows that are too short end with empty cells.
pub fn table(rows: &[Vec<String>], left: usize) -> String {
    let escaped = |text: &String| text.replace('|', "\\|").replace(['\n', '\r'], " ");
    let cell = |row: &[String], column: usize| row.get(column).map(escaped).unwrap_or_default();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let pad = |column: usize| {
            let cell = cell(row, column);
            let spaces = " ".repeat(widths[column] - cell.chars().count());
            if column < left { format!("{cell}{spaces}") } else { format!("{spaces}{cell}") }
        };
        let cells: Vec<String> = (0..columns).map(pad).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if number == 0 {
            let lines: Vec<String> = widths.iter().map(|n| "-".repeat(*n)).collect();
            let _ = writeln!(text, "|-{}-|", lines.join("-|-"));
        }
    }
    text
}

/// A mean with its standard error; a dash where there is none.
pub fn mean(mean: Option<f64>, error: Option<f64>, factor: f64, decimals: usize) -> String {
    let Some(mean) = mean else { return "–".to_owned() };
    let mean = format!("{:.decimals$}", mean * factor);
    match error {
        Some(error) if error > 0.0 => format!("{mean} ± {:.decimals$}", error * factor),
        _ => mean,
    }
}

/// A command line: words are quoted where a shell needs it.
pub fn command_line(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
    format!("$ ssn {}", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [vec!["network", "GED²"], vec!["a", "0.25 ± 0.01"], vec!["low-rank"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect());
        let expected = "\
| network  |        GED² |
|----------|-------------|
| a        | 0.25 ± 0.01 |
| low-rank |             |
";
        assert_eq!(table(&rows, 1), expected);
    }

    #[test]
    fn signs_of_tables_are_escaped() {
        let rows = [vec!["a|b".to_owned()], vec!["c\nd".to_owned()]];
        assert_eq!(table(&rows, 1), "| a\\|b |\n|------|\n| c d  |\n");
    }

    #[test]
    fn a_value_that_is_not_there_is_a_dash() {
        assert_eq!(mean(None, Some(1.0), 1.0, 3), "–");
        assert_eq!(mean(Some(0.5), Some(0.01), 100.0, 1), "50.0 ± 1.0");
        assert_eq!(mean(Some(0.5), None, 1.0, 3), "0.500");
    }
}
