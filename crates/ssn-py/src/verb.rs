//! The verbs of `ssn` that need no libtorch, in this process.

use std::path::PathBuf;

use clap::Parser;
use pyo3::prelude::*;
use ssn_cli::args::sentence;
use ssn_cli::engine::set_programs;
use ssn_cli::{Answer, Cli, Failure, verbs};
use ssn_io::ErrorKind;

use crate::work;

/// The JSON of a verb, its text, the code of its failure or 0, and the message of the failure.
type Outcome = (Option<String>, String, u8, String);

/// Runs a verb with the words of its command line; `on_progress` gets events as JSON. `programs` is the folder of `ssn`.
#[pyfunction]
pub fn run_verb(
    py: Python<'_>,
    words: Vec<String>,
    programs: PathBuf,
    on_progress: &Bound<'_, PyAny>,
) -> PyResult<Outcome> {
    set_programs(programs);
    let words = ["ssn", "--json", "--quiet"].map(str::to_owned).into_iter().chain(words);
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return Ok((None, String::new(), ErrorKind::Usage as u8, sentence(&error))),
    };
    let done =
        work::run_watched(py, on_progress, move |control| verbs::answer(&cli.verb, &cli.global, control))?;
    let (answer, failure) = match done {
        Ok(Answer { text, json, failure, .. }) => ((json, text), failure),
        Err(failure) => ((None, String::new()), Some(failure)),
    };
    let (code, message) =
        failure.map_or((0, String::new()), |Failure { kind, message }| (kind as u8, message));
    Ok((answer.0, answer.1, code, message))
}
