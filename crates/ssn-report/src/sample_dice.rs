//! How good the samples of each case are: their Dice, beside that of the mean prediction, and the share of them that is above
//! it.

use ssn_core::metrics::quantile;

use crate::figures::svg::{Anchor, CLASSES, Color, Drawing, FAINT, INK, PREDICTION, RULE, SAMPLE, marks};
use crate::material::{Material, Survey};
use crate::output::{Drawn, Report};
use ssn_eval::predictions::Kind;
use ssn_eval::scores::mean;

/// Cases in the figure at most; more are taken evenly.
const MOST_ROWS: usize = 80;
const WIDTH: f64 = 860.0;
const LEFT: f64 = 200.0;
const RIGHT: f64 = 176.0;
/// The bars of the share of samples above the prediction: where 0 % is, counted from the right, and how long 100 % is.
const SHARE_LEFT: f64 = 144.0;
const SHARE_LENGTH: f64 = 92.0;
const SHARE: Color = CLASSES[0];
const TOP: f64 = 84.0;
const BOTTOM: f64 = 40.0;
const PITCH: f64 = 20.0;
/// Letters of a name that have room.
const LETTERS: usize = 26;

/// The Dice of the samples of all cases, of one folder or several.
pub(crate) fn sample_dice(report: &mut Report, materials: &[Material], surveys: &[Vec<Survey>]) {
    let drawn = |(material, surveys): (&Material, &Vec<Survey>)| {
        let (title, name) = match materials {
            [_] => ("case by case", "sample-dice".to_owned()),
            _ => (material.name.as_str(), format!("{}-sample-dice", material.name)),
        };
        let (svg, caption) = dice_drawing(&format!("DSC of samples, {title}"), material.kind(), surveys)?;
        Some(Drawn { name, svg, caption })
    };
    let drawn: Vec<Drawn> = materials.iter().zip(surveys).filter_map(drawn).collect();
    if drawn.is_empty() {
        return;
    }
    report.page.folded("How good the samples are");
    report.page.paragraph(
        "Of every case, the Dice of its samples and of its mean prediction, as means over its raters, with all foreground classes \
         as one mask. A sample right of the bar is better than the prediction.",
    );
    drawn.into_iter().for_each(|one| report.show(vec![one]));
}

/// The drawing, in the order of the cases, and what it says over all of them; nothing without raters.
fn dice_drawing(title: &str, kind: Kind, surveys: &[Survey]) -> Option<(String, String)> {
    let has_dice = |survey: &&Survey| survey.prediction.is_some() || !survey.samples.is_empty();
    let mut rows: Vec<&Survey> = surveys.iter().filter(has_dice).collect();
    rows.sort_by_key(|survey| survey.rank);
    if rows.is_empty() {
        return None;
    }
    let all = rows.len();
    if all > MOST_ROWS {
        rows = (0..MOST_ROWS).map(|i| rows[i * (all - 1) / (MOST_ROWS - 1)]).collect();
    }
    let mean = mean(surveys.iter().filter_map(Survey::above));
    let above = mean.map_or(String::new(), |mean| {
        format!(
            "Over all cases, {:.0} % of the samples are better than the mean prediction: the dashed line.",
            100.0 * mean
        )
    });
    let kind = match kind {
        Kind::Deterministic => " This network has no samples of its own: every voxel is drawn by itself.",
        Kind::Stochastic | Kind::Sampled => "",
    };
    let fewer = if all > rows.len() {
        format!(" {} of {all} cases, taken evenly.", rows.len())
    } else {
        String::new()
    };
    let caption = format!("{above}{kind}{fewer}").trim().to_owned();
    Some((draw(title, &rows, mean), caption))
}

/// Draws a row per case, in the order given. `mean_above`, the mean over all cases of the share of samples above the
/// prediction, is a dashed line through the bars of the shares, as in the paper's figure of sample gain.
fn draw(title: &str, rows: &[&Survey], mean_above: Option<f64>) -> String {
    let height = TOP + rows.len() as f64 * PITCH + BOTTOM;
    let across = |dice: f64| LEFT + dice.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
    let mut drawing = Drawing::new(WIDTH, height);
    drawing.text(12.0, 26.0, 16.0, Anchor::Start, INK, title);
    legend(&mut drawing);
    let bars = WIDTH - SHARE_LEFT;
    let along = |share: f64| bars + share.clamp(0.0, 1.0) * SHARE_LENGTH;
    drawing.text(bars, TOP - 26.0, 12.0, Anchor::Start, INK, "samples above");
    drawing.text(bars, TOP - 11.0, 12.0, Anchor::Start, INK, "the prediction");
    for x in marks(0.0, 1.0) {
        drawing.stroke((across(x), TOP - 4.0), (across(x), height - BOTTOM), 1.0, RULE);
        drawing.text(
            across(x),
            height - BOTTOM + 18.0,
            12.0,
            Anchor::Middle,
            INK,
            &format!("{:.0}", 100.0 * x),
        );
    }
    drawing.text(across(1.0), height - 6.0, 12.0, Anchor::End, FAINT, "DSC %, higher is better");
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * PITCH;
        drawing.text(LEFT - 12.0, y + 4.0, 12.0, Anchor::End, INK, &short(&row.id));
        for (number, &dice) in row.samples.iter().enumerate() {
            // Samples of equal Dice lie beside each other.
            let aside = (number % 5) as f64 - 2.0;
            drawing.faint_dot((across(dice), y + 1.6 * aside), 3.0, SAMPLE);
        }
        if let Some(high) = quantile(&row.samples, 0.95).ok().flatten() {
            drawing.stroke((across(high), y - 8.0), (across(high), y + 8.0), 1.5, INK);
        }
        if let Some(prediction) = row.prediction {
            drawing.stroke((across(prediction), y - 9.0), (across(prediction), y + 9.0), 3.5, PREDICTION);
        }
        let above = row.above();
        if let Some(share) = above {
            drawing.rectangle(bars, y - 6.0, along(share) - bars, 12.0, SHARE);
        }
        let above = above.map_or("–".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        drawing.text(WIDTH - 8.0, y + 4.0, 12.0, Anchor::End, INK, &above);
    }
    drawing.stroke((bars, TOP - 4.0), (bars, height - BOTTOM), 1.0, INK);
    if let Some(mean) = mean_above {
        let x = along(mean);
        drawing.dashes((x, TOP - 4.0), (x, height - BOTTOM + 4.0), 1.5, INK);
        let label = format!("mean {:.0} %", 100.0 * mean);
        drawing.text(bars, height - BOTTOM + 18.0, 12.0, Anchor::Start, INK, &label);
    }
    drawing.finish(title, "For each case the Dice of its samples and of its mean prediction.")
}

fn legend(drawing: &mut Drawing) {
    let (mut x, y) = (LEFT, 50.0);
    drawing.faint_dot((x, y - 4.0), 3.0, SAMPLE);
    drawing.text(x + 9.0, y, 12.0, Anchor::Start, INK, "sample");
    x += 76.0;
    drawing.stroke((x, y - 13.0), (x, y + 4.0), 3.5, PREDICTION);
    drawing.text(x + 9.0, y, 12.0, Anchor::Start, INK, "mean prediction");
    x += 130.0;
    drawing.stroke((x, y - 12.0), (x, y + 3.0), 1.5, INK);
    drawing.text(x + 9.0, y, 12.0, Anchor::Start, INK, "95 % quantile of samples");
}

/// A name that fits beside the axes: the end of a long one, where names of cases differ.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= LETTERS {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(letters - LETTERS + 1).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_and_every_share_is_there() {
        let survey = |id: &str, prediction| Survey {
            id: id.to_owned(),
            prediction,
            samples: vec![0.5, 0.75, 0.875, 1.0],
            ..Survey::default()
        };
        let (with, without) = (survey("a", Some(0.6)), survey("a very long name of a case <1>", None));
        let rows = [&with, &without];
        let svg = draw("Samples", &rows, Some(0.5));
        assert_eq!(svg.matches("<circle").count(), 2 * 4 + 1);
        assert!(svg.contains(">75 %<") && svg.contains(">–<") && svg.contains("of a case &lt;1&gt;<"));
        // The predictions of one case and of the legend.
        assert_eq!(svg.matches(&PREDICTION.hex()).count(), 2);
        // A bar for the case that has a share, three quarters of the length, and the line of the mean at half of it.
        let width = format!("width=\"{}\" height=\"12\" fill=\"{}\"", 0.75 * SHARE_LENGTH, SHARE.hex());
        assert_eq!((svg.matches(&SHARE.hex()).count(), svg.matches(&width).count()), (1, 1), "{svg}");
        let x = WIDTH - SHARE_LEFT + SHARE_LENGTH / 2.0;
        assert!(svg.contains(&format!("<line x1=\"{x:.1}\"")) && svg.contains(">mean 50 %<"));
        assert!(!draw("Samples", &rows, None).contains("stroke-dasharray"));
        crate::figures::png_from_svg(&svg, 1.0).unwrap();
    }
    #[test]
    fn cases_stand_in_the_order_of_their_ranks() {
        let survey = |(id, rank): (&str, usize)| Survey {
            id: id.into(),
            rank,
            prediction: Some(0.5),
            ..Survey::default()
        };
        let (svg, _) = dice_drawing("t", Kind::Stochastic, &[("x", 1), ("y", 0)].map(survey)).unwrap();
        assert!(svg.find(">y<").unwrap() < svg.find(">x<").unwrap(), "the better case is higher up");
    }
}
