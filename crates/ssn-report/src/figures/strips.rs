//! Strips of pictures: a case per block, a row per rater set or model, samples side by side.

use super::picture::Picture;
use super::svg::{Anchor, Color, Drawing, FAINT, INK};

/// A picture with a few words below it.
#[derive(Debug)]
pub struct Tile {
    /// The picture.
    pub picture: Picture,
    /// The words, in as many lines as they have.
    pub caption: String,
}

/// A row of pictures.
#[derive(Debug)]
pub struct Strip {
    /// What the row shows.
    pub label: String,
    /// The pictures.
    pub tiles: Vec<Tile>,
}

/// The rows of one case.
#[derive(Debug)]
pub struct Block {
    /// The name of the case.
    pub title: String,
    /// Its rows.
    pub strips: Vec<Strip>,
}

const MARGIN: f64 = 20.0;
const LABEL_WIDTH: f64 = 110.0;
const TILE: f64 = 96.0;
const GAP: f64 = 6.0;
const CAPTION: f64 = 15.0;
const TITLE: f64 = 28.0;
const BLOCK_GAP: f64 = 14.0;
/// The width of a letter of the legend, roughly.
const LETTER: f64 = 6.6;
/// The same of the title.
const TITLE_LETTER: f64 = 9.0;
/// What an entry of the legend takes beside its letters: its color, and room on both sides.
const ENTRY: f64 = 32.0;
/// The height of a legend that has a line of its own.
const LEGEND_LINE: f64 = 22.0;

/// Draws the blocks below each other; the longer side of every picture is the same.
pub fn strips_figure(title: &str, description: &str, blocks: &[Block]) -> String {
    strips_with_legend(title, description, &[], blocks)
}

/// The same with colors and what they stand for.
pub(crate) fn strips_with_legend(
    title: &str,
    description: &str,
    legend: &[(String, Color)],
    blocks: &[Block],
) -> String {
    let pitch = TILE + GAP;
    let columns =
        blocks.iter().flat_map(|block| &block.strips).map(|strip| strip.tiles.len()).max().unwrap_or(0);
    // A strip is as high as the longest of its captions asks for.
    let lines = |tile: &Tile| tile.caption.lines().count().max(1);
    let row = |strip: &Strip| TILE + CAPTION * strip.tiles.iter().map(lines).max().unwrap_or(1) as f64 + GAP;
    // Strips without labels leave no room for them.
    let is_labeled = blocks.iter().flat_map(|block| &block.strips).any(|strip| !strip.label.is_empty());
    let label_width = if is_labeled { LABEL_WIDTH } else { 0.0 };
    // A block without a title leaves no room for it.
    let title_of = |block: &Block| if block.title.is_empty() { GAP } else { TITLE };
    let height_of = |block: &Block| title_of(block) + block.strips.iter().map(row).sum::<f64>() + BLOCK_GAP;
    let width = 2.0 * MARGIN + label_width + columns as f64 * pitch - GAP;
    // Where title and legend do not fit beside each other, the legend has a line of its own.
    let entry = |name: &str| ENTRY + LETTER * name.chars().count() as f64;
    let needed =
        title.chars().count() as f64 * TITLE_LETTER + legend.iter().map(|(name, _)| entry(name)).sum::<f64>();
    let line = if needed > width - 2.0 * MARGIN && !legend.is_empty() { LEGEND_LINE } else { 0.0 };
    let height = 2.0 * MARGIN + TITLE + line + blocks.iter().map(height_of).sum::<f64>();
    let mut drawing = Drawing::new(width, height);
    drawing.text(MARGIN, MARGIN + 14.0, 16.0, Anchor::Start, INK, title);
    let mut right = width - MARGIN;
    for (name, color) in legend.iter().rev() {
        right -= entry(name);
        drawing.rectangle(right + 14.0, MARGIN + 3.0 + line, 12.0, 12.0, *color);
        drawing.text(right + 31.0, MARGIN + 13.0 + line, 12.0, Anchor::Start, INK, name);
    }
    let mut top = MARGIN + TITLE + line;
    for block in blocks {
        drawing.text(MARGIN, top + 18.0, 12.0, Anchor::Start, FAINT, &block.title);
        drawing.line((MARGIN, top), (width - MARGIN, top));
        let mut y = top + title_of(block);
        for strip in &block.strips {
            // Lines of a label stand below each other, centered.
            let lines: Vec<&str> = strip.label.lines().collect();
            for (i, line) in lines.iter().enumerate() {
                let down = (i as f64 - (lines.len() as f64 - 1.0) / 2.0) * 16.0;
                drawing.text(MARGIN, y + TILE / 2.0 + 4.0 + down, 12.0, Anchor::Start, INK, line);
            }
            for (i, tile) in strip.tiles.iter().enumerate() {
                draw_tile(&mut drawing, MARGIN + label_width + i as f64 * pitch, y, tile);
            }
            y += row(strip);
        }
        top += height_of(block);
    }
    drawing.finish(title, description)
}

fn draw_tile(drawing: &mut Drawing, x: f64, y: f64, tile: &Tile) {
    let (w, h) = (tile.picture.width() as f64, tile.picture.height() as f64);
    let scale = TILE / w.max(h).max(1.0);
    let (width, height) = (w * scale, h * scale);
    let (left, top) = (x + (TILE - width) / 2.0, y + (TILE - height) / 2.0);
    drawing.picture(left, top, width, height, &tile.picture.data_uri());
    for (i, line) in tile.caption.lines().enumerate() {
        let baseline = y + TILE + CAPTION * (i + 1) as f64 - 3.0;
        drawing.text(x + TILE / 2.0, baseline, 11.0, Anchor::Middle, FAINT, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_is_there() {
        let picture = Picture::gray(&[0.0, 1.0], 2, [0.0, 1.0], 4);
        let tile = |caption: &str| Tile { picture: picture.clone(), caption: caption.to_owned() };
        let strips = vec![
            Strip { label: "raters".into(), tiles: vec![tile("rater 0"), tile("rater 1")] },
            Strip { label: "low-rank".into(), tiles: vec![tile("mean")] },
        ];
        let svg = strips_figure("Samples", "d", &[Block { title: "case 1".into(), strips }]);
        assert_eq!(svg.matches("<image").count(), 3);
        let height = |caption: &str| {
            let strips = vec![Strip { label: String::new(), tiles: vec![tile(caption)] }];
            let svg = strips_figure("t", "d", &[Block { title: String::new(), strips }]);
            let height = svg.split(" height=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            height.parse::<f64>().unwrap()
        };
        assert_eq!(height("31 %\nrare") - height("31 %"), CAPTION, "a line more");
        assert!(svg.contains("rater 1") && svg.contains("case 1"));
        crate::figures::svg::png_from_svg(&svg, 1.0).unwrap();
    }

    #[test]
    fn a_legend_names_colors_and_labels_have_lines() {
        let strips = vec![Strip { label: "mode 1\n63 %".into(), tiles: vec![] }];
        let legend = [("core".to_owned(), Color(1, 2, 3)), ("rim".to_owned(), Color(4, 5, 6))];
        let svg = strips_with_legend("t", "d", &legend, &[Block { title: String::new(), strips }]);
        assert!(svg.contains(">core<") && svg.contains("#010203") && svg.contains("#040506"));
        assert!(svg.contains(">mode 1<") && svg.contains(">63 %<"));
        // Beside a long title there is no room: the names stand below it.
        let baseline = |title: &str| {
            let tile = || Tile { picture: Picture::gray(&[0.0], 1, [0.0, 1.0], 1), caption: String::new() };
            let strips = vec![Strip { label: String::new(), tiles: vec![tile(), tile()] }];
            let svg = strips_with_legend(title, "d", &legend, &[Block { title: String::new(), strips }]);
            svg.lines().find(|line| line.contains(">core<")).unwrap().split('"').nth(3).unwrap().to_owned()
        };
        assert_eq!((baseline("t"), baseline(&"title ".repeat(9))), ("33".to_owned(), "55".to_owned()));
    }
}
