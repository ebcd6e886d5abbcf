//! Reports: what predictions and runs have to show, in one file.

mod cases;
mod choose;
mod compare;
mod material;
mod measures;
mod output;
mod pictures;
mod scores;
mod source;
mod steering;
mod survey;
mod training;
mod view;

use std::path::{Path, PathBuf};

use ssn_core::{OnProgress, Progress};

use crate::predictions::Kind;

use crate::error::Result;
use material::Material;
use output::Report;
pub use output::ReportFiles;
use scores::Scores;
use source::Sources;
use training::Run;

/// What is shown, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportConfig {
    /// Folders of predictions, and of runs.
    pub paths: Vec<PathBuf>,
    /// The folder to write to; without it, `report` in the folder, or beside the first of several.
    pub out: Option<PathBuf>,
    /// How many cases get pictures.
    pub cases: usize,
    /// Samples of each case that figures are made of.
    pub samples: usize,
    /// The seed of the samples.
    pub seed: u64,
    /// The folder or file of the dataset, or a config that names it; without it, what was predicted.
    pub data: Option<PathBuf>,
    /// Replace a report that is there already.
    pub overwrite: bool,
}

impl ReportConfig {
    /// Six cases with pictures of 20 samples.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, out: None, cases: 6, samples: 20, seed: 0, data: None, overwrite: false }
    }
}

/// Makes the report.
///
/// # Errors
/// A sentence for a folder that is none of ours or cannot be read, and for a report that is there already.
pub fn report(config: &ReportConfig, progress: OnProgress<'_>) -> Result<ReportFiles> {
    let sources = Sources::open(&config.paths)?;
    let out = config.out.clone().unwrap_or_else(|| default_out(&config.paths));
    let mut report = Report::new(out, &title(&sources), config.overwrite)?;
    let runs = sources.runs;
    let open = |(name, predictions)| {
        Material::open(name, predictions, config.data.as_deref(), config.samples, config.seed)
    };
    let materials = sources.predictions.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for material in &materials {
        missing_data(&mut report, material, progress);
    }
    match materials.as_slice() {
        [] => {}
        [one] => one_folder(&mut report, one, config, progress)?,
        many => compare::compare(&mut report, many, config.cases, progress)?,
    }
    if !runs.is_empty() {
        let steps = |run: &Run| format!("{}, {} steps", run.name, run.steps().unwrap_or(0.0));
        let told: Vec<String> = runs.iter().map(steps).collect();
        report.page.fact(if told.len() == 1 { "run" } else { "runs" }, &told.join("; "));
        report.page.section("Training");
        match training::figures(&runs) {
            none if none.is_empty() => report.page.paragraph("Nothing was measured yet."),
            figures => report.show(figures),
        }
    }
    report.write(progress)
}

/// All about one folder of predictions.
fn one_folder(
    report: &mut Report,
    material: &Material,
    config: &ReportConfig,
    progress: OnProgress<'_>,
) -> Result<()> {
    head(report, material);
    score_tables(report, material)?;
    let surveys = survey::survey(material, progress)?;
    cases::sample_dice(report, material, &surveys);
    cases::chosen(report, material, &surveys, &choose::cases(&surveys, config.cases), progress)
}

/// What the folder is of.
fn head(report: &mut Report, material: &Material) {
    let (about, page) = (material.predictions.about(), &mut report.page);
    page.fact("predictions", &material.name);
    page.fact("model", &about.model.name);
    page.fact("dataset", &about.dataset);
    page.fact("part", &about.split);
    page.fact("cases", &material.found.len().to_string());
    page.fact("classes", &material.classes().join(", "));
    page.fact("network", &kind(material.kind(), material.found[0].header.rank));
}

/// Says that there is no dataset, and why.
fn missing_data(report: &mut Report, material: &Material, progress: OnProgress<'_>) {
    let Some(note) = &material.note else { return };
    let what = format!("Images and raters of {} are left out", material.name);
    progress(Progress::Message(&format!("{what}: {note}")));
    report
        .page
        .paragraph(&format!("{what}, because the dataset cannot be opened: {note}. Name it with --data."));
}

/// What `ssn evaluate` found.
fn score_tables(report: &mut Report, material: &Material) -> Result<()> {
    let scores = Scores::read(&material.predictions)?;
    report.page.section("Scores");
    match &scores {
        None => report.page.paragraph(
            "These predictions were not scored yet: run `ssn evaluate` on the folder, and then the report again.",
        ),
        Some(scores) => {
            let settings = &scores.evaluation.settings.scores;
            report.page.paragraph(&format!(
                "Means over cases, or over pairs of a case and a rater, with their standard errors: {} samples of \
                 each case, seed {}. {}",
                settings.samples,
                settings.seed,
                scores::DIRECTIONS
            ));
            report.page.table(&scores.summary_table());
            if let Some(table) = scores.case_table() {
                report.page.section("Scores of each case");
                report.page.paragraph("A click on a heading sorts by that column. Means over the raters of a case.");
                report.page.table(&table);
            }
        }
    }
    Ok(())
}

/// What a network is, in words.
fn kind(kind: Kind, rank: usize) -> String {
    match (kind, rank) {
        (Kind::Stochastic, 0) => "stochastic, independent voxels".to_owned(),
        (Kind::Stochastic, rank) => format!("stochastic, rank {rank}"),
        (Kind::Deterministic, _) => "deterministic".to_owned(),
        (Kind::Sampled, _) => "draws samples itself".to_owned(),
    }
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
