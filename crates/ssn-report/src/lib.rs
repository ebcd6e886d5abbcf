//! Reports of predictions and runs in one file, and the figures that other programs draw as well.
//!
//! Nothing here computes a score: tables and figures show what `ssn-eval` found.

mod cases;
mod compare;
mod curves;
mod distances;
pub mod figures;
mod gallery;
mod ged_samples;
mod headline;
mod material;
mod output;
mod page;
mod pictures;
mod reliability;
mod sample_dice;
mod scores;
mod steering;
mod table;
mod training;
mod view;
mod volumes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;

use ssn_core::Control;

use headline::HeadlineScores;
use material::{CaseDistances, CaseSurvey, PredictionSet, survey};
pub use output::ReportFiles;
use output::{Drawn, Report};
use sample_dice::sample_dice;
use scores::ReadEvaluation;
pub use ssn_args::ReportConfig;
use ssn_eval::metrics_file::METRICS_FILE;
use ssn_eval::predictions::{ABOUT_FILE, Predictions};
use ssn_eval::registry;
use ssn_io::{Error, Result};
pub use training::training_picture;
use training::{CONFIG_FILE, RunCurves};

/// Makes the report.
///
/// # Errors
/// A sentence for a folder that is none of ours or cannot be read, and for a report that is there already.
pub fn report(config: &ReportConfig, control: Control<'_>) -> Result<ReportFiles> {
    let sources = Sources::open(&config.paths)?;
    let out = config.out.clone().unwrap_or_else(|| default_out(&config.paths));
    let mut report = Report::new(out, &title(&sources), config.overwrite)?;
    let runs = sources.runs;
    let open = |(name, predictions)| {
        PredictionSet::open(name, predictions, config.data.as_deref(), config.samples, config.seed)
    };
    let materials = sources.predictions.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    match materials.as_slice() {
        [] => {}
        [one] => one_folder(&mut report, one, config, control)?,
        many => several_folders(&mut report, many, config, control)?,
    }
    if !runs.is_empty() {
        let steps = |run: &RunCurves| format!("{}, {} steps", run.name, run.steps().unwrap_or(0.0));
        let told: Vec<String> = runs.iter().map(steps).collect();
        report.page.fact(if told.len() == 1 { "run" } else { "runs" }, &told.join("; "));
        // Beside predictions, how a network was trained comes last.
        match materials.is_empty() {
            true => report.page.section("Training"),
            false => report.page.folded("Training"),
        }
        match training::figures(&runs) {
            none if none.is_empty() => report.page.paragraph("Nothing was measured yet."),
            figures => report.show(figures),
        }
    }
    report.write(control)
}

fn one_folder(
    report: &mut Report,
    material: &PredictionSet,
    config: &ReportConfig,
    control: Control<'_>,
) -> Result<()> {
    head(report, material);
    let scores = ReadEvaluation::read(&material.predictions)?;
    let mut surveys = survey(material, control)?;
    cases::rank(&mut surveys, scores.as_ref());
    report.page.headline(HeadlineScores::of(material, scores.as_ref(), &surveys).cards());
    if scores.is_none() {
        report.page.paragraph(&format!(
            "These predictions were not scored yet: the numbers above are of the samples of this report. Run `ssn evaluate {}`, \
             and then the report again.",
            material.predictions.root().display()
        ));
    }
    typical_case(report, material, &surveys)?;
    missing_data(report, material, control);
    let chosen = cases::choose(&surveys, config.cases);
    if let Some(scores) = &scores {
        report.page.list(&scores.evaluation.verdict);
        if let Some(table) = scores.mask_table() {
            report.page.section("Classes");
            report.page.table(table);
        }
    }
    case_table(report, material, scores.as_ref(), &surveys, &chosen);
    cases::chosen(report, material, &surveys, &chosen, scores.as_ref(), control)?;
    scores.iter().for_each(|scores| all_scores(report, scores));
    scores::show_figures(report, &[(&material.name, scores.as_ref().map(|scores| &scores.evaluation))]);
    sample_dice(report, slice::from_ref(material), slice::from_ref(&surveys));
    Ok(())
}

fn several_folders(
    report: &mut Report,
    materials: &[PredictionSet],
    config: &ReportConfig,
    control: Control<'_>,
) -> Result<()> {
    let scores = materials
        .iter()
        .map(|material| ReadEvaluation::read(&material.predictions))
        .collect::<Result<Vec<_>, _>>()?;
    let mut surveys =
        materials.iter().map(|material| survey(material, control)).collect::<Result<Vec<_>, _>>()?;
    // All folders have their cases in the order of the first.
    if let [first, others @ ..] = surveys.as_mut_slice() {
        cases::rank(first, scores.first().and_then(Option::as_ref));
        others.iter_mut().for_each(|surveys| cases::rank_like(surveys, first));
    }
    let all_unscored = scores.iter().all(Option::is_none);
    let headline =
        |((material, scores), surveys): ((&PredictionSet, &Option<ReadEvaluation>), &Vec<CaseSurvey>)| {
            let headline = HeadlineScores::of(material, scores.as_ref(), surveys);
            let is_comparable = scores.is_some() || all_unscored;
            (material.name.clone(), if is_comparable { headline } else { headline.not_compared() })
        };
    let networks: Vec<(String, HeadlineScores)> =
        materials.iter().zip(&scores).zip(&surveys).map(headline).collect();
    report.page.table(headline::table(&networks));
    let samples = |(material, scores): (&PredictionSet, &Option<ReadEvaluation>)| {
        scores.as_ref().and_then(ReadEvaluation::samples).unwrap_or_else(|| material.sample_count())
    };
    let counts: Vec<(&str, usize)> =
        materials.iter().zip(&scores).map(|both| (both.0.name.as_str(), samples(both))).collect();
    headline::sample_counts(&counts).iter().for_each(|told| report.page.paragraph(told));
    let unscored = materials.iter().zip(&scores).filter(|(_, scores)| scores.is_none());
    let unscored: Vec<&str> = unscored.map(|(material, _)| material.name.as_str()).collect();
    if !unscored.is_empty() {
        report.page.paragraph(&format!(
            "Not scored yet, so that the numbers are of the samples of this report: {}. Run `ssn evaluate` on the folder, and then \
             the report again.",
            unscored.join(", ")
        ));
    }
    compare::compare(report, materials, &scores, &surveys, config.cases, control)?;
    materials.iter().for_each(|material| missing_data(report, material, control));
    Ok(())
}

fn head(report: &mut Report, material: &PredictionSet) {
    let (about, page) = (material.predictions.about(), &mut report.page);
    page.fact("predictions", &material.name);
    page.fact("model", &about.model.name);
    page.fact("network", &material.network());
    page.fact("part", &about.split);
    page.fact("cases", &material.found.len().to_string());
    page.fact("classes", &material.classes().join(", "));
    page.fact("dataset", &about.dataset);
}

/// One strip of the case in the middle of all.
fn typical_case(report: &mut Report, material: &PredictionSet, surveys: &[CaseSurvey]) -> Result<()> {
    let Some(index) = cases::typical(surveys) else { return Ok(()) };
    let subject = material.read(index, true)?;
    let svg = pictures::lead(material, &subject, &CaseDistances::of(&subject)?.distances)?;
    let id = &surveys[index].id;
    let caption = format!(
        "{} Below samples, the share of all {} that look like this one. Entropy from 0, light, to 1, dark.",
        cases::typical_words(surveys, id),
        subject.samples.len()
    );
    report.show(vec![Drawn { name: "typical-case".to_owned(), svg, caption }]);
    Ok(())
}

/// Says that there is no dataset, and why.
fn missing_data(report: &mut Report, material: &PredictionSet, control: Control<'_>) {
    let Some(note) = &material.note else { return };
    let what = format!("Images and raters of {} are left out", material.name);
    control.message(&format!("{what}: {note}"));
    report
        .page
        .note(&format!("{what}, because the dataset cannot be opened: {note}. Name it with `--data`."));
}

/// The cases with their scores, from where a click leads to pictures and to the viewer.
fn case_table(
    report: &mut Report,
    material: &PredictionSet,
    scores: Option<&ReadEvaluation>,
    surveys: &[CaseSurvey],
    chosen: &[cases::Chosen],
) {
    report.page.section("Cases");
    let linked = |id: &str| {
        let is_pictured = chosen.iter().any(|one| surveys[one.index].id == id);
        is_pictured.then(|| cases::anchor(id))
    };
    let view = |id: &str| cases::view_line(material.predictions.root(), id);
    if let Some(table) = scores.and_then(|scores| scores.case_table(surveys, linked, view)) {
        report.page.paragraph(
            "Means over the raters of a case. A click on a heading sorts by that column; a case that is a link has pictures below; \
             the button copies the line that opens the case in the viewer.",
        );
        report.page.table(table);
    }
}

fn all_scores(report: &mut Report, scores: &ReadEvaluation) {
    let settings = &scores.evaluation.settings.scores;
    report.page.folded("All scores");
    report.page.paragraph(&format!(
        "Means over cases, or over pairs of a case and a rater, with their standard errors: {} samples of each case, seed {}. {} \
         Diversities are of all pairs, those of a map with itself as well, as in the paper; at the top of the page they are of \
         different ones, so that few raters can be compared with many samples.",
        settings.samples,
        settings.seed,
        registry::directions()
    ));
    report.page.table(scores.summary_table());
}

fn title(sources: &Sources) -> String {
    match (sources.predictions.as_slice(), sources.runs.as_slice()) {
        ([(_, one)], _) => format!("{} on {}", one.about().model.name, one.about().split),
        ([], [run]) => format!("Run {}", run.name),
        ([], runs) => format!("{} runs", runs.len()),
        (many, _) => format!("{} sets of predictions", many.len()),
    }
}

/// In the folder that is shown; of several, beside the first.
fn default_out(paths: &[PathBuf]) -> PathBuf {
    match paths {
        [one] => one.join("report"),
        many => many.first().and_then(|path| path.parent()).unwrap_or(Path::new("")).join("report"),
    }
}

/// All that is to be shown, in the order in which it was named.
#[derive(Debug, Default)]
struct Sources {
    /// Folders of predictions, each with a name of its own.
    predictions: Vec<(String, Predictions)>,
    /// Runs, each with a name of its own.
    runs: Vec<RunCurves>,
}

impl Sources {
    /// Opens every folder.
    fn open(paths: &[PathBuf]) -> Result<Self> {
        let (mut predictions, mut runs) = (vec![], vec![]);
        for path in paths {
            if path.join(ABOUT_FILE).is_file() {
                predictions.push(path.clone());
            } else if path.join(CONFIG_FILE).is_file() && path.join(METRICS_FILE).is_file() {
                runs.push(path.clone());
            } else {
                return Err(unknown(path));
            }
        }
        let mut sources = Self::default();
        for (path, name) in predictions.iter().zip(names(&predictions)) {
            sources.predictions.push((name, Predictions::open(path)?));
        }
        for (path, name) in runs.iter().zip(names(&runs)) {
            sources.runs.push(RunCurves::read(path, name)?);
        }
        Ok(sources)
    }
}

fn unknown(path: &Path) -> Error {
    if !path.exists() {
        return Error::io(path, std::io::Error::new(std::io::ErrorKind::NotFound, "it does not exist"));
    }
    let message = format!(
        "{} is neither a folder of predictions, for it has no {ABOUT_FILE}, nor one of a run, for it lacks \
         {CONFIG_FILE} or {METRICS_FILE}; name what `ssn predict` or `ssn train` wrote",
        path.display()
    );
    Error::mismatch(message)
}

/// As many of the last parts of each path as it takes to tell all from each other.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|path| whole(path).iter().map(|part| part.to_string_lossy().into_owned()).collect())
        .collect();
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
    let named = |count: usize| -> Vec<String> {
        parts.iter().map(|parts| parts[parts.len().saturating_sub(count)..].join("/")).collect()
    };
    let differ = |names: &[String]| {
        let unique: BTreeSet<&String> = names.iter().collect();
        unique.len() == names.len()
    };
    // The same folder named twice stays the same.
    (1..=longest).map(named).find(|names| differ(names)).unwrap_or_else(|| named(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let paths = ["x/a/seed0", "x/b/seed0", "x/b/seed1/"].map(PathBuf::from);
        assert_eq!(names(&paths), ["a/seed0", "b/seed0", "b/seed1"]);
        assert_eq!(names(&paths[1..]), ["seed0", "seed1"]);
        assert_eq!(names(&[PathBuf::from("a"), PathBuf::from("a")]), ["a", "a"]);
    }
}
