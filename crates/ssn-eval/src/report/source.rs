//! What the named folders are: predictions, or runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{EvalError, Result};
use crate::predictions::Predictions;
use crate::predictions::folder::ABOUT_FILE;

use super::training::{METRICS_FILE, Run};

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
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self> {
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
            sources.predictions.push((name, Predictions::open(path)?));
        }
        for (path, name) in runs.iter().zip(names(&runs)) {
            sources.runs.push(Run::read(path, name)?);
        }
        Ok(sources)
    }
}

fn unknown(path: &Path) -> EvalError {
    if !path.exists() {
        return EvalError::io(path, std::io::Error::new(std::io::ErrorKind::NotFound, "it does not exist"));
    }
    let message = format!(
        "{} is neither a folder of predictions, for it has no {ABOUT_FILE}, nor one of a run, for it lacks \
         {CONFIG_FILE} or {METRICS_FILE}; name what `ssn predict` or `ssn train` wrote",
        path.display()
    );
    EvalError::mismatch(message)
}

/// As many of the last parts of each path as it takes to tell all from each other.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|path| whole(path).iter().map(|part| part.to_string_lossy().into_owned()).collect())
        .collect();
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
    let named = |count: usize| -> Vec<String> {
        parts.iter().map(|parts| parts[parts.len().saturating_sub(count)..].join("/")).collect()
    };
    let differ = |names: &[String]| {
        let unique: BTreeSet<&String> = names.iter().collect();
        unique.len() == names.len()
    };
    // The same folder named twice stays the same.
    (1..=longest).map(named).find(|names| differ(names)).unwrap_or_else(|| named(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let paths = ["x/a/seed0", "x/b/seed0", "x/b/seed1/"].map(PathBuf::from);
        assert_eq!(names(&paths), ["a/seed0", "b/seed0", "b/seed1"]);
        assert_eq!(names(&paths[1..]), ["seed0", "seed1"]);
        assert_eq!(names(&[PathBuf::from("a"), PathBuf::from("a")]), ["a", "a"]);
    }
}
