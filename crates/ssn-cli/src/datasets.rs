//! What the verbs about datasets share: failures with the right exit code, and files that are not lost.

use std::path::Path;

use ssn_data::DataError;
use ssn_io::Problem;

use crate::exit::{Exit, Failure};

/// A failure of the data crate: bad data, unless the system refused.
pub fn failure(error: DataError) -> Failure {
    let exit = match &error {
        DataError::File(file) if matches!(file.problem, Problem::Io(_)) => Exit::Io,
        DataError::Write(_) => Exit::Io,
        DataError::Setting { .. } => Exit::Usage,
        _ => Exit::BadData,
    };
    Failure::new(exit, error)
}

/// Whether a path names a config, and not a dataset itself.
pub fn is_config(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Refuses to replace a file unless that was asked for.
pub fn check_free(path: &Path, overwrite: bool) -> Result<(), Failure> {
    check_free_or(path, overwrite, "choose another name with --out")
}

/// The same, with what else than replacing it can be done.
pub fn check_free_or(path: &Path, overwrite: bool, advice: &str) -> Result<(), Failure> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let message = format!("{} exists already; {advice} or replace it with --overwrite", path.display());
    Err(Failure::new(Exit::Usage, message))
}
