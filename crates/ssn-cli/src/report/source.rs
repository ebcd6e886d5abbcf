//! What the named folders are: predictions, or runs.

use std::path::{Path, PathBuf};

use ssn_predictions::Predictions;
use ssn_predictions::folder::ABOUT_FILE;

use super::training::{METRICS_FILE, Run};
use crate::exit::{Exit, Failure};
use crate::predictions::failure;

/// The frozen config in the folder of a run.
const CONFIG_FILE: &str = "config.toml";

/// All that is to be shown, in the order in which it was named.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Folders of predictions, each with a name of its own.
    pub(super) predictions: Vec<(String, Predictions)>,
    /// Runs, each with a name of its own.
    pub(super) runs: Vec<Run>,
}

impl Sources {
    /// Opens every folder.
    ///
    /// # Errors
    /// A sentence for a folder that is neither, and for one that cannot be read.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (mut predictions, mut runs) = (vec![], vec![]);
        for path in paths {
            if path.join(ABOUT_FILE).is_file() {
                predictions.push(path.clone());
            } else if path.join(CONFIG_FILE).is_file() && path.join(METRICS_FILE).is_file() {
                runs.push(path.clone());
            } else {
                return Err(unknown(path));
            }
        }
        let mut sources = Self::default();
        for (path, name) in predictions.iter().zip(names(&predictions)) {
            sources.predictions.push((name, Predictions::open(path).map_err(failure)?));
        }
        for (path, name) in runs.iter().zip(names(&runs)) {
            sources.runs.push(Run::read(path, name)?);
        }
        Ok(sources)
    }
}

fn unknown(path: &Path) -> Failure {
    if !path.exists() {
        return Failure::new(Exit::Io, format!("{} does not exist", path.display()));
    }
    let message = format!(
        "{} is neither a folder of predictions, for it has no {ABOUT_FILE}, nor one of a run, for it lacks \
         {CONFIG_FILE} or {METRICS_FILE}; name what `ssn predict` or `ssn train` wrote",
        path.display()
    );
    Failure::new(Exit::BadData, message)
}

/// The last part of each path; where two would be the same, as much of the path as was typed.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let last = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| {
            let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            whole
                .file_name()
                .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
        })
    };
    let short: Vec<String> = paths.iter().map(|path| last(path)).collect();
    let twice = |name: &String| short.iter().filter(|other| *other == name).count() > 1;
    paths
        .iter()
        .zip(&short)
        .map(|(path, name)| if twice(name) { path.display().to_string() } else { name.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let paths = ["a/rank-2", "b/rank-2", "b/plain/"].map(PathBuf::from);
        assert_eq!(names(&paths), ["a/rank-2", "b/rank-2", "plain"]);
    }
}
