//! Comma-separated values as RFC 4180 says: quotes, doubled quotes inside them, and line ends of any kind.

/// The rows of a text with their line numbers, cells without surrounding blanks; empty lines are left out.
pub fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut rows, mut row, mut cell) = (vec![], vec![], String::new());
    let (mut line, mut first_line, mut quoted) = (1, 1, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if quoted || cell.trim().is_empty() => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell).trim().to_owned()),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell).trim().to_owned());
                rows.push((first_line, std::mem::take(&mut row)));
                first_line = line;
            }
            _ => cell.push(letter),
        }
    }
    row.push(cell.trim().to_owned());
    rows.push((first_line, row));
    rows.retain(|(_, row)| row.iter().any(|cell| !cell.is_empty()));
    rows
}

#[cfg(test)]
mod tests {
    use ssn_volume::csv_cell;

    use super::*;

    #[test]
    fn cells_come_out_as_written() {
        let text = "\u{feff}id,seg\r\n a , \"x,\"\"y\"\"\nz\"\n\n,b\n";
        let expected = [(1, vec!["id", "seg"]), (2, vec!["a", "x,\"y\"\nz"]), (5, vec!["", "b"])];
        assert_eq!(
            rows(text),
            expected.map(|(n, row)| (n, row.into_iter().map(str::to_owned).collect::<Vec<_>>()))
        );
        assert!(rows("\n\n").is_empty());
        assert_eq!(rows(&format!("{},b", csv_cell("x,\"y\"")))[0].1, ["x,\"y\"", "b"]);
    }
}
