//! Every figure of every row and of every training, for programs.

use serde_json::{Map, Value, json};

use super::finished::{Finished, Run};
use super::plan::Plan;
use crate::error::{Error, ErrorKind, Result};

/// The text of `results.json`.
pub fn json(plan: &Plan, rows: &[Finished<'_>], failed: &[String]) -> Result<String> {
    let rows = rows.iter().map(row).collect::<Result<Vec<Value>, _>>();
    let rows = rows.map_err(|error| Error::new(ErrorKind::Internal, error))?;
    let all = json!({
        "title": plan.title, "samples": plan.samples, "folds": plan.folds, "rows": rows, "failed": failed
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

fn run(run: &Run<'_>) -> Result<Value, serde_json::Error> {
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
