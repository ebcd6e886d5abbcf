//! How good the samples of each case are: their Dice, beside that of the mean prediction, and the share of them that is above
//! it.

use ssn_core::metrics::quantile;

use crate::figures::chart::{Axis, Bar, Chart, Entry, Frame, Key, Mark, Panel, Ticks};
use crate::figures::scale::Scale;
use crate::figures::svg::{Anchor, CLASSES, Color, INK, PREDICTION, SAMPLE};
use crate::material::{CaseSurvey, PredictionSet};
use crate::output::{Drawn, Report};
use ssn_eval::predictions::PredictionKind;
use ssn_eval::scores::mean;

/// Cases in the figure at most; more are taken evenly.
const MOST_ROWS: usize = 80;
const WIDTH: f64 = 860.0;
const LEFT: f64 = 210.0;
/// Where the bars of the share of samples above the prediction begin, and how long 100 % is.
const SHARE_LEFT: f64 = 704.0;
const SHARE_LENGTH: f64 = 92.0;
const SHARE: Color = CLASSES[0];
const ABOVE: f64 = 34.0;
const BELOW: f64 = 46.0;
const PITCH: f64 = 20.0;
/// Letters of a name that have room.
const LETTERS: usize = 26;

/// The Dice of the samples of all cases, of one folder or several.
pub(crate) fn sample_dice(report: &mut Report, materials: &[PredictionSet], surveys: &[Vec<CaseSurvey>]) {
    let drawn = |(material, surveys): (&PredictionSet, &Vec<CaseSurvey>)| {
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
fn dice_drawing(title: &str, kind: PredictionKind, surveys: &[CaseSurvey]) -> Option<(String, String)> {
    let has_dice = |survey: &&CaseSurvey| survey.prediction.is_some() || !survey.samples.is_empty();
    let mut rows: Vec<&CaseSurvey> = surveys.iter().filter(has_dice).collect();
    rows.sort_by_key(|survey| survey.rank);
    if rows.is_empty() {
        return None;
    }
    let all = rows.len();
    if all > MOST_ROWS {
        rows = (0..MOST_ROWS).map(|i| rows[i * (all - 1) / (MOST_ROWS - 1)]).collect();
    }
    let mean = mean(surveys.iter().filter_map(CaseSurvey::above));
    let above = mean.map_or(String::new(), |mean| {
        format!(
            "Over all cases, {:.0} % of the samples are better than the mean prediction: the dashed line.",
            100.0 * mean
        )
    });
    let kind = match kind {
        PredictionKind::Deterministic => {
            " This network has no samples of its own: every voxel is drawn by itself."
        }
        PredictionKind::Stochastic | PredictionKind::Sampled => "",
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
fn draw(title: &str, rows: &[&CaseSurvey], mean_above: Option<f64>) -> String {
    let height = rows.len() as f64 * PITCH;
    let chart = Chart {
        title: title.to_owned(),
        description: "For each case the Dice of its samples and of its mean prediction.".to_owned(),
        legend: vec![
            Entry::new("sample", SAMPLE, Key::Dot),
            Entry::new("mean prediction", PREDICTION, Key::Stroke(4)),
            Entry::new("95 % quantile of samples", INK, Key::Stroke(2)),
        ],
        panels: vec![dice_panel(rows, height), share_panel(rows, height, mean_above)],
        size: (WIDTH, ABOVE + height + BELOW),
        note: String::new(),
    };
    chart.svg()
}

/// The first row is at the top.
fn row_scale(rows: &[&CaseSurvey]) -> Scale {
    Scale::between(rows.len().max(1) as f64 - 0.5, -0.5)
}

fn dice_panel(rows: &[&CaseSurvey], height: f64) -> Panel {
    let (mut samples, mut predictions, mut quantiles) = (vec![], vec![], vec![]);
    for (place, row) in rows.iter().enumerate() {
        let y = place as f64;
        // Samples of equal Dice lie above each other.
        let aside = |number: usize| 0.08 * ((number % 5) as f64 - 2.0);
        samples.extend(row.samples.iter().enumerate().map(|(i, dice)| (100.0 * dice, y + aside(i))));
        predictions.extend(row.prediction.map(|dice| (100.0 * dice, y)));
        quantiles.extend(quantile(&row.samples, 0.95).ok().flatten().map(|dice| (100.0 * dice, y)));
    }
    let names = rows.iter().enumerate().map(|(place, row)| (place as f64, short(&row.id))).collect();
    Panel {
        frame: Frame { left: LEFT, top: ABOVE, width: SHARE_LEFT - LEFT - 32.0, height },
        x: Axis {
            scale: Scale::between(0.0, 100.0),
            name: "DSC %, higher is better".to_owned(),
            ticks: Ticks::Round,
            guides: true,
            right: false,
        },
        y: Axis { scale: row_scale(rows), ticks: Ticks::At(names), ..Axis::default() },
        marks: vec![
            Mark::FaintDots { points: samples, radius: 3.0, color: SAMPLE },
            Mark::Strokes { points: quantiles, height: 16.0, width: 1.5, color: INK },
            Mark::Strokes { points: predictions, height: 18.0, width: 3.5, color: PREDICTION },
        ],
        ..Panel::default()
    }
}

fn share_panel(rows: &[&CaseSurvey], height: f64, mean_above: Option<f64>) -> Panel {
    let (mut bars, mut labels) = (vec![], vec![]);
    for (place, row) in rows.iter().enumerate() {
        let (y, above) = (place as f64, row.above());
        bars.extend(above.map(|share| Bar { x: [0.0, share], y: [y - 0.3, y + 0.3], tip: String::new() }));
        let text = above.map_or("–".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        labels.push(Mark::Text { at: (1.55, y + 0.22), anchor: Anchor::End, color: INK, text });
    }
    let mut marks = vec![Mark::Bars { bars, color: SHARE, opacity: 1.0 }];
    marks.extend(labels);
    let label = |mean: f64| format!("mean {:.0} %", 100.0 * mean);
    marks.extend(mean_above.map(|x| Mark::Rule { x, color: INK, tip: label(x) }));
    Panel {
        frame: Frame { left: SHARE_LEFT, top: ABOVE, width: SHARE_LENGTH, height },
        // Its name is a line below the numbers of the other panel, which begin too near for a label under a small mean.
        x: Axis {
            name: mean_above.map(label).unwrap_or_default(),
            ticks: Ticks::At(mean_above.map(|mean| (mean, String::new())).into_iter().collect()),
            ..Axis::default()
        },
        y: Axis {
            scale: row_scale(rows),
            name: "samples above the prediction".to_owned(),
            ..Axis::default()
        },
        marks,
        ..Panel::default()
    }
}

/// Shortens a name so that it fits beside the axes: to the end of a long one, where names of cases differ.
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
        let survey = |id: &str, prediction| CaseSurvey {
            id: id.to_owned(),
            prediction,
            samples: vec![0.5, 0.75, 0.875, 1.0],
            ..CaseSurvey::default()
        };
        let (with, without) = (survey("a", Some(0.6)), survey("a very long name of a case <1>", None));
        let rows = [&with, &without];
        let svg = draw("Samples", &rows, Some(0.5));
        assert_eq!(svg.matches("<circle").count(), 2 * 4 + 1);
        assert!(svg.contains(">75 %<") && svg.contains(">–<") && svg.contains("of a case &lt;1&gt;<"));
        // The predictions of one case and of the legend.
        assert_eq!(svg.matches(&PREDICTION.hex()).count(), 2);
        // A bar for the case that has a share, three quarters of the length, and the line of the mean at half of it.
        let width =
            format!("width=\"{:.1}\" height=\"12.0\" fill=\"{}\"", 0.75 * SHARE_LENGTH - 1.0, SHARE.hex());
        assert_eq!((svg.matches(&SHARE.hex()).count(), svg.matches(&width).count()), (1, 1), "{svg}");
        let x = SHARE_LEFT + SHARE_LENGTH / 2.0;
        assert!(svg.contains(&format!("<line x1=\"{x:.1}\"")) && svg.contains(">mean 50 %<"));
        assert!(!draw("Samples", &rows, None).contains("stroke-dasharray"));
        crate::figures::png_from_svg(&svg, 1.0).unwrap();
    }
    #[test]
    fn cases_stand_in_the_order_of_their_ranks() {
        let survey = |(id, rank): (&str, usize)| CaseSurvey {
            id: id.into(),
            rank,
            prediction: Some(0.5),
            ..CaseSurvey::default()
        };
        let (svg, _) =
            dice_drawing("t", PredictionKind::Stochastic, &[("x", 1), ("y", 0)].map(survey)).unwrap();
        assert!(svg.find(">y<").unwrap() < svg.find(">x<").unwrap(), "the better case is higher up");
    }
}
