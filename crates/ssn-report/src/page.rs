//! One page that holds everything: text, tables and figures, in light, in dark and on paper, with nothing to fetch.

#![expect(unused_qualifications, reason = "askama writes them for templates of enums")]

use std::fmt::{self, Write};

use askama::Template;

use crate::figures::svg::escape;
use crate::table::Table;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");

/// A page under construction: what stands at its top, and sections below it.
#[derive(Debug, Template)]
#[template(path = "page.html")]
pub(crate) struct Page {
    title: String,
    facts: Vec<(String, String)>,
    /// Blocks before the first section.
    lead: Vec<Block>,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    heading: String,
    /// Whether it is closed until the reader opens it; those stand after the others.
    folded: bool,
    blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Debug, Template)]
#[template(path = "block.html")]
enum Block {
    /// A heading that links may lead to, by its id.
    Part {
        id: String,
        heading: String,
    },
    /// Begins a part that is closed at first.
    Fold(String),
    /// Ends such a part.
    EndFold,
    Paragraph(String),
    List(Vec<String>),
    /// A line for a shell, with a button that copies it.
    Command(String),
    Headline(Vec<HeadlineCard>),
    Table(Table),
    /// Drawings, side by side where there is room.
    Figures(Vec<Drawn>),
}

/// A drawing in the page.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// The name under which it is saved, without ending.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// The sentence below it.
    pub(crate) caption: String,
}

impl Drawn {
    /// Returns the drawing as part of a page, where it needs no namespace.
    fn inline(&self) -> String {
        self.svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
    }

    /// Returns the width that the drawing says it has.
    fn width(&self) -> f64 {
        let after = self.svg.split_once(" width=\"").map_or("", |(_, after)| after);
        after.split('"').next().and_then(|width| width.parse().ok()).unwrap_or(0.0)
    }
}

/// A score at the top of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadlineCard {
    pub(crate) name: String,
    /// A sign for the better direction, and its meaning.
    pub(crate) direction: (&'static str, &'static str),
    pub(crate) value: String,
    /// The error of the value, or what it is of.
    pub(crate) note: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), facts: vec![], lead: vec![], sections: vec![] }
    }

    /// Adds a fact to the head of the page.
    pub(crate) fn fact(&mut self, name: &str, value: &str) {
        self.facts.push((name.to_owned(), value.to_owned()));
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, heading: &str) {
        self.sections.push(Section { heading: heading.to_owned(), folded: false, blocks: vec![] });
    }

    /// Begins a section that is closed at first; all of these stand at the end of the page.
    pub(crate) fn folded(&mut self, heading: &str) {
        self.sections.push(Section { heading: heading.to_owned(), folded: true, blocks: vec![] });
    }

    /// Adds a heading that links may lead to, by its id.
    pub(crate) fn part(&mut self, id: &str, heading: &str) {
        self.add(Block::Part { id: id.to_owned(), heading: heading.to_owned() });
    }

    /// Begins a part that is closed at first, and lasts until [`Self::end_fold`].
    pub(crate) fn fold(&mut self, summary: &str) {
        self.add(Block::Fold(summary.to_owned()));
    }

    /// Ends the part that [`Self::fold`] began.
    pub(crate) fn end_fold(&mut self) {
        self.add(Block::EndFold);
    }

    /// Adds a paragraph; text between backticks is code.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.add(Block::Paragraph(text.to_owned()));
    }

    /// Adds a paragraph at the top of the page, before all sections.
    pub(crate) fn note(&mut self, text: &str) {
        self.lead.push(Block::Paragraph(text.to_owned()));
    }

    /// Adds sentences that belong together.
    pub(crate) fn list(&mut self, sentences: &[String]) {
        if !sentences.is_empty() {
            self.add(Block::List(sentences.to_vec()));
        }
    }

    /// Adds a line for a shell, with a button that copies it.
    pub(crate) fn command(&mut self, line: &str) {
        self.add(Block::Command(line.to_owned()));
    }

    /// Adds the most important scores.
    pub(crate) fn headline(&mut self, cards: Vec<HeadlineCard>) {
        self.add(Block::Headline(cards));
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: Table) {
        self.add(Block::Table(table));
    }

    /// Adds figures, side by side where there is room.
    pub(crate) fn figures(&mut self, figures: Vec<Drawn>) {
        self.add(Block::Figures(figures));
    }

    fn add(&mut self, block: Block) {
        self.sections.last_mut().map_or(&mut self.lead, |section| &mut section.blocks).push(block);
    }

    /// Returns the sections with their numbers, folded ones last.
    fn ordered(&self) -> Vec<(usize, &Section)> {
        let (folded, open): (Vec<_>, Vec<_>) =
            self.sections.iter().enumerate().partition(|(_, section)| section.folded);
        open.into_iter().chain(folded).collect()
    }
}

/// Escapes text in templates as drawings do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escape;

impl askama::filters::Escaper for Escape {
    fn write_escaped_str<W: Write>(&self, mut out: W, text: &str) -> fmt::Result {
        out.write_str(&escape(text))
    }
}

mod filters {
    use std::fmt::Display;

    /// Writes text with code between backticks.
    #[askama::filter_fn]
    pub(super) fn code(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(super::with_code(&text.to_string()))
    }
}

/// Escapes text, and marks what stands between two backticks as code; a backtick without a second one stays.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::svg::Drawing;
    use crate::table::{Cell, Row};

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
        page.figures(vec![Drawn { name: "<b>\"".into(), svg, caption: "a 'figure'".into() }]);
        let html = page.render().unwrap();
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
    fn every_block_is_written() {
        let mut page = Page::new("t");
        page.note("a note");
        page.headline(vec![HeadlineCard {
            name: "GED²".into(),
            direction: ("↓", "lower is better"),
            value: "0.2".into(),
            note: "± `0.1`".into(),
        }]);
        page.section("First");
        page.part("id", "part");
        page.fold("more");
        page.list(&["one".to_owned(), "two".to_owned()]);
        page.end_fold();
        let rows = vec![Row::Heading("h".into()), Row::Cells(vec![Cell::name("a"), Cell::name("b")])];
        let columns = vec!["x".into(), "y".into()];
        let table = Table { caption: "c".into(), columns, rows, sortable: false };
        page.table(Table { sortable: true, ..table.clone() });
        page.table(table);
        page.section("Second");
        let drawn =
            Drawn { name: "n".into(), svg: Drawing::new(1.0, 1.0).finish("t", "d"), caption: "c".into() };
        page.figures(vec![drawn.clone(), drawn]);
        let html = page.render().unwrap();
        let body = &html[html.find("<body>").unwrap()..html.find("<script>").unwrap()];
        insta::assert_snapshot!(body);
    }

    #[test]
    fn backticks_are_code_and_nothing_else() {
        assert_eq!(with_code("run `a <b> && c` now"), "run <code>a &lt;b&gt; &amp;&amp; c</code> now");
        assert_eq!(with_code("`a` or `b`"), "<code>a</code> or <code>b</code>");
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`</code><script>`"), "<code>&lt;/code&gt;&lt;script&gt;</code>");
    }
}
