//! The part of a report about single cases.

use crate::error::Result;
use crate::figures::sample_dice::{Row, sample_dice_figure};
use crate::predictions::Kind;
use ssn_core::{OnProgress, Phase};

use super::choose::{Chosen, diverse};
use super::material::Material;
use super::measures::Measured;
use super::output::{Drawn, Report};
use super::pictures::{self, COLUMNS};
use super::steering::{Steered, impossible};
use super::survey::Survey;

/// Cases in the figure of sample Dice at most; more are taken evenly.
const MOST_ROWS: usize = 80;
/// Cases whose samples are steered: the first of those chosen.
const STEERED: usize = 3;

/// What the figure of sample Dice shows.
pub(super) const DICE: &str = "Of every case, the Dice of its samples and of its mean prediction, as means over its raters, with \
                               all foreground classes as one mask. A sample right of the bar is better than the prediction.";

/// The Dice of the samples of all cases.
pub(super) fn sample_dice(report: &mut Report, material: &Material, surveys: &[Survey]) {
    let title = "DSC of samples, case by case";
    let Some((svg, caption)) = dice_drawing(title, material.kind(), surveys) else { return };
    report.page.section("How good the samples are");
    report.page.paragraph(DICE);
    report.show(vec![Drawn { name: "sample-dice".to_owned(), svg, caption }]);
}

/// The drawing, from the best prediction to the worst, and what it says over all cases; nothing without raters.
pub(super) fn dice_drawing(title: &str, kind: Kind, surveys: &[Survey]) -> Option<(String, String)> {
    let mut rows: Vec<Row> = surveys.iter().filter_map(Survey::row).collect();
    if rows.is_empty() {
        return None;
    }
    rows.sort_by(|a, b| b.prediction.unwrap_or(-1.0).total_cmp(&a.prediction.unwrap_or(-1.0)));
    let all = rows.len();
    if all > MOST_ROWS {
        rows = (0..MOST_ROWS).map(|i| rows[i * (all - 1) / (MOST_ROWS - 1)].clone()).collect();
    }
    let shares: Vec<f64> = surveys.iter().filter_map(|survey| survey.row()?.above).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let above = if shares.is_empty() {
        String::new()
    } else {
        format!("Over all cases, {:.0} % of the samples are better than the mean prediction.", 100.0 * mean)
    };
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
    Some((sample_dice_figure(title, &rows), caption))
}

/// The pictures and measures of the chosen cases.
pub(super) fn chosen(
    report: &mut Report,
    material: &Material,
    surveys: &[Survey],
    chosen: &[Chosen],
    progress: OnProgress<'_>,
) -> Result<()> {
    if chosen.is_empty() {
        return Ok(());
    }
    report.page.section("Cases");
    report.page.paragraph(
        "The most ambiguous case, the worst and the best, and others evenly between them. Worse is a larger GED² of the \
         samples shown here, more ambiguous is a larger distance between raters, or between samples where there is one rater.",
    );
    let unsteerable = impossible(material.kind());
    unsteerable.into_iter().for_each(|sentence| report.page.paragraph(sentence));
    let steered = if unsteerable.is_some() { 0 } else { STEERED };
    let phase = Phase::new(progress, chosen.len(), "cases with pictures");
    for (place, one) in chosen.iter().enumerate() {
        let id = material.found[one.index].id();
        phase.current(id);
        case(report, material, &surveys[one.index], *one, place < steered)?;
        phase.advance(1, id);
    }
    Ok(())
}

fn case(
    report: &mut Report,
    material: &Material,
    survey: &Survey,
    Chosen { index, why }: Chosen,
    steered: bool,
) -> Result<()> {
    let subject = material.pictured(index)?;
    let id = &survey.id;
    report.page.part(&format!("{id} · {why}"));
    report.page.paragraph(&facts(survey));
    let measured = Measured::of(&subject)?;
    let view = pictures::view(&subject);
    let mut caption =
        "Samples are chosen to differ: the most typical one first, then always the one farthest from those before. \
         Entropy from 0, light, to 1, dark."
            .to_owned();
    if subject.file.description().size[0] > 1 {
        caption += &format!(" Slice {}, which has most marked voxels.", view.slice);
    }
    let samples = diverse(&measured.distances, COLUMNS);
    let svg = pictures::overview(material, &subject, &view, &samples)?;
    report.show(vec![Drawn { name: format!("{id}-pictures"), svg, caption }]);
    report.show(vec![
        Drawn {
            name: format!("{id}-volumes"),
            svg: measured.volumes(&subject),
            caption: "Volumes of the samples; those of raters should lie among them.".to_owned(),
        },
        Drawn {
            name: format!("{id}-distances"),
            svg: measured.matrix(id),
            caption: "Distances 1 − IoU of all pairs; samples that are alike are neighbors. Where a rater's column is light \
                      somewhere, a sample found what this rater marked."
                .to_owned(),
        },
    ]);
    if steered {
        let samples = [samples[0], measured.lively()?];
        let strips = Steered { material, subject: &subject, view: &view, samples };
        strips.figures()?.into_iter().for_each(|drawn| report.show(vec![drawn]));
    }
    Ok(())
}

/// A sentence of numbers.
fn facts(survey: &Survey) -> String {
    let mut facts = vec![];
    facts.extend(survey.ged.map(|ged| format!("GED² {ged:.3}")));
    facts.push(format!("diversity of samples {:.3}", survey.sample_diversity));
    facts.extend(survey.rater_diversity.map(|diversity| format!("of raters {diversity:.3}")));
    facts.extend(survey.prediction.map(|dice| format!("DSC of the prediction {:.1} %", 100.0 * dice)));
    let above = survey.row().and_then(|row| row.above);
    facts.extend(above.map(|share| format!("{:.0} % of samples above it", 100.0 * share)));
    facts.join(", ") + "."
}
