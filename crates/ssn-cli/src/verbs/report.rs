//! `ssn report`: what predictions and runs have to show, in one file.

use ssn_report::{ReportConfig, report};

use crate::args::Global;
use crate::exit::{Failure, json, print};
use crate::progress;

/// Makes the report and says where it is.
pub fn run(config: &ReportConfig, global: &Global) -> Result<(), Failure> {
    let files = report(config, &progress::show(global.quiet))?;
    print(&if global.json { json(&files)? } else { format!("{files}\n") })
}
