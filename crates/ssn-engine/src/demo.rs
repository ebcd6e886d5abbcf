//! `ssn demo`: the whole way from images to samples, scores and pictures.

use ssn::data::text::shell_quoted;
use ssn::{Control, Demo, DemoConfig, demo};
use ssn_cli::args::Global;
use ssn_cli::exit::print;
use ssn_cli::verbs::view::export_page;
use ssn_cli::{Failure, progress, signals};

/// The viewer's page with the cases of the low-rank network.
const VIEWER: &str = "viewer.html";

/// Runs the verb.
pub fn run(config: &DemoConfig, global: &Global) -> Result<(), Failure> {
    let (stop, show) = (signals::stop_flag("step")?, progress::show(global.quiet));
    let Demo { table, json, comparison, detail, predictions, seconds } =
        demo(config, Control { progress: &show, stop: &stop })?;
    let viewer = config.out.join(VIEWER);
    export_page(&predictions, &viewer, &show)?;
    print(&if global.json {
        json
    } else {
        format!(
            "\n{table}\n{seconds:.0} s. Open in a browser:\n  {}\n      the three networks beside each other\n  {}\n      the low-rank \
             network alone, steered\n  {}\n      samples of the low-rank network, to steer yourself\nOr serve them, as for any \
             predictions:\n  ssn view {}\n",
            comparison.display(),
            detail.display(),
            viewer.display(),
            shell_quoted(&predictions.display().to_string())
        )
    })
}
