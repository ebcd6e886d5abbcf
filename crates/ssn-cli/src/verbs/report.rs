//! `ssn report`: predictions and runs in one file.

use ssn_core::Control;
use ssn_report::{ReportConfig, report};

use crate::answer::Answer;
use crate::exit::Failure;

/// Writes the report.
pub fn answer(config: &ReportConfig, control: Control<'_>) -> Result<Answer, Failure> {
    let files = report(config, control)?;
    Answer::new(format!("{files}\n"), &files)
}
