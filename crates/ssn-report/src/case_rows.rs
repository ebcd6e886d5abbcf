//! Cases below each other, each in one row: what is given, and then the pictures of each network side by side.

use crate::figures::Picture;
use crate::figures::plot::{MARGIN, TEXT, TITLE};
use crate::figures::svg::{Anchor, Color, Drawing, FAINT, INK, PAPER, RULE, probability};

/// One case.
pub(crate) struct CaseRow {
    /// Above its pictures.
    pub(crate) title: String,
    /// A picture per column of all groups, in their order; nothing where a case has none.
    pub(crate) pictures: Vec<Option<RowPicture>>,
}

/// A picture of a row.
pub(crate) struct RowPicture {
    /// The picture.
    pub(crate) picture: Picture,
    /// Whether it shows a map that marks nothing, which is then said on it.
    pub(crate) empty: bool,
}

const TILE: f64 = 104.0;
const GAP: f64 = 4.0;
/// Between two groups.
const GROUP_GAP: f64 = 16.0;
const HEADINGS: f64 = 44.0;
const ROW_TITLE: f64 = 22.0;
const LEGEND: f64 = 26.0;
/// The width of the scale of entropies, and its colors.
const BAR: f64 = 96.0;
const BAR_STEPS: usize = 48;
/// The width of a letter of text, roughly.
const LETTER: f64 = 6.8;

/// Draws the rows, with the colors of classes and the scale of entropies below the title. `groups` are the columns of pictures: the
/// name of each, below a common heading such as the name of a network.
pub(crate) fn case_rows_figure(
    title: &str,
    description: &str,
    legend: &[(String, Color)],
    groups: &[(&str, &[&str])],
    rows: &[CaseRow],
) -> String {
    let mut lefts = vec![];
    let mut x = MARGIN;
    for (_, columns) in groups {
        lefts.push(x);
        x += columns.len() as f64 * (TILE + GAP) - GAP + GROUP_GAP;
    }
    let width = (x - GROUP_GAP + MARGIN).max(420.0);
    let top = 34.0 + LEGEND + HEADINGS;
    let height = top + rows.len() as f64 * (ROW_TITLE + TILE + GAP) + MARGIN;
    let mut drawing = Drawing::new(width, height);
    drawing.text(MARGIN, 24.0, TITLE, Anchor::Start, INK, title);
    draw_legend(&mut drawing, legend);
    for ((heading, columns), left) in groups.iter().zip(&lefts) {
        let right = left + columns.len() as f64 * (TILE + GAP) - GAP;
        drawing.text((left + right) / 2.0, top - 27.0, TEXT + 1.0, Anchor::Middle, INK, heading);
        drawing.stroke((*left, top - 20.0), (right, top - 20.0), 1.0, INK);
        for (place, column) in columns.iter().enumerate() {
            let middle = left + place as f64 * (TILE + GAP) + TILE / 2.0;
            drawing.text(middle, top - 5.0, TEXT, Anchor::Middle, FAINT, column);
        }
    }
    let places: Vec<f64> = groups
        .iter()
        .zip(&lefts)
        .flat_map(|((_, columns), left)| (0..columns.len()).map(move |i| left + i as f64 * (TILE + GAP)))
        .collect();
    for (number, row) in rows.iter().enumerate() {
        let y = top + number as f64 * (ROW_TITLE + TILE + GAP);
        drawing.text(MARGIN, y + 16.0, TEXT, Anchor::Start, INK, &row.title);
        for (picture, x) in row.pictures.iter().zip(&places) {
            match picture {
                Some(picture) => draw_picture(&mut drawing, *x, y + ROW_TITLE, picture),
                None => drawing.rectangle(*x, y + ROW_TITLE, TILE, TILE, RULE),
            }
        }
    }
    drawing.finish(title, description)
}

fn draw_legend(drawing: &mut Drawing, legend: &[(String, Color)]) {
    let (mut x, y) = (MARGIN, 50.0);
    for (name, color) in legend {
        drawing.rectangle(x, y - 10.0, 12.0, 12.0, *color);
        drawing.text(x + 17.0, y, TEXT, Anchor::Start, INK, name);
        x += 36.0 + LETTER * name.chars().count() as f64;
    }
    drawing.text(x, y, TEXT, Anchor::Start, INK, "entropy 0");
    x += 9.0 * LETTER + 14.0;
    let step = BAR / BAR_STEPS as f64;
    for i in 0..BAR_STEPS {
        let t = (i as f64 + 0.5) / BAR_STEPS as f64;
        drawing.rectangle(x + i as f64 * step, y - 11.0, step, 13.0, probability(t));
    }
    drawing.text(x + BAR + 6.0, y, TEXT, Anchor::Start, INK, "1");
}

fn draw_picture(drawing: &mut Drawing, x: f64, y: f64, RowPicture { picture, empty }: &RowPicture) {
    let (w, h) = (picture.width() as f64, picture.height() as f64);
    let scale = TILE / w.max(h).max(1.0);
    let (width, height) = (w * scale, h * scale);
    let (left, top) = (x + (TILE - width) / 2.0, y + (TILE - height) / 2.0);
    drawing.picture(left, top, width, height, &picture.data_uri());
    if *empty {
        drawing.rectangle(x, y + TILE - 18.0, 48.0, 18.0, INK);
        drawing.text(x + 24.0, y + TILE - 5.0, TEXT - 1.5, Anchor::Middle, PAPER, "empty");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;

    #[test]
    fn pictures_stand_below_their_headings() {
        let groups: [(&str, &[&str]); 2] = [("given", &["image", "raters"]), ("low-rank", &["prediction"])];
        let gray = Picture::gray(&[0.0, 1.0], 2, [0.0, 1.0], 4);
        let picture = |empty| Some(RowPicture { picture: gray.clone(), empty });
        let rows =
            [CaseRow { title: "case <1>".to_owned(), pictures: vec![picture(false), None, picture(true)] }];
        let legend = [("core".to_owned(), Color(1, 2, 3))];
        let svg = case_rows_figure("Networks", "d", &legend, &groups, &rows);
        assert_eq!((svg.matches("<image").count(), svg.matches(">empty<").count()), (2, 1));
        let x = |part: &str| -> f64 {
            let line = svg.lines().find(|line| line.contains(part)).unwrap();
            line.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let last = svg.lines().rfind(|line| line.starts_with("<image")).unwrap();
        assert!(last.starts_with(&format!("<image x=\"{}\"", x(">prediction<") - TILE / 2.0)), "{last:.80}");
        assert!(svg.contains("case &lt;1&gt;") && svg.contains("#010203") && svg.contains(">low-rank<"));
        png_from_svg(&svg, 1.0).unwrap();
    }
}
