//! What an experiment writes of its finished rows: the table in the form of the paper's with what networks cost, every figure for
//! programs, and figures of rows that differ in one number.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use ssn_args::CheckpointChoice;
use ssn_data::text::csv_text;
use ssn_eval::Evaluation;
use ssn_eval::registry::{DSC, DSC_NOD, GED2, RATER_DIVERSITY, SAMPLE_DIVERSITY, ScoreKey, definition};
use ssn_report::figures::{AblationAxes, AblationPoint, ablation_figure, png_from_svg};

use super::finished::{Average, Finished, ScoredRun};
use super::plan::ExperimentPlan;
use crate::error::{Error, Result};
use crate::text;

/// A column of scores: its heading, the figure's name, its factor, and its decimals.
struct Column {
    heading: String,
    key: String,
    factor: f64,
    decimals: usize,
}

/// The columns of scores: with one mask as in the paper's table of LIDC, with more as in that of BraTS.
fn columns(rows: &[Finished<'_>]) -> Vec<Column> {
    let column = |key: &'static str, mask: Option<&str>, heading: Option<String>| {
        let score = definition(key);
        let (factor, decimals) = score.quantity.in_tables();
        // GED² of all samples has the key without their number.
        let name = ScoreKey { score, samples: None, mask }.to_string();
        Column { heading: heading.unwrap_or_else(|| score.heading.to_owned()), key: name, factor, decimals }
    };
    let masks: Vec<&str> = scored(rows).map_or(vec![], |row| row.masks().collect());
    let mut columns: Vec<Column> = match masks[..] {
        [mask] => [DSC, DSC_NOD].map(|key| column(key, Some(mask), None)).into(),
        _ => masks.iter().map(|mask| column(DSC, Some(mask), Some(format!("DSC {mask} %")))).collect(),
    };
    columns.extend([GED2, SAMPLE_DIVERSITY].map(|key| column(key, None, None)));
    columns
}

/// A row that has scores, which tells what scores there are.
fn scored<'a, 'b>(rows: &'a [Finished<'b>]) -> Option<&'a Finished<'b>> {
    rows.iter().find(|row| !row.seeds.is_empty())
}

const NONE: &str = "–";

/// The figure of a column.
fn found<'a>(row: &'a Finished<'_>, key: &str) -> Option<&'a Average> {
    if key == GED2 { row.ged() } else { row.average(key) }
}

/// Both tables, as Markdown, with notes on what failed.
pub fn markdown(plan: &ExperimentPlan, rows: &[Finished<'_>], failed: &[String]) -> String {
    let has_groups = rows.iter().any(|row| row.row.group.is_some());
    let has_seeds = rows.iter().any(|row| row.seeds.len() > 1);
    let names = |row: &Finished<'_>| {
        let group = has_groups.then(|| row.row.group.clone().unwrap_or_default());
        group.into_iter().chain([row.row.name.clone()]).collect::<Vec<_>>()
    };
    let heading = || has_groups.then_some("group").into_iter().chain(["network"]).map(str::to_owned);
    let left = heading().count();

    let columns = columns(rows);
    let mut scores: Vec<Vec<String>> = vec![heading().collect()];
    for column in &columns {
        scores[0].push(column.heading.clone());
        scores[0].extend((has_seeds && column.key == GED2).then(|| "GED² of seeds".to_owned()));
    }
    scores[0].extend(["steps", "seeds"].map(str::to_owned));
    for row in rows {
        let mut cells = names(row);
        for Column { key, factor, decimals, .. } in &columns {
            let average = found(row, key);
            let (mean, error) =
                average.map_or((None, None), |average| (average.mean, average.standard_error));
            cells.push(text::mean(mean, error, *factor, *decimals));
            if has_seeds && key == GED2 {
                let over_seeds = average.and_then(|a| Some((a.lowest?, a.highest?, a.seed_standard_error?)));
                cells.push(over_seeds.map_or(NONE.to_owned(), |(low, high, error)| {
                    format!("{low:.decimals$}–{high:.decimals$} ± {error:.0$}", decimals + 1)
                }));
            }
        }
        cells.push(row.steps().map_or(NONE.to_owned(), |steps| steps.to_string()));
        cells.push(match (row.seeds.len(), row.row.seeds.len()) {
            (found, all) if found == all => all.to_string(),
            (found, all) => format!("{found} of {all}"),
        });
        scores.push(cells);
    }

    let mut costs: Vec<Vec<String>> = vec![heading().collect()];
    costs[0].extend(
        ["parameters", "ms per step", "s per image", "samples of it", "samples per s"].map(str::to_owned),
    );
    for row in rows {
        let cost = row.cost;
        let mut cells = names(row);
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or(NONE.to_owned(), |x| format!("{x:.decimals$}"))
        };
        cells.push(cost.parameters.map_or(NONE.to_owned(), |count| count.to_string()));
        cells.push(number(cost.step_milliseconds, 2));
        cells.push(number(cost.image_seconds, 4));
        cells.push(cost.samples.map_or(NONE.to_owned(), |samples| samples.to_string()));
        cells.push(number(cost.samples_per_second, 0));
        costs.push(cells);
    }

    let mut text =
        format!("# {}\n\n{}\n{}", plan.title, text::table(&scores, left), explanation(plan, rows, has_seeds));
    if !failed.is_empty() {
        let notes: Vec<String> = failed.iter().map(|note| format!("- {note}\n")).collect();
        text += &format!("\nWhat failed, and is tried again by the same command:\n\n{}", notes.concat());
    }
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## Cost\n\n{}\nA step is measured without the first of each start, without validations and checkpoints. \
         Seconds per image go from the image in memory to the label maps of its samples: the network, and drawing from \
         what it predicts, measured when nothing else is computed. During training, earlier rows may be scored.\n",
        text::table(&costs, left)
    );
    text
}

/// What stands below the scores.
fn explanation(plan: &ExperimentPlan, rows: &[Finished<'_>], has_seeds: bool) -> String {
    let cases = scored(rows).map_or(0, |row| row.cases);
    let counts = rows.iter().map(Finished::counts);
    let (raters, samples) = counts.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let part = match plan.mark.folds {
        0 => "test cases".to_owned(),
        folds => format!("cases in {folds} folds, each predicted by networks that have not seen it"),
    };
    let mut text = format!("{cases} {part}; up to {raters} raters; {samples} samples of each case, ");
    text += "and the prediction alone of deterministic networks. ";
    if plan.mark.checkpoint == CheckpointChoice::Best {
        text += "Of each run, the checkpoint with the best validation. ";
    }
    text += match has_seeds {
        false => "Mean ± standard error over the cases (DSC: over cases and raters).",
        true => {
            "Mean over seeds ± standard error over the cases (DSC: over cases and raters), whose values are averaged over \
             the seeds first; GED² of seeds: the lowest and the highest mean of a seed ± standard error over seeds."
        }
    };
    let diversity =
        scored(rows).and_then(|row| row.average(RATER_DIVERSITY)).and_then(|average| average.mean);
    if let Some(diversity) = diversity.filter(|_| raters > 1) {
        let _ = write!(text, " Diversity of raters: {diversity:.3}.");
    }
    text.push('\n');
    text
}

/// The same figures for programs, with all their digits: a line per row.
pub fn csv(rows: &[Finished<'_>]) -> String {
    let columns = columns(rows);
    let mut head = vec!["group".to_owned(), "network".to_owned()];
    for Column { key, .. } in &columns {
        head.extend(
            ["", " standard_error", " seed_standard_error", " lowest_seed", " highest_seed"]
                .map(|what| format!("{key}{what}")),
        );
    }
    head.extend(
        [
            "steps",
            "seeds",
            "parameters",
            "step_milliseconds",
            "image_seconds",
            "samples",
            "samples_per_second",
        ]
        .map(str::to_owned),
    );
    let mut lines = vec![head];
    for row in rows {
        let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut cells = vec![row.row.group.clone().unwrap_or_default(), row.row.name.clone()];
        for Column { key, .. } in &columns {
            let average = found(row, key);
            cells.extend(
                average
                    .map_or([None; 5], |a| {
                        [a.mean, a.standard_error, a.seed_standard_error, a.lowest, a.highest]
                    })
                    .map(text),
            );
        }
        let cost = row.cost;
        cells.push(row.steps().map_or(String::new(), |steps| steps.to_string()));
        cells.push(row.seeds.len().to_string());
        cells.push(cost.parameters.map_or(String::new(), |count| count.to_string()));
        cells.extend([cost.step_milliseconds, cost.image_seconds].map(text));
        cells.push(cost.samples.map_or(String::new(), |samples| samples.to_string()));
        cells.push(text(cost.samples_per_second));
        lines.push(cells);
    }
    csv_text(&lines)
}

/// The text of `results.json`.
pub fn json(plan: &ExperimentPlan, rows: &[Finished<'_>], failed: &[String]) -> Result<String> {
    let rows = rows.iter().map(row).collect::<Result<Vec<Value>, _>>();
    let rows = rows.map_err(Error::internal)?;
    let all = json!({
        "title": plan.title, "samples": plan.mark.samples, "folds": plan.mark.folds, "rows": rows, "failed": failed
    });
    Ok(format!("{all:#}\n"))
}

fn row(finished: &Finished<'_>) -> Result<Value, serde_json::Error> {
    let mut figures = Map::new();
    for (key, average) in &finished.averages {
        figures.insert(key.clone(), serde_json::to_value(average)?);
    }
    Ok(json!({
        "group": finished.row.group,
        "name": finished.row.name,
        "settings": finished.row.set,
        "seeds": finished.seeds,
        "steps": finished.steps(),
        "cases": finished.cases,
        "figures": figures,
        "cost": serde_json::to_value(finished.cost)?,
        "runs": finished.runs.iter().map(run).collect::<Result<Vec<Value>, _>>()?,
    }))
}

fn run(run: &ScoredRun<'_>) -> Result<Value, serde_json::Error> {
    let evaluation = &run.evaluated.evaluation;
    let mut figures = Map::new();
    for figure in &evaluation.figures {
        let value = json!({
            "mean": figure.mean, "standard_error": figure.standard_error, "values": figure.values,
            "undefined": figure.undefined
        });
        figures.insert(figure.key.clone(), value);
    }
    Ok(json!({
        "seed": run.job.seed,
        "fold": run.job.fold,
        "run": run.job.run,
        "predictions": run.job.predictions,
        "cases": evaluation.cases,
        "model": evaluation.settings.model.sha256,
        "measured": serde_json::to_value(&run.record)?,
        "figures": figures,
    }))
}

/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 2.0;

/// The scores that are drawn: the end of the file's name, the key, and the axis.
const DRAWN: [(&str, &str, &str); 2] =
    [("ged", GED2, "GED² (lower is better)"), ("dice", DSC, "Dice (higher is better)")];

/// The figures of rows that differ in one number, such as the rank: scores against it, with their spread over seeds. The names and
/// bytes of the files; none where rows are no series of numbers.
pub fn figures(title: &str, rows: &[Finished<'_>]) -> Result<Vec<(String, Vec<u8>)>> {
    let named: Option<Vec<(&str, f64)>> = rows.iter().map(|row| setting(&row.row.name)).collect();
    let Some(named) = named.filter(|named| named.len() > 1 && named.iter().all(|one| one.0 == named[0].0))
    else {
        return Ok(vec![]);
    };
    let mut files = vec![];
    for (name, key, y) in DRAWN {
        let point = |(row, (_, x)): (&Finished<'_>, &(&str, f64))| AblationPoint {
            network: row.row.group.clone().unwrap_or_default(),
            x: *x,
            values: row.seeds.iter().filter_map(|&seed| mean(row, seed, key)).collect(),
        };
        let points: Vec<AblationPoint> = rows.iter().zip(&named).map(point).collect();
        if points.iter().all(|point| point.values.is_empty()) {
            continue;
        }
        let svg = ablation_figure(AblationAxes { title, x: named[0].0, y }, &points);
        let png = png_from_svg(&svg, PNG_SCALE).map_err(Error::internal)?;
        files.extend([(format!("{name}.png"), png), (format!("{name}.svg"), svg.into_bytes())]);
    }
    Ok(files)
}

/// The words of a name and the number at its end: `rank` and 10 of `rank 10`.
fn setting(name: &str) -> Option<(&str, f64)> {
    let (words, number) = name.rsplit_once(' ')?;
    Some((words, number.parse().ok().filter(|number: &f64| number.is_finite())?))
}

/// The mean of a figure over the folds of a seed; of GED², that of most samples, the last of its kind.
fn mean(row: &Finished<'_>, seed: u64, key: &str) -> Option<f64> {
    let runs = row.runs.iter().filter(|run| run.job.seed == seed);
    let figure = |evaluation: &Evaluation| evaluation.last(key)?.mean;
    let means: Vec<f64> = runs.filter_map(|run| figure(&run.evaluated.evaluation)).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn names_end_with_the_number_of_a_series() {
        assert_eq!(setting("rank 10"), Some(("rank", 10.0)));
        assert_eq!(setting("likelihood exponent 0.5"), Some(("likelihood exponent", 0.5)));
        assert_eq!(setting("rank ten"), None);
        assert_eq!(setting("diagonal"), None);
    }
}
