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

/// A page under construction: what stands at its top, and sections below it.
#[derive(Debug)]
pub struct Page {
    title: String,
    facts: Vec<(String, String)>,
    /// What comes before the first section.
    lead: String,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    heading: String,
    /// Whether it is closed until the reader opens it; those stand after the others.
    folded: bool,
    body: String,
}

/// A drawing in the page.
#[derive(Debug)]
pub struct Drawn {
    /// The name under which it is saved, without ending.
    pub name: String,
    pub svg: String,
    /// The sentence below it.
    pub caption: String,
}

/// A score at the top of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadlineCard {
    pub name: String,
    /// A sign for the better direction, and what it means.
    pub direction: (&'static str, &'static str),
    pub value: String,
    /// What belongs to the value: its error, or of what it is.
    pub note: String,
}

impl Page {
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), facts: vec![], lead: String::new(), sections: vec![] }
    }

    /// A fact for the head of the page.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.facts.push((name.to_owned(), value.to_owned()));
    }

    pub fn section(&mut self, heading: &str) {
        self.sections.push(Section { heading: heading.to_owned(), folded: false, body: String::new() });
    }

    /// A section that is closed at first; all of these stand at the end of the page.
    pub fn folded(&mut self, heading: &str) {
        self.sections.push(Section { heading: heading.to_owned(), folded: true, body: String::new() });
    }

    /// A part that links may lead to, by its id.
    pub fn part(&mut self, id: &str, heading: &str) {
        self.add(format_args!("<h3 id=\"{}\">{}</h3>", escape(id), escape(heading)));
    }

    /// Opens a part that is closed at first, and lasts until [`Self::end_fold`].
    pub fn fold(&mut self, summary: &str) {
        self.add(format_args!("<details class=\"more\"><summary>{}</summary>", escape(summary)));
    }

    pub fn end_fold(&mut self) {
        self.add(format_args!("</details>"));
    }

    /// A paragraph; what stands between backticks is code.
    pub fn paragraph(&mut self, text: &str) {
        self.add(format_args!("<p>{}</p>", with_code(text)));
    }

    /// A paragraph at the top of the page, before all sections.
    pub fn note(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lead, "<p>{}</p>", with_code(text));
    }

    /// Sentences that belong together.
    pub fn list(&mut self, sentences: &[String]) {
        if sentences.is_empty() {
            return;
        }
        self.add(format_args!("<ul>"));
        for sentence in sentences {
            self.add(format_args!("<li>{}</li>", with_code(sentence)));
        }
        self.add(format_args!("</ul>"));
    }

    /// A line for a shell, with a button that copies it.
    pub fn command(&mut self, line: &str) {
        let line = escape(line);
        self.add(format_args!(
            "<p class=\"command\"><code>{line}</code> <button type=\"button\" data-copy=\"{line}\">Copy</button></p>"
        ));
    }

    pub fn headline(&mut self, cards: &[HeadlineCard]) {
        self.add(format_args!("<dl class=\"headline\">"));
        for HeadlineCard { name, direction: (sign, meaning), value, note } in cards {
            let (name, value, note) = (escape(name), escape(value), with_code(note));
            self.add(format_args!(
                "<div><dt>{name}&nbsp;<span aria-hidden=\"true\" title=\"{meaning}\">{sign}</span><span class=\"unseen\">\
                 ({meaning})</span></dt><dd><b>{value}</b> <span>{note}</span></dd></div>"
            ));
        }
        self.add(format_args!("</dl>"));
    }

    pub fn table(&mut self, table: &Table) {
        self.add(format_args!("{}", table.html().trim_end()));
    }

    /// Adds figures, beside each other where there is room.
    pub fn figures(&mut self, figures: &[Drawn]) {
        let class = if figures.len() > 1 { "figures several" } else { "figures" };
        self.add(format_args!("<div class=\"{class}\">"));
        for figure in figures {
            let (svg, caption, name) =
                (inline(&figure.svg), with_code(&figure.caption), escape(&figure.name));
            let width = width_of(&figure.svg);
            self.add(format_args!(
                "<figure data-name=\"{name}\" style=\"--natural:{width}px\">\n<div class=\"drawing\">{svg}</div>\
                 <figcaption>{caption}</figcaption>\n</figure>"
            ));
        }
        self.add(format_args!("</div>"));
    }

    pub fn finish(&self) -> String {
        let title = escape(&self.title);
        let mut facts = String::new();
        for (name, value) in &self.facts {
            // Writing to a string cannot fail.
            let _ = writeln!(facts, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        if !facts.is_empty() {
            facts = format!("<dl class=\"facts\">\n{facts}</dl>\n");
        }
        let (mut contents, mut body) = (String::new(), String::new());
        let (folded, open): (Vec<_>, Vec<_>) =
            self.sections.iter().enumerate().partition(|(_, section)| section.folded);
        for (number, section) in open.into_iter().chain(folded) {
            let heading = escape(&section.heading);
            let _ = writeln!(contents, "<a href=\"#s{number}\">{heading}</a>");
            let inside = &section.body;
            let _ = match section.folded {
                false => write!(body, "<section>\n<h2 id=\"s{number}\">{heading}</h2>\n{inside}</section>\n"),
                true => write!(
                    body,
                    "<details class=\"section\" id=\"s{number}\">\n<summary><h2>{heading}</h2></summary>\n{inside}</details>\n"
                ),
            };
        }
        // One section needs no list.
        if self.sections.len() < 2 {
            contents.clear();
        } else {
            contents = format!("<nav aria-label=\"Contents\">\n{contents}</nav>\n");
        }
        let lead = &self.lead;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{ICON}\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
             {facts}</header>\n<main>\n{lead}{contents}{body}</main>\n<footer>{FOOTER}</footer>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let body = self.sections.last_mut().map_or(&mut self.lead, |section| &mut section.body);
        // Writing to a string cannot fail.
        let _ = writeln!(body, "{element}");
    }
}

/// Inside a page, a drawing needs no namespace.
fn inline(svg: &str) -> String {
    svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

/// The width that a drawing says it has.
fn width_of(svg: &str) -> f64 {
    let after = svg.split_once(" width=\"").map_or("", |(_, after)| after);
    after.split('"').next().and_then(|width| width.parse().ok()).unwrap_or(0.0)
}

/// Text with what stands between two backticks as code; a backtick without a second one stays.
fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::new();
    for (number, part) in parts.iter().enumerate() {
        let part = escape(part);
        let (is_odd, is_last) = (number % 2 == 1, number + 1 == parts.len());
        // Writing to a string cannot fail.
        let _ = match (is_odd, is_last) {
            (true, false) => write!(out, "<code>{part}</code>"),
            (true, true) => write!(out, "`{part}"),
            (false, _) => write!(out, "{part}"),
        };
    }
    out
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    pub text: String,
    /// By what the column sorts: a number as Rust writes it, or a name; empty where there is no value.
    pub key: String,
    /// Whether it is the best of those that it is compared with.
    pub best: bool,
    /// The id of a part of the page that it leads to.
    pub link: Option<String>,
    /// What a button in the place of the text copies.
    pub copy: Option<String>,
}

impl Cell {
    pub fn name(text: &str) -> Self {
        Self { text: text.to_owned(), key: text.to_owned(), ..Self::default() }
    }

    /// A number and how it is shown; a dash where there is none.
    pub fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Self {
        match value.filter(|x| x.is_finite()) {
            Some(x) => Self { text: shown(x).replace('-', "−"), key: x.to_string(), ..Self::default() },
            None => Self { text: "–".to_owned(), ..Self::default() },
        }
    }

    /// A button that copies a line.
    pub fn copy(line: &str, label: &str) -> Self {
        Self { text: label.to_owned(), copy: Some(line.to_owned()), ..Self::default() }
    }

    fn html(&self) -> String {
        let text = escape(&self.text);
        let text = if self.best { format!("<strong>{text}</strong>") } else { text };
        match (&self.link, &self.copy) {
            (Some(id), _) => format!("<a href=\"#{}\">{text}</a>", escape(id)),
            (None, Some(line)) => {
                let line = escape(line);
                format!("<button type=\"button\" data-copy=\"{line}\" title=\"{line}\">{text}</button>")
            }
            (None, None) => text,
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
    /// Whether a column is of buttons, which neither sort nor are copied with the table.
    fn is_action(&self, column: usize) -> bool {
        let of_row = |row: &Row| match row {
            Row::Cells(cells) => cells.get(column).is_some_and(|cell| cell.copy.is_some()),
            Row::Heading(_) => false,
        };
        self.rows.iter().any(of_row)
    }

    pub fn html(&self) -> String {
        let class = if self.sortable { " class=\"sortable\"" } else { "" };
        let mut out = format!(
            "<div class=\"scroll\"><table{class} aria-label=\"{}\">\n<thead><tr>",
            escape(&self.caption)
        );
        let action: Vec<bool> = (0..self.columns.len()).map(|column| self.is_action(column)).collect();
        for (column, name) in self.columns.iter().enumerate() {
            let name = escape(name);
            // Writing to a string cannot fail.
            let _ = match (action[column], self.sortable) {
                (true, _) => write!(out, "<th scope=\"col\" class=\"action\">{name}</th>"),
                (false, true) => {
                    write!(out, "<th scope=\"col\"><button type=\"button\">{name}</button></th>")
                }
                (false, false) => write!(out, "<th scope=\"col\">{name}</th>"),
            };
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
                    for (column, cell) in cells.iter().enumerate() {
                        let (key, inside) = (escape(&cell.key), cell.html());
                        let _ = match (column, action.get(column)) {
                            (0, _) => write!(out, "<th scope=\"row\" data-value=\"{key}\">{inside}</th>"),
                            (_, Some(true)) => write!(out, "<td class=\"action\">{inside}</td>"),
                            _ => write!(out, "<td data-value=\"{key}\">{inside}</td>"),
                        };
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
        page.folded("Last");
        page.note("first of `all`");
        page.section("Scores & more");
        page.paragraph("1 < 2");
        page.command("ssn view 'a\"b' --case '<b>'");
        let svg = Drawing::new(10.0, 10.0).finish("t", "d");
        page.figures(&[Drawn { name: "<b>\"".into(), svg, caption: "a 'figure'".into() }]);
        let html = page.finish();
        assert_eq!(html.matches("<script").count(), 1, "our own");
        assert!(html.contains("&lt;script&gt;alert(1)") && html.contains("1 &lt; 2"));
        assert!(!html.contains("://") && !html.contains('\u{0}'));
        assert!(html.contains("<a href=\"#s1\">Scores &amp; more</a>") && html.contains("<h2 id=\"s1\">"));
        assert!(html.contains("data-name=\"&lt;b&gt;&quot;\" style=\"--natural:10px\""));
        assert!(html.contains("<code>ssn view &#39;a&quot;b&#39; --case &#39;&lt;b&gt;&#39;</code>"));
        let closed = html.find("<details class=\"section\" id=\"s0\">").unwrap();
        assert!(closed > html.find("id=\"s1\"").unwrap(), "folded sections are the last");
        assert!(html.find("first of <code>all</code>").unwrap() < html.find("<nav").unwrap());
        assert!(html.contains("not a medical device") && html.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn backticks_are_code_and_nothing_else() {
        assert_eq!(with_code("run `a <b> && c` now"), "run <code>a &lt;b&gt; &amp;&amp; c</code> now");
        assert_eq!(with_code("`a` or `b`"), "<code>a</code> or <code>b</code>");
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`</code><script>`"), "<code>&lt;/code&gt;&lt;script&gt;</code>");
    }

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
        let html = table.html();
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
        let html = table.html();
        assert!(html.contains("data-value=\"-0.5\">−50.0<") && html.contains("data-value=\"\">–<"));
        assert!(html.contains("&lt;script&gt;&quot;x&quot;") && !html.contains("<script"));
        assert_eq!(html.matches("<button").count(), 2);
        assert_eq!(Table { sortable: false, ..table }.html().matches("<button").count(), 0);
        assert!(Cell::number(Some(f64::NAN), |x| x.to_string()).key.is_empty());
    }
}
