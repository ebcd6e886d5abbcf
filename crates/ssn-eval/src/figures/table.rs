//! Tables of a page: cells with the value by which they sort.

use std::fmt::Write;

use crate::figures::escape::escape;

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// What is read.
    pub text: String,
    /// By what the column sorts: a number as Rust writes it, or a name; empty where there is no value.
    pub key: String,
}

impl Cell {
    /// A name.
    pub fn name(text: &str) -> Self {
        Self { text: text.to_owned(), key: text.to_owned() }
    }

    /// A number and how it is shown; a dash where there is none.
    pub fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Self {
        match value.filter(|x| x.is_finite()) {
            Some(x) => Self { text: shown(x).replace('-', "−"), key: x.to_string() },
            None => Self { text: "–".to_owned(), key: String::new() },
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A heading over the rows that follow; tables that sort have none.
    Heading(String),
    /// Cells, as many as there are columns.
    Cells(Vec<Cell>),
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it holds, read out where it cannot be seen.
    pub caption: String,
    /// The headings of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether a click on a heading sorts it.
    pub sortable: bool,
}

impl Table {
    /// The table as HTML.
    pub fn html(&self) -> String {
        let class = if self.sortable { " class=\"sortable\"" } else { "" };
        let mut out = format!(
            "<div class=\"scroll\"><table{class} aria-label=\"{}\">\n<thead><tr>",
            escape(&self.caption)
        );
        for column in &self.columns {
            let name = escape(column);
            let name = if self.sortable { format!("<button type=\"button\">{name}</button>") } else { name };
            // Writing to a string cannot fail.
            let _ = write!(out, "<th scope=\"col\">{name}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            match row {
                Row::Heading(text) => {
                    let (span, text) = (self.columns.len(), escape(text));
                    let _ = writeln!(
                        out,
                        "<tr class=\"group\"><th colspan=\"{span}\" scope=\"rowgroup\">{text}</th></tr>"
                    );
                }
                Row::Cells(cells) => {
                    out.push_str("<tr>");
                    for cell in cells {
                        let (key, text) = (escape(&cell.key), escape(&cell.text));
                        let _ = write!(out, "<td data-value=\"{key}\">{text}</td>");
                    }
                    out.push_str("</tr>\n");
                }
            }
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_carry_what_they_sort_by() {
        let table = Table {
            caption: "c".into(),
            columns: vec!["case".into(), "DSC %".into()],
            rows: vec![
                Row::Heading("lesion".into()),
                Row::Cells(vec![
                    Cell::name("<script>\"x\""),
                    Cell::number(Some(-0.5), |x| format!("{:.1}", 100.0 * x)),
                ]),
                Row::Cells(vec![Cell::name("b"), Cell::number(None, |x| x.to_string())]),
            ],
            sortable: true,
        };
        let html = table.html();
        assert!(html.contains("data-value=\"-0.5\">−50.0<") && html.contains("data-value=\"\">–<"));
        assert!(html.contains("&lt;script&gt;&quot;x&quot;") && !html.contains("<script"));
        assert_eq!(html.matches("<button").count(), 2);
        assert_eq!(Table { sortable: false, ..table }.html().matches("<button").count(), 0);
        assert!(Cell::number(Some(f64::NAN), |x| x.to_string()).key.is_empty());
    }
}
