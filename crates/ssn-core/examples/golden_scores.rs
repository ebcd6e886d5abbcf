//! Scores beside golden values: `golden_scores DIR` prints a table for the files `ged.json` and `ged.safetensors` of a folder.
//!
//! `ged.json` is a list of cases with `classes`, `ged`, `sample_diversity` and `rater_diversity`; the safetensors
//! file has the label maps `caseK.samples` and `caseK.raters`, uint8, the first axis counting maps. Ends with 1 when
//! a value differs by more than 1e-12.

use std::path::Path;
use std::process::ExitCode;

#[path = "../tests/golden/compare.rs"]
mod compare;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("error: which folder? golden_scores DIR, with DIR/ged.json and DIR/ged.safetensors");
        return ExitCode::from(2);
    };
    match compare::table(Path::new(&folder)) {
        Ok((_, true)) => ExitCode::SUCCESS,
        Ok((_, false)) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {}: {error}", Path::new(&folder).display());
            ExitCode::from(65)
        }
    }
}
