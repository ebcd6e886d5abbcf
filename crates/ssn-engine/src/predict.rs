//! `ssn predict`: the distribution of each case of a dataset, or of images, as files.

use serde_json::json;
use ssn::{Control, Phases, PredictConfig, Predicted, predict};
use ssn_cli::args::Global;
use ssn_cli::{Answer, Failure, shard};

/// Runs the verb.
pub fn answer(config: &PredictConfig, global: &Global, control: Control<'_>) -> Result<Answer, Failure> {
    let shard = shard::choose(config.shard, global.quiet, global.json);
    let prints_json = shard::prints_json(config.shard);
    let config = PredictConfig { shard: Some(shard), ..config.clone() };
    let Predicted { model, made, kept, index, seconds, phases, .. } = predict(&config, control)?;
    let mut json = json!({
        "predicted": made, "kept": kept, "index": index.as_ref().ok(), "seconds": seconds, "phases": phases
    });
    let index = match index {
        Ok(index) => index.display().to_string(),
        Err(waiting) => {
            json["shards"] = json!(waiting);
            format!("{waiting}; the last one writes it")
        }
    };
    let kept = if kept == 0 { String::new() } else { format!(", {kept} were there") };
    let text = format!(
        "model       {model}\npredicted   {made} cases in {seconds:.1} s{kept}\n{}\nindex       {index}\n",
        line(&phases)
    );
    let mut answer = Answer::new(text, &json)?;
    if !prints_json {
        answer.json = None;
    }
    Ok(answer)
}

/// Where the time went.
fn line(phases: &Phases) -> String {
    let busy = phases
        .gpu
        .map(|gpu| format!(" (the GPU had work {:.0} % of it)", 100.0 * gpu / phases.network.max(1e-9)));
    format!(
        "time        {:.1} s reading, {:.1} s network{}, {:.1} s preparing, {:.1} s writing; one case beside the other",
        phases.read,
        phases.network,
        busy.unwrap_or_default(),
        phases.prepare,
        phases.write
    )
}
