//! `ssn report`: what predictions and runs have to show, in one file.

use ssn_core::Control;
use ssn_report::{ReportConfig, report};

use crate::args::Global;
use crate::exit::{Failure, json, print};
use crate::{progress, signals};

/// Makes the report and says where it is.
pub fn run(config: &ReportConfig, global: &Global) -> Result<(), Failure> {
    let (stop, show) = (signals::stop_flag("case")?, progress::show(global.quiet));
    let files = report(config, Control { progress: &show, stop: &stop })?;
    print(&if global.json { json(&files)? } else { format!("{files}\n") })
}
