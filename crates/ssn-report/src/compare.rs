//! Several folders of predictions side by side: scores in one table, and samples of the same cases below each other.

use std::collections::BTreeMap;

use ssn_core::{Control, LabelMap};

use crate::cases::{self, Chosen, choose};
use crate::figures::svg::INK;
use crate::figures::{ColumnGroup, Entry, Key, Picture, PictureTile, Sheet, SheetRow};
use crate::gallery::{self, GALLERY};
use crate::material::{CaseDistances, CaseSurvey, LoadedCase, PredictionSet};
use crate::output::{Drawn, Report};
use crate::pictures::{self, COLUMNS, truth};
use crate::sample_dice::sample_dice;
use crate::scores::{ReadEvaluation, grouped, show_figures, with_error};
use crate::table::{Cell, Row, Table};
use crate::view::View;
use ssn_eval::evaluation::{Evaluation, ScoreMean};
use ssn_eval::predictions::PredictionKind;
use ssn_eval::registry::directions;
use ssn_io::Result;

/// Letters of a line that have room beside the pictures.
const LINE: usize = 15;

pub(crate) fn compare(
    report: &mut Report,
    materials: &[PredictionSet],
    scored: &[Option<ReadEvaluation>],
    surveys: &[Vec<CaseSurvey>],
    count: usize,
    control: Control<'_>,
) -> Result<()> {
    same_cases(report, materials, surveys, count, control)?;
    report.page.folded("Predictions");
    report.page.table(folders(materials));
    report.page.folded("All scores");
    match score_table(materials, scored) {
        Some(table) => {
            report.page.paragraph(&format!(
                "Means with standard errors, as `ssn evaluate` found them. {}",
                directions()
            ));
            report.page.table(table);
        }
        None => report
            .page
            .paragraph("None of these predictions was scored yet: run `ssn evaluate` on each folder."),
    }
    let evaluations: Vec<(&str, Option<&Evaluation>)> = materials
        .iter()
        .zip(scored)
        .map(|(material, scores)| (material.name.as_str(), scores.as_ref().map(|scores| &scores.evaluation)))
        .collect();
    show_figures(report, &evaluations);
    sample_dice(report, materials, surveys);
    Ok(())
}

fn folders(materials: &[PredictionSet]) -> Table {
    let row = |material: &PredictionSet| {
        let about = material.predictions.about();
        let count = material.found.len();
        Row::Cells(vec![
            Cell::name(&material.name),
            Cell::name(&about.model.name),
            Cell::name(&material.network()),
            Cell::name(&about.split),
            Cell::number(Some(count as f64), |n| n.to_string()),
        ])
    };
    let columns = ["predictions", "model", "network", "part", "cases"].map(str::to_owned).to_vec();
    let rows = materials.iter().map(row).collect();
    Table { caption: "The predictions that are compared".to_owned(), columns, rows, sortable: true }
}

/// A row per score and a column per folder; nothing where no folder was scored.
fn score_table(materials: &[PredictionSet], scores: &[Option<ReadEvaluation>]) -> Option<Table> {
    let mut figures: Vec<&ScoreMean> = vec![];
    for figure in scores.iter().flatten().flat_map(|scores| &scores.evaluation.figures) {
        // Scores that only some folders have stand where their neighbors do.
        if figures.iter().all(|known| known.key != figure.key) {
            let place = figures.iter().rposition(|known| known.group == figure.group);
            figures.insert(place.map_or(figures.len(), |place| place + 1), figure);
        }
    }
    if figures.is_empty() {
        return None;
    }
    let rows = grouped(figures.into_iter(), |figure| {
        let cell = |scores: &Option<ReadEvaluation>| {
            let own = scores.as_ref().and_then(|scores| scores.evaluation.figure(&figure.key));
            with_error(own, figure.unit)
        };
        let mut cells = vec![Cell::name(&figure.title)];
        cells.extend(scores.iter().map(cell));
        cells
    });
    let mut columns = vec!["score".to_owned()];
    columns.extend(materials.iter().map(|material| material.name.clone()));
    let caption = "Scores of all predictions".to_owned();
    Some(Table { caption, columns, rows, sortable: false })
}

/// Cases that all folders have, each with a row of samples per folder.
fn same_cases(
    report: &mut Report,
    materials: &[PredictionSet],
    surveys: &[Vec<CaseSurvey>],
    count: usize,
    control: Control<'_>,
) -> Result<()> {
    let places: Vec<BTreeMap<&str, usize>> = materials
        .iter()
        .map(|material| material.found.iter().enumerate().map(|(i, found)| (found.id(), i)).collect())
        .collect();
    let common: Vec<CaseSurvey> = surveys[0]
        .iter()
        .filter(|survey| places.iter().all(|places| places.contains_key(survey.id.as_str())))
        .cloned()
        .collect();
    let chosen = choose(&common, count);
    let read = |id: &str| -> Result<Compared> {
        let subjects = materials.iter().zip(&places);
        let subjects = subjects.map(|(material, places)| material.read(places[id], true));
        Compared::new(subjects.collect::<Result<Vec<_>, _>>()?)
    };
    if let Some(index) = cases::typical(&common) {
        let id = &common[index].id;
        let svg = drawing(materials, &read(id)?, id);
        let caption = format!(
            "{} Cases are ordered by {}. Below samples, the share of all that look like this one.",
            cases::typical_words(&common, id),
            materials[0].name
        );
        report.show(vec![Drawn { name: "typical-case".to_owned(), svg, caption }]);
    }
    if common.is_empty() {
        report.page.section("Cases");
        report.page.paragraph("There is no case that all of these predictions are of.");
    }
    if chosen.is_empty() {
        return Ok(());
    }
    report.page.section("Cases");
    report.page.paragraph(&format!(
        "The same cases in all predictions, chosen by {}: the most ambiguous, the worst and the best, and others evenly between \
         them. Of each network its mean prediction and samples. {GALLERY}",
        materials[0].name
    ));
    let phase = control.phase("drawing", chosen.len(), "cases");
    let (mut rows, mut details) = (vec![], vec![]);
    for Chosen { index, why } in chosen {
        let id = &common[index].id;
        let compared = read(id)?;
        rows.push(SheetRow {
            title: format!("{id} · {why}"),
            label: String::new(),
            tiles: row(materials, &compared)?,
        });
        let svg = drawing(materials, &compared, id);
        let numbers = |(material, surveys): (&PredictionSet, &Vec<CaseSurvey>)| {
            let survey = surveys.iter().find(|survey| survey.id == *id)?;
            let ged = survey.ged.map_or(String::new(), |ged| format!("GED² {ged:.3}, "));
            Some(format!("{}: {ged}diversity of samples {:.3}", material.name, survey.sample_diversity))
        };
        let caption: Vec<String> = materials.iter().zip(surveys).filter_map(numbers).collect();
        let drawn = Drawn {
            name: format!("{id}-comparison"),
            svg,
            caption: format!("Of the samples of this report, {}.", caption.join("; ")),
        };
        details.push((id, why, drawn));
        phase.advance(1, id);
    }
    report.show(vec![in_rows(materials, rows)]);
    for (id, why, drawn) in details {
        report.page.part(&cases::anchor(id), &format!("{id} · {why}"));
        for material in materials {
            report.page.command(&cases::view_line(material.predictions.root(), id));
        }
        report.show(vec![drawn]);
    }
    Ok(())
}

/// Draws all cases below each other, each in one row.
fn in_rows(materials: &[PredictionSet], rows: Vec<SheetRow>) -> Drawn {
    let group = |name: &str, columns: &[&str]| ColumnGroup {
        name: name.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
    };
    let networks = materials.iter().map(|one| group(&one.name, &["prediction", "entropy", "sample"]));
    let mut legend = pictures::class_legend(materials[0].classes());
    legend.push(Entry::new("entropy, 0 to 1", INK, Key::Shades));
    let mut caption = "A row per case: the image, the contours of all its raters, and of each network the mean prediction, the entropy \
                       of its marginal probabilities, and its most typical sample, the one nearest to all others."
        .to_owned();
    if materials.iter().any(|material| material.kind() == PredictionKind::Deterministic) {
        caption += " Samples of a deterministic network draw every voxel by itself.";
    }
    let sheet = Sheet {
        title: "Prediction, entropy and a typical sample of each network".to_owned(),
        description:
            "Image and raters of several cases, and of each network prediction, entropy and a sample."
                .to_owned(),
        legend,
        columns: [group("given", &["image", "raters"])].into_iter().chain(networks).collect(),
        rows,
    };
    Drawn { name: "networks".to_owned(), svg: sheet.svg(), caption }
}

/// Returns the pictures of a case in its row: image and raters, and prediction, entropy and a typical sample of each network.
fn row(
    materials: &[PredictionSet],
    Compared { subjects, views, measured }: &Compared,
) -> Result<Vec<Option<PictureTile>>> {
    let (first, view) = (&subjects[0], &views[0]);
    let tile = |picture: Picture, empty: bool| PictureTile {
        picture,
        caption: if empty { "empty".to_owned() } else { String::new() },
    };
    let image = first.image.as_deref().map(|image| tile(view.image(Some(image), view.slice), false));
    let is_empty = |map: &LabelMap| map.labels().iter().all(|label| *label == 0);
    let truth = truth(first, view).map(|picture| tile(picture, first.raters.iter().all(is_empty)));
    let mut pictures = vec![image, truth];
    for (((material, subject), view), measured) in materials.iter().zip(subjects).zip(views).zip(measured) {
        let labels =
            |map: &LabelMap| tile(view.labels(subject.image.as_deref(), map, view.slice), is_empty(map));
        let entropy = view.heat(&pictures::entropy(material, subject)?, view.slice);
        let typical = labels(&subject.samples[gallery::typical(&measured.distances)]);
        pictures.extend([labels(&subject.prediction), tile(entropy, false), typical].map(Some));
    }
    Ok(pictures)
}

/// A case in all folders.
struct Compared {
    subjects: Vec<LoadedCase>,
    views: Vec<View>,
    measured: Vec<CaseDistances>,
}

impl Compared {
    fn new(subjects: Vec<LoadedCase>) -> Result<Self> {
        let views = views(&subjects);
        let measured = subjects.iter().map(CaseDistances::of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { subjects, views, measured })
    }
}

/// The view of each folder: a common one for all whose images have the size of the first.
fn views(subjects: &[LoadedCase]) -> Vec<View> {
    let shared = pictures::view(subjects);
    let size = subjects[0].file.description().size;
    let own = |subject: &LoadedCase| match subject.file.description().size == size {
        true => shared.clone(),
        false => pictures::view(std::slice::from_ref(subject)),
    };
    subjects.iter().map(own).collect()
}

/// One case: image and raters, and a row per folder.
fn drawing(
    materials: &[PredictionSet],
    Compared { subjects, views, measured }: &Compared,
    id: &str,
) -> String {
    let mut strips = pictures::given(&subjects[0], &views[0]);
    for (((material, subject), view), measured) in materials.iter().zip(subjects).zip(views).zip(measured) {
        let image = subject.image.as_deref();
        let tile = |map: &LabelMap, caption: String| {
            let picture = view.labels(image, map, view.slice);
            PictureTile { picture, caption }
        };
        let mut tiles = vec![tile(&subject.prediction, "mean prediction".to_owned())];
        tiles.extend(gallery::tiles(subject, view, &gallery::groups(&measured.distances, COLUMNS - 1)));
        let mut label = lines(&material.name);
        if material.kind() == PredictionKind::Deterministic {
            label += "\n(voxels drawn\none by one)";
        }
        strips.push(SheetRow::labeled(label, tiles));
    }
    let description = format!("Image and raters of case {id}, and predictions and samples of each network.");
    pictures::drawing(id, &description, materials[0].classes(), strips)
}

/// A name in lines that have room, broken where its parts end if that is possible.
fn lines(name: &str) -> String {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(['-', '_', '/', ' ', '.']) {
        for letters in part.chars().collect::<Vec<_>>().chunks(LINE) {
            let fits = lines.last().is_some_and(|line| line.chars().count() + letters.len() <= LINE);
            if !fits {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.extend(letters);
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_become_lines() {
        assert_eq!(lines("low-rank"), "low-rank");
        assert_eq!(lines("predictions/low-rank-10"), "predictions/\nlow-rank-10");
        assert_eq!(lines(&"x".repeat(20)), format!("{}\n{}", "x".repeat(15), "x".repeat(5)));
    }
}
