//! `ssn demo`: the whole way from images to samples, scores and pictures.

use ssn::data::text::shell_quoted;
use ssn::{Control, Demo, DemoConfig, demo};
use ssn_cli::verbs::view::export_page;
use ssn_cli::{Answer, Failure};

/// The viewer's page with the cases of the low-rank network.
const VIEWER: &str = "viewer.html";

/// Runs the verb.
pub fn answer(config: &DemoConfig, control: Control<'_>) -> Result<Answer, Failure> {
    let Demo { table, json, comparison, detail, predictions, seconds } = demo(config, control)?;
    let viewer = config.out.join(VIEWER);
    export_page(&predictions, &viewer, control.progress)?;
    let text = format!(
        "\n{table}\n{seconds:.0} s. Open in a browser:\n  {}\n      the three networks beside each other\n  {}\n      the low-rank \
         network alone, steered\n  {}\n      samples of the low-rank network, to steer yourself\nOr serve them, as for any \
         predictions:\n  ssn view {}\n",
        comparison.display(),
        detail.display(),
        viewer.display(),
        shell_quoted(&predictions.display().to_string())
    );
    Ok(Answer::of_json(text, Some(json)))
}
