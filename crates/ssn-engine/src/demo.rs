//! `ssn demo`: the whole way from images to samples and scores.

use ssn::{Control, Demo, DemoConfig, demo};
use ssn_cli::args::{DemoArgs, Global};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure, progress};

use crate::failure::failure;
use crate::signals;

/// Runs the verb.
pub fn run(args: &DemoArgs, global: &Global) -> Result<Exit, Failure> {
    let (stop, show) = (signals::stop_flag()?, progress::show(global.quiet));
    let config = DemoConfig {
        out: args.out.clone(),
        seed: args.seed,
        cases: args.cases as usize,
        settings: args.settings.clone(),
        device: args.device,
    };
    let Demo { table, json, comparison, detail, seconds } =
        demo(&config, Control { progress: &show, stop: &stop }).map_err(failure)?;
    print(&if global.json {
        json
    } else {
        format!(
            "\n{table}\n{seconds:.0} s. Open in a browser:\n  {}  the three networks beside each other\n  {}  the low-rank network alone, steered\n",
            comparison.display(),
            detail.display()
        )
    })
}
