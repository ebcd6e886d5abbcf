//! `ssn report`: what predictions and runs have to show, in one file.

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

use ssn_eval::Kind;

use crate::args::{Global, ReportArgs};
use crate::exit::{Exit, Failure, json, print, tell};
use crate::progress::Progress;
use material::Material;
use output::Report;
pub use output::Written;
use scores::Scores;
use source::Sources;
use training::Run;

/// Makes the report and says where it is.
pub fn run(args: &ReportArgs, global: &Global) -> Result<Exit, Failure> {
    let written = report(args, global.quiet)?;
    print(&if global.json { json(&written)? } else { written.line() })
}

/// Makes the report.
///
/// # Errors
/// A sentence for a folder that is none of ours or cannot be read, and for a report that is there already.
pub fn report(args: &ReportArgs, quiet: bool) -> Result<Written, Failure> {
    let sources = Sources::open(&args.paths)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.paths));
    let mut report = Report::new(out, &title(&sources), args.overwrite)?;
    let runs = sources.runs;
    let open = |(name, predictions)| {
        Material::open(name, predictions, args.data.as_deref(), args.samples, args.seed)
    };
    let materials = sources.predictions.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for material in &materials {
        missing_data(&mut report, material, quiet);
    }
    match materials.as_slice() {
        [] => {}
        [one] => one_folder(&mut report, one, args, quiet)?,
        many => compare::compare(&mut report, many, args.cases, quiet)?,
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
    let progress = Progress::new(0, "cases", quiet);
    let written = report.write(&progress);
    progress.finish();
    written
}

/// All about one folder of predictions.
fn one_folder(
    report: &mut Report,
    material: &Material,
    args: &ReportArgs,
    quiet: bool,
) -> Result<(), Failure> {
    head(report, material);
    score_tables(report, material)?;
    let surveys = survey::survey(material, quiet)?;
    cases::sample_dice(report, material, &surveys);
    cases::chosen(report, material, &surveys, &choose::cases(&surveys, args.cases), quiet)
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
fn missing_data(report: &mut Report, material: &Material, quiet: bool) {
    let Some(note) = &material.note else { return };
    let what = format!("Images and raters of {} are left out", material.name);
    if !quiet {
        tell(&format!("{what}: {note}"));
    }
    report
        .page
        .paragraph(&format!("{what}, because the dataset cannot be opened: {note}. Name it with --data."));
}

/// What `ssn evaluate` found.
fn score_tables(report: &mut Report, material: &Material) -> Result<(), Failure> {
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
