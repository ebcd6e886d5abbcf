//! What a run learns from: a hash of every case, by which a run that goes on notices that its dataset changed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_data::{Split, parallel};
use ssn_io::{Limits, read_bytes, write_atomically};

use super::folder::{ResolvedRun, unusable};
use crate::error::{Result, TrainError, unsaved};

/// The hashes in the folder of a run.
const INPUTS: &str = "data.json";
/// Cases that are named in a message; the rest is counted.
const NAMED: usize = 5;

/// SHA-256 of image and labels of each case for training and validation, by its id.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInputs {
    cases: BTreeMap<String, String>,
}

impl RunInputs {
    /// Reads all of those cases.
    pub fn of(resolved: &ResolvedRun, progress: parallel::Progress<'_>) -> Result<Self> {
        let dataset = &resolved.dataset;
        let used: Vec<usize> =
            (0..dataset.entries.len()).filter(|&index| resolved.parts[index] != Split::Test).collect();
        let hashes = parallel::map(used.len(), progress, |number, _| dataset.case_sha256(used[number]));
        let hashes = parallel::all_or_error(hashes, |number| &dataset.entries[used[number]].id)?;
        let ids = used.iter().map(|&index| dataset.entries[index].id.clone());
        Ok(Self { cases: ids.zip(hashes).collect() })
    }

    /// Makes sure that a run goes on with what it began with, or keeps what it begins with; gives what changed if that is allowed.
    ///
    /// # Errors
    /// A dataset that changed, unless that is allowed.
    pub fn keep(&self, run: &Path, allow_changes: bool) -> Result<Option<String>> {
        let path = run.join(INPUTS);
        let change = if path.exists() { self.change(&path) } else { None };
        if let Some(reason) = change.as_ref().filter(|_| !allow_changes) {
            let advice = "go on all the same with --allow-changed-data, or begin a new run";
            return Err(unusable(run, reason, advice));
        }
        if change.is_some() || !path.exists() {
            let text = serde_json::to_string_pretty(self)
                .map_err(|error| TrainError::Config { path: path.clone(), reason: error.to_string() })?;
            write_atomically(&path, |out| out.write_all((text + "\n").as_bytes()))
                .map_err(|error| unsaved(&path, error.source))?;
        }
        Ok(change)
    }

    /// In what the dataset differs from what a file tells.
    fn change(&self, path: &Path) -> Option<String> {
        let bytes = read_bytes(path, &Limits::default()).map_err(|error| error.to_string());
        let before: Self =
            match bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
                Ok(before) => before,
                Err(error) => {
                    return Some(format!("whether its dataset changed cannot be told: {INPUTS}: {error}"));
                }
            };
        let (before, now) = (&before.cases, &self.cases);
        let changed = now.iter().filter(|(id, hash)| before.get(*id).is_some_and(|known| known != *hash));
        let differences = [
            ("changed", changed.map(|(id, _)| id).collect::<Vec<_>>()),
            ("new", now.keys().filter(|id| !before.contains_key(*id)).collect()),
            ("gone", before.keys().filter(|id| !now.contains_key(*id)).collect()),
        ];
        let told: Vec<String> = differences
            .iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(what, ids)| named(what, ids))
            .collect();
        (!told.is_empty()).then(|| format!("its dataset is another than when it began ({})", told.join("; ")))
    }
}

fn named(what: &str, ids: &[&String]) -> String {
    let shown: Vec<&str> = ids.iter().take(NAMED).map(|id| id.as_str()).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => format!("{what}: {}", shown.join(", ")),
        more => format!("{what}: {} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(cases: &[(&str, &str)]) -> RunInputs {
        RunInputs { cases: cases.iter().map(|(id, hash)| ((*id).to_owned(), (*hash).to_owned())).collect() }
    }

    #[test]
    fn what_changed_is_named_and_kept_once_it_is_allowed() {
        let run = tempfile::tempdir().unwrap();
        let (first, second) =
            (inputs(&[("a", "1"), ("b", "2")]), inputs(&[("a", "1"), ("b", "3"), ("c", "4")]));
        assert_eq!(first.keep(run.path(), false).unwrap(), None);
        assert_eq!(first.keep(run.path(), false).unwrap(), None);
        let refused = second.keep(run.path(), false).unwrap_err().to_string();
        assert!(
            refused.contains("(changed: b; new: c)") && refused.contains("--allow-changed-data"),
            "{refused}"
        );
        assert_eq!(first.keep(run.path(), false).unwrap(), None, "nothing was written");
        assert!(second.keep(run.path(), true).unwrap().is_some());
        assert_eq!(second.keep(run.path(), false).unwrap(), None);
        let gone = first.keep(run.path(), false).unwrap_err().to_string();
        assert!(gone.contains("(changed: b; gone: c)"), "{gone}");
        std::fs::write(run.path().join(INPUTS), "{").unwrap();
        assert!(second.keep(run.path(), false).unwrap_err().to_string().contains("cannot be told"));
        assert!(second.keep(run.path(), true).unwrap().is_some());
        assert_eq!(second.keep(run.path(), false).unwrap(), None);
    }
}
