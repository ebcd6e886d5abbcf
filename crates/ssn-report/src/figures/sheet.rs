//! Pictures in rows, as data: a [`Sheet`] holds them, and [`Sheet::svg`] draws it.

use super::chart::{Entry, MARGIN, TEXT, with_head};
use super::picture::Picture;
use super::svg::{Anchor, Drawing, FAINT, INK, RULE};

/// Rows of pictures below a title and a legend.
#[derive(Debug, Default)]
pub struct Sheet {
    /// Above everything.
    pub title: String,
    /// Read out where the figure cannot be seen.
    pub description: String,
    /// Colors and what they stand for.
    pub legend: Vec<Entry>,
    /// Names above groups of columns; none if the pictures have captions instead.
    pub columns: Vec<ColumnGroup>,
    /// The rows, from the top.
    pub rows: Vec<SheetRow>,
}

/// Columns of pictures with a common name.
#[derive(Debug, Clone)]
pub struct ColumnGroup {
    /// The name of the group.
    pub name: String,
    /// The name of each column.
    pub columns: Vec<String>,
}

/// A row of pictures.
#[derive(Debug, Default)]
pub struct SheetRow {
    /// Above the row, below a line; neither if it is empty.
    pub title: String,
    /// At the left, in as many lines as it has.
    pub label: String,
    /// The pictures; nothing leaves a gray place.
    pub tiles: Vec<Option<PictureTile>>,
}

/// A picture with a few words below it.
#[derive(Debug)]
pub struct PictureTile {
    /// The picture.
    pub picture: Picture,
    /// The words, in as many lines as they have.
    pub caption: String,
}

impl SheetRow {
    /// Returns a row with a label at its left.
    pub fn labeled(label: impl Into<String>, tiles: Vec<PictureTile>) -> Self {
        Self { title: String::new(), label: label.into(), tiles: tiles.into_iter().map(Some).collect() }
    }

    /// The height of its title.
    fn above(&self) -> f64 {
        if self.title.is_empty() { 0.0 } else { ROW_TITLE }
    }

    fn height(&self) -> f64 {
        let lines = |tile: &Option<PictureTile>| tile.as_ref().map_or(0, |tile| tile.caption.lines().count());
        let lines = self.tiles.iter().map(lines).max().unwrap_or(0);
        self.above() + TILE + CAPTION * lines as f64 + GAP
    }
}

const LABEL_WIDTH: f64 = 110.0;
const LABEL_LINE: f64 = 16.0;
/// The longer side of every picture.
const TILE: f64 = 100.0;
const GAP: f64 = 6.0;
/// Between two groups of columns.
const GROUP_GAP: f64 = 16.0;
const GROUP_NAMES: f64 = 44.0;
const CAPTION: f64 = 15.0;
const ROW_TITLE: f64 = 28.0;
/// The size of labels, and of captions.
const LABEL: f64 = 12.5;
const SMALL: f64 = 11.5;

impl Sheet {
    /// Draws the sheet as an SVG file.
    pub fn svg(&self) -> String {
        let is_labeled = self.rows.iter().any(|row| !row.label.is_empty());
        let left = MARGIN + if is_labeled { LABEL_WIDTH } else { 0.0 };
        let places = self.places(left);
        let names = if self.columns.is_empty() { 0.0 } else { GROUP_NAMES };
        let width = places.last().map_or(left, |last| last + TILE) + MARGIN;
        let height = names + self.rows.iter().map(SheetRow::height).sum::<f64>() + MARGIN;
        let (mut drawing, head) = with_head(&self.title, &self.legend, width.max(300.0), height);
        self.column_names(&mut drawing, &places, head);
        let mut top = head + names;
        for row in &self.rows {
            draw_row(&mut drawing, row, &places, top, width);
            top += row.height();
        }
        drawing.finish(&self.title, &self.description)
    }

    /// Returns the left edge of each column.
    fn places(&self, left: f64) -> Vec<f64> {
        let columns = self.rows.iter().map(|row| row.tiles.len()).max().unwrap_or(0);
        // The columns before which there is a gap.
        let starts = self.columns.iter().scan(0, |start, group| {
            *start += group.columns.len();
            Some(*start)
        });
        let starts: Vec<usize> = starts.collect();
        let gaps = |column: usize| starts.iter().filter(|start| **start <= column).count() as f64;
        (0..columns).map(|i| left + i as f64 * (TILE + GAP) + gaps(i) * (GROUP_GAP - GAP)).collect()
    }

    fn column_names(&self, drawing: &mut Drawing, places: &[f64], top: f64) {
        let mut first = 0;
        for ColumnGroup { name, columns } in &self.columns {
            let own = &places[first.min(places.len())..(first + columns.len()).min(places.len())];
            first += columns.len();
            let (Some(left), Some(right)) = (own.first(), own.last().map(|last| last + TILE)) else {
                continue;
            };
            drawing.text((left + right) / 2.0, top + 16.0, TEXT, Anchor::Middle, INK, name);
            drawing.stroke((*left, top + 22.0), (right, top + 22.0), 1.0, INK);
            for (x, column) in own.iter().zip(columns) {
                drawing.text(x + TILE / 2.0, top + 38.0, LABEL, Anchor::Middle, FAINT, column);
            }
        }
    }
}

fn draw_row(drawing: &mut Drawing, row: &SheetRow, places: &[f64], top: f64, width: f64) {
    if !row.title.is_empty() {
        drawing.stroke((MARGIN, top), (width - MARGIN, top), 1.0, RULE);
        drawing.text(MARGIN, top + 18.0, LABEL, Anchor::Start, INK, &row.title);
    }
    let top = top + row.above();
    let lines: Vec<&str> = row.label.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let down = (i as f64 - (lines.len() as f64 - 1.0) / 2.0) * LABEL_LINE;
        drawing.text(MARGIN, top + TILE / 2.0 + 4.0 + down, LABEL, Anchor::Start, INK, line);
    }
    for (tile, x) in row.tiles.iter().zip(places) {
        match tile {
            Some(tile) => draw_tile(drawing, *x, top, tile),
            None => drawing.rectangle(*x, top, TILE, TILE, RULE),
        }
    }
}

fn draw_tile(drawing: &mut Drawing, x: f64, y: f64, PictureTile { picture, caption }: &PictureTile) {
    let (w, h) = (picture.width() as f64, picture.height() as f64);
    let scale = TILE / w.max(h).max(1.0);
    let (width, height) = (w * scale, h * scale);
    let (left, top) = (x + (TILE - width) / 2.0, y + (TILE - height) / 2.0);
    drawing.picture(left, top, width, height, &picture.data_uri());
    for (i, line) in caption.lines().enumerate() {
        let baseline = y + TILE + CAPTION * (i + 1) as f64 - 3.0;
        drawing.text(x + TILE / 2.0, baseline, SMALL, Anchor::Middle, FAINT, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::chart::Key;
    use crate::figures::{Color, png_from_svg};

    fn tile(caption: &str) -> PictureTile {
        PictureTile { picture: Picture::gray(&[0.0, 1.0], 2, [0.0, 1.0], 4), caption: caption.to_owned() }
    }

    fn number(svg: &str, before: &str) -> f64 {
        svg.split(before).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn every_picture_is_there_with_its_words() {
        let rows = vec![
            SheetRow {
                title: "case <1>".to_owned(),
                ..SheetRow::labeled("raters", vec![tile("a"), tile("b")])
            },
            SheetRow::labeled("mode 1\n63 %", vec![tile("mean")]),
        ];
        let legend = vec![Entry::new("core", Color(1, 2, 3), Key::Area)];
        let svg = Sheet { title: "Samples".to_owned(), legend, rows, ..Sheet::default() }.svg();
        assert_eq!(svg.matches("<image").count(), 3);
        for part in ["case &lt;1&gt;", ">raters<", ">mode 1<", ">63 %<", ">core<", "#010203"] {
            assert!(svg.contains(part), "{part}");
        }
        png_from_svg(&svg, 1.0).unwrap();
    }

    #[test]
    fn a_row_is_as_high_as_its_longest_caption() {
        let height = |caption: &str| {
            let rows = vec![SheetRow::labeled("", vec![tile(caption)])];
            number(&Sheet { rows, ..Sheet::default() }.svg(), " height=\"")
        };
        assert_eq!(height("31 %\nrare") - height("31 %"), CAPTION);
        assert_eq!(height("31 %") - height(""), CAPTION);
    }

    #[test]
    fn pictures_stand_below_the_names_of_their_columns() {
        let group = |name: &str, columns: &[&str]| ColumnGroup {
            name: name.to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        };
        let columns = vec![group("given", &["image", "raters"]), group("low-rank", &["prediction"])];
        let rows =
            vec![SheetRow { tiles: vec![Some(tile("")), None, Some(tile("empty"))], ..SheetRow::default() }];
        let svg = Sheet { columns, rows, ..Sheet::default() }.svg();
        assert_eq!((svg.matches("<image").count(), svg.matches(">empty<").count()), (2, 1));
        let name = svg.lines().find(|line| line.contains(">prediction<")).unwrap();
        let last = svg.lines().rfind(|line| line.starts_with("<image")).unwrap();
        assert_eq!(number(last, "<image x=\""), number(name, "x=\"") - TILE / 2.0);
    }

    /// A legend of twenty classes stays inside the sheet.
    #[test]
    fn many_classes_take_several_lines() {
        let legend =
            (0..20).map(|i| Entry::new(format!("structure number {i}"), Color(1, 2, 3), Key::Area)).collect();
        let rows = vec![SheetRow::labeled("", vec![tile(""), tile(""), tile("")])];
        let svg = Sheet { legend, rows, ..Sheet::default() }.svg();
        let width = number(&svg, " width=\"");
        for line in svg.lines().filter(|line| line.contains(">structure number")) {
            let x = number(line, "x=\"");
            assert!(x >= 0.0 && x + 17.0 * 6.8 <= width, "{line} in {width}");
        }
    }
}
