//! Tables of a page.

use askama::Template;

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Template)]
#[template(path = "cell.html")]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// By what the column sorts: a number as Rust writes it, or a name; empty where there is no value.
    pub(crate) key: String,
    /// Whether it is the best of those that it is compared with.
    pub(crate) best: bool,
    /// The id of a part of the page that it leads to.
    pub(crate) link: Option<String>,
    /// What a button in the place of the text copies.
    pub(crate) copy: Option<String>,
}

impl Cell {
    /// Returns a cell with a text.
    pub(crate) fn name(text: &str) -> Self {
        Self { text: text.to_owned(), key: text.to_owned(), ..Self::default() }
    }

    /// Returns a cell with a number and how it is shown; a dash where there is none.
    pub(crate) fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Self {
        match value.filter(|x| x.is_finite()) {
            Some(x) => Self { text: shown(x).replace('-', "−"), key: x.to_string(), ..Self::default() },
            None => Self { text: "–".to_owned(), ..Self::default() },
        }
    }

    /// Returns a button that copies a line.
    pub(crate) fn copy(line: &str, label: &str) -> Self {
        Self { text: label.to_owned(), copy: Some(line.to_owned()), ..Self::default() }
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A heading over the rows that follow; tables that sort have none.
    Heading(String),
    /// Cells, as many as there are columns.
    Cells(Vec<Cell>),
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Template)]
#[template(path = "table.html")]
pub(crate) struct Table {
    /// What it holds, read out where it cannot be seen.
    pub(crate) caption: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Whether a click on a heading sorts it.
    pub(crate) sortable: bool,
}

impl Table {
    /// Returns `true` if a column is of buttons, which neither sort nor are copied with the table.
    fn is_action(&self, column: usize) -> bool {
        let of_row = |row: &Row| match row {
            Row::Cells(cells) => cells.get(column).is_some_and(|cell| cell.copy.is_some()),
            Row::Heading(_) => false,
        };
        self.rows.iter().any(of_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_may_lead_somewhere_and_copy_lines() {
        let best = Cell { best: true, ..Cell::number(Some(0.25), |x| x.to_string()) };
        let linked = Cell { link: Some("case-a%22".into()), ..Cell::name("a\"") };
        let table = Table {
            caption: "c".into(),
            columns: vec!["case".into(), "GED²".into(), "viewer".into()],
            rows: vec![Row::Cells(vec![linked, best, Cell::copy("ssn view 'x' --case \"", "copy line")])],
            sortable: true,
        };
        let html = table.render().unwrap();
        assert!(
            html.contains("<th scope=\"row\" data-value=\"a&quot;\"><a href=\"#case-a%22\">a&quot;</a></th>")
        );
        assert!(html.contains("<td data-value=\"0.25\"><strong>0.25</strong></td>"));
        assert!(html.contains(
            "<td class=\"action\"><button type=\"button\" data-copy=\"ssn view &#39;x&#39; --case &quot;\""
        ));
        assert!(html.contains("<th scope=\"col\" class=\"action\">viewer</th>"), "buttons do not sort");
    }

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
        let html = table.render().unwrap();
        assert!(html.contains("data-value=\"-0.5\">−50.0<") && html.contains("data-value=\"\">–<"));
        assert!(html.contains("&lt;script&gt;&quot;x&quot;") && !html.contains("<script"));
        assert_eq!(html.matches("<button").count(), 2);
        assert_eq!(Table { sortable: false, ..table }.render().unwrap().matches("<button").count(), 0);
        assert!(Cell::number(Some(f64::NAN), |x| x.to_string()).key.is_empty());
    }
}
