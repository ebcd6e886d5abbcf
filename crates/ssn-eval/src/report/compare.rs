//! Several folders of predictions side by side: scores in one table, and samples of the same cases below each other.

use std::collections::BTreeMap;

use ssn_core::{LabelMap, OnProgress, Phase};

use super::cases::{self, Chosen, choose, diverse};
use super::material::{Material, Measured, Subject, Survey, survey};
use super::output::{Drawn, Report};
use super::pictures::{self, COLUMNS, View};
use super::scores::{DIRECTIONS, Scores, grouped};
use crate::error::Result;
use crate::evaluation::Figure;
use crate::figures::html::{Cell, Row, Table};
use crate::figures::{Strip, Tile};
use crate::predictions::Kind;

/// Letters of a line that have room beside the pictures.
const LINE: usize = 15;

pub(super) fn compare(
    report: &mut Report,
    materials: &[Material],
    count: usize,
    progress: OnProgress<'_>,
) -> Result<()> {
    report.page.section("Predictions");
    report.page.table(&folders(materials));
    report.page.section("Scores");
    match scores(materials)? {
        Some(table) => {
            report.page.paragraph(&format!(
                "Means with standard errors, as `ssn evaluate` found them. {DIRECTIONS}"
            ));
            report.page.table(&table);
        }
        None => report
            .page
            .paragraph("None of these predictions was scored yet: run `ssn evaluate` on each folder."),
    }
    let surveys =
        materials.iter().map(|material| survey(material, progress)).collect::<Result<Vec<_>, _>>()?;
    let figures: Vec<Drawn> = materials
        .iter()
        .zip(&surveys)
        .filter_map(|(material, surveys)| {
            let title = format!("DSC of samples, {}", material.name);
            let (svg, caption) = cases::dice_drawing(&title, material.kind(), surveys)?;
            Some(Drawn { name: format!("{}-sample-dice", material.name), svg, caption })
        })
        .collect();
    if !figures.is_empty() {
        report.page.section("How good the samples are");
        report.page.paragraph(cases::DICE);
        figures.into_iter().for_each(|figure| report.show(vec![figure]));
    }
    same_cases(report, materials, &surveys, count, progress)
}

fn folders(materials: &[Material]) -> Table {
    let row = |material: &Material| {
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
fn scores(materials: &[Material]) -> Result<Option<Table>> {
    let scores = materials
        .iter()
        .map(|material| Scores::read(&material.predictions))
        .collect::<Result<Vec<_>, _>>()?;
    let mut figures: Vec<&Figure> = vec![];
    for figure in scores.iter().flatten().flat_map(|scores| &scores.evaluation.figures) {
        // Scores that only some folders have stand where their neighbors do.
        if figures.iter().all(|known| known.key != figure.key) {
            let place = figures.iter().rposition(|known| known.group == figure.group);
            figures.insert(place.map_or(figures.len(), |place| place + 1), figure);
        }
    }
    if figures.is_empty() {
        return Ok(None);
    }
    let rows = grouped(figures.into_iter(), |figure| {
        let cell = |scores: &Option<Scores>| {
            let own = scores.as_ref().and_then(|scores| scores.evaluation.figure(&figure.key));
            let shown = |value: Option<f64>| Cell::number(value, |x| figure.unit.shown(x));
            let mut cell = shown(own.and_then(|own| own.mean));
            if let Some(error) = own.and_then(|own| own.standard_error) {
                cell.text += &format!(" ± {}", shown(Some(error)).text);
            }
            cell
        };
        let mut cells = vec![Cell::name(&figure.title)];
        cells.extend(scores.iter().map(cell));
        cells
    });
    let mut columns = vec!["score".to_owned()];
    columns.extend(materials.iter().map(|material| material.name.clone()));
    let caption = "Scores of all predictions".to_owned();
    Ok(Some(Table { caption, columns, rows, sortable: false }))
}

/// Cases that all folders have, each with a row of samples per folder.
fn same_cases(
    report: &mut Report,
    materials: &[Material],
    surveys: &[Vec<Survey>],
    count: usize,
    progress: OnProgress<'_>,
) -> Result<()> {
    let places: Vec<BTreeMap<&str, usize>> = materials
        .iter()
        .map(|material| material.found.iter().enumerate().map(|(i, found)| (found.id(), i)).collect())
        .collect();
    let common: Vec<Survey> = surveys[0]
        .iter()
        .filter(|survey| places.iter().all(|places| places.contains_key(survey.id.as_str())))
        .cloned()
        .collect();
    let chosen = choose(&common, count);
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
         them. Of each network its mean prediction, and samples that differ: the most typical one first, then always the one \
         farthest from those before.",
        materials[0].name
    ));
    let phase = Phase::new(progress, "drawing", chosen.len(), "cases");
    for Chosen { index, why } in chosen {
        let id = &common[index].id;
        let subjects = materials
            .iter()
            .zip(&places)
            .map(|(material, places)| material.read(places[id.as_str()], true))
            .collect::<Result<Vec<_>, _>>()?;
        report.page.part(&format!("{id} · {why}"));
        let svg = drawing(materials, &subjects, id)?;
        let numbers = |(material, surveys): (&Material, &Vec<Survey>)| {
            let survey = surveys.iter().find(|survey| survey.id == *id)?;
            let ged = survey.ged.map_or(String::new(), |ged| format!("GED² {ged:.3}, "));
            Some(format!("{}: {ged}diversity of samples {:.3}", material.name, survey.sample_diversity))
        };
        let caption: Vec<String> = materials.iter().zip(surveys).filter_map(numbers).collect();
        report.show(vec![Drawn {
            name: format!("{id}-comparison"),
            svg,
            caption: format!("Of the samples of this report, {}.", caption.join("; ")),
        }]);
        phase.advance(1, id);
    }
    Ok(())
}

/// One case: image and raters, and a row per folder.
fn drawing(materials: &[Material], subjects: &[Subject], id: &str) -> Result<String> {
    let view = shared_view(subjects);
    let mut strips = pictures::given(&subjects[0], &view);
    for (material, subject) in materials.iter().zip(subjects) {
        let fits = subject.file.description().size == subjects[0].file.description().size;
        let view = if fits { view.clone() } else { pictures::view(subject) };
        let image = subject.image.as_deref();
        let tile = |map: &LabelMap, caption: String| {
            let picture = view.labels(image, map, view.slice);
            Tile { picture, caption }
        };
        let distances = Measured::of(subject)?.distances;
        let mut tiles = vec![tile(&subject.prediction, "mean prediction".to_owned())];
        let samples = diverse(&distances, COLUMNS - 1);
        tiles.extend(samples.iter().map(|&i| tile(&subject.samples[i], format!("sample {i}"))));
        let mut label = lines(&material.name);
        if material.kind() == Kind::Deterministic {
            label += "\n(voxels drawn\none by one)";
        }
        strips.push(Strip { label, tiles });
    }
    let description = format!("Image and raters of case {id}, and predictions and samples of each network.");
    Ok(pictures::drawing(id, &description, materials[0].classes(), strips))
}

/// A view that suits all folders whose images have the same size.
fn shared_view(subjects: &[Subject]) -> View {
    let about = subjects[0].file.description();
    let same = || subjects.iter().filter(|subject| subject.file.description().size == about.size);
    let raters: Vec<&LabelMap> = subjects[0].raters.iter().collect();
    let mut others: Vec<&LabelMap> = same().map(|subject| &subject.prediction).collect();
    let distributed = same().filter(|subject| subject.file.description().kind != Kind::Deterministic);
    others.extend(distributed.flat_map(|subject| &subject.samples));
    View::new(about, &raters, &others).with_contrast_of(subjects[0].image.as_deref())
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
