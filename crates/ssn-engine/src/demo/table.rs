//! The scores of the three networks beside each other, as in the paper's table.

use std::fmt::Write;

use serde_json::{Value, json};
use ssn_cli::args::DemoArgs;
use ssn_cli::evaluate::Evaluated;
use ssn_eval::Evaluation;
use ssn_eval::evaluation::Figure;

use crate::markdown;

/// Heading, the beginning of the figure's key, factor, and decimals of each column.
const COLUMNS: [(&str, &str, f64, usize); 5] = [
    ("GED²", "ged2_", 1.0, 3),
    ("diversity", "sample_diversity", 1.0, 3),
    ("DSC %", "dsc ", 100.0, 1),
    ("DSC_nod %", "dsc_nod ", 100.0, 1),
    ("HM-IoU", "hm_iou", 1.0, 3),
];

/// The figure of a column: GED² of all samples, which is the last.
fn figure<'a>(evaluation: &'a Evaluation, key: &str) -> Option<&'a Figure> {
    evaluation.figures.iter().rfind(|figure| figure.key.starts_with(key))
}

fn cell(figure: Option<&Figure>, factor: f64, decimals: usize) -> String {
    let (mean, error) = figure.map_or((None, None), |figure| (figure.mean, figure.standard_error));
    markdown::mean(mean, error, factor, decimals)
}

/// The table, as Markdown.
pub fn table(evaluated: &[(&str, Evaluated)]) -> String {
    let mut rows =
        vec![std::iter::once("network").chain(COLUMNS.map(|column| column.0)).map(str::to_owned).collect()];
    for (name, Evaluated { evaluation, .. }) in evaluated {
        let cells = COLUMNS.map(|(_, key, factor, decimals)| cell(figure(evaluation, key), factor, decimals));
        rows.push(std::iter::once((*name).to_owned()).chain(cells).collect::<Vec<_>>());
    }
    if let Some((_, Evaluated { evaluation, .. })) = evaluated.last() {
        let raters = cell(figure(evaluation, "rater_diversity"), 1.0, 3);
        rows.push(vec!["raters".into(), String::new(), raters]);
    }
    let mut text = markdown::table(&rows, 1);
    let cases = evaluated.first().map_or(0, |(_, evaluated)| evaluated.evaluation.cases);
    let samples = evaluated.last().map_or(0, |(_, e)| e.cases.first().map_or(0, |case| case.scores.samples));
    let _ = writeln!(
        text,
        "\n{cases} test images; {samples} samples of each distribution, the prediction alone of the deterministic \
         network; mean ± standard error."
    );
    text
}

/// The same for programs.
pub fn json(args: &DemoArgs, evaluated: &[(&str, Evaluated)], seconds: f64) -> String {
    let models: serde_json::Map<String, Value> = evaluated
        .iter()
        .map(|(name, Evaluated { evaluation, .. })| {
            let figures: serde_json::Map<String, Value> = evaluation
                .figures
                .iter()
                .map(|figure| {
                    let value = json!({ "mean": figure.mean, "standard_error": figure.standard_error });
                    (figure.key.clone(), value)
                })
                .collect();
            ((*name).to_owned(), Value::Object(figures))
        })
        .collect();
    format!(
        "{:#}\n",
        json!({ "seed": args.seed, "cases": args.cases, "seconds": seconds, "networks": models })
    )
}
