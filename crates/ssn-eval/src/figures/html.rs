//! One page that holds everything: text, tables and figures, in light, in dark and on paper, with nothing to fetch.

use std::fmt::Write;

use super::svg::escape;

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
/// What every page says at its end.
const FOOTER: &str = "For research. This is not a medical device, and nothing here is a diagnosis.";
/// An empty picture, so that browsers do not ask for one.
const ICON: &str = "<link rel=\"icon\" href=\"data:,\">";
/// What browsers may do with the page: show it and what is inside it, and fetch nothing.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page under construction.
#[derive(Debug)]
pub struct Page {
    title: String,
    facts: Vec<(String, String)>,
    /// The headings of the sections, for the list of contents.
    headings: Vec<String>,
    body: String,
}

/// A drawing in the page, with a sentence below it.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    pub svg: &'a str,
    pub caption: &'a str,
}

impl Page {
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), facts: vec![], headings: vec![], body: String::new() }
    }

    /// A fact for the head of the page.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.facts.push((name.to_owned(), value.to_owned()));
    }

    pub fn section(&mut self, heading: &str) {
        let number = self.headings.len();
        self.headings.push(heading.to_owned());
        self.add(format_args!("<h2 id=\"s{number}\">{}</h2>", escape(heading)));
    }

    pub fn part(&mut self, heading: &str) {
        self.add(format_args!("<h3>{}</h3>", escape(heading)));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.add(format_args!("<p>{}</p>", escape(text)));
    }

    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&table.html());
    }

    /// Adds figures, beside each other where there is room.
    pub fn figures(&mut self, figures: &[Figure<'_>]) {
        let class = if figures.len() > 1 { "figures several" } else { "figures" };
        self.add(format_args!("<div class=\"{class}\">"));
        for figure in figures {
            let (svg, caption) = (inline(figure.svg), escape(figure.caption));
            self.add(format_args!("<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>"));
        }
        self.body.push_str("</div>\n");
    }

    pub fn finish(&self) -> String {
        let title = escape(&self.title);
        let mut facts = String::new();
        for (name, value) in &self.facts {
            // Writing to a string cannot fail.
            let _ = writeln!(facts, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        if !facts.is_empty() {
            facts = format!("<dl class=\"facts\">\n{facts}</dl>\n");
        }
        let mut contents = String::new();
        for (number, heading) in self.headings.iter().enumerate() {
            let _ = writeln!(contents, "<a href=\"#s{number}\">{}</a>", escape(heading));
        }
        let body = &self.body;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{ICON}\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
             {facts}<nav aria-label=\"Contents\">\n{contents}</nav>\n</header>\n\
             <main>\n{body}</main>\n<footer>{FOOTER}</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Inside a page, a drawing needs no namespace.
fn inline(svg: &str) -> String {
    svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    pub text: String,
    /// By what the column sorts: a number as Rust writes it, or a name; empty where there is no value.
    pub key: String,
}

impl Cell {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A heading over the rows that follow; tables that sort have none.
    Heading(String),
    /// Cells, as many as there are columns.
    Cells(Vec<Cell>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it holds, read out where it cannot be seen.
    pub caption: String,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
    /// Whether a click on a heading sorts it.
    pub sortable: bool,
}

impl Table {
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
    use crate::figures::svg::Drawing;

    #[test]
    fn a_page_fetches_nothing_and_executes_no_name() {
        let mut page = Page::new("<script>alert(1)</script>");
        page.fact("model", "a\"b\u{0}");
        page.section("Scores & more");
        page.paragraph("1 < 2");
        let svg = Drawing::new(10.0, 10.0).finish("t", "d");
        page.figures(&[Figure { svg: &svg, caption: "a 'figure'" }]);
        let html = page.finish();
        assert_eq!(html.matches("<script").count(), 1, "our own");
        assert!(html.contains("&lt;script&gt;alert(1)") && html.contains("1 &lt; 2"));
        assert!(!html.contains("://") && !html.contains('\u{0}'));
        assert!(html.contains("<a href=\"#s0\">Scores &amp; more</a>") && html.contains("id=\"s0\""));
        assert!(html.contains("not a medical device") && html.contains("prefers-color-scheme: dark"));
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
        let html = table.html();
        assert!(html.contains("data-value=\"-0.5\">−50.0<") && html.contains("data-value=\"\">–<"));
        assert!(html.contains("&lt;script&gt;&quot;x&quot;") && !html.contains("<script"));
        assert_eq!(html.matches("<button").count(), 2);
        assert_eq!(Table { sortable: false, ..table }.html().matches("<button").count(), 0);
        assert!(Cell::number(Some(f64::NAN), |x| x.to_string()).key.is_empty());
    }
}
