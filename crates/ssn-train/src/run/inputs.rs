//! Hashes of the cases that a run learns from. A resumed run notices by them that its dataset changed, and predictions
//! that an image was among those for training.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_core::Control;
use ssn_data::text::listed;
use ssn_data::{Split, parallel};
use ssn_io::{Error, Limits, read_bytes, write_atomically};
use ssn_nn::error::{NnError, Result};

use super::folder::{ResolvedRun, unusable};

/// The hashes in the folder of a run.
const INPUTS: &str = "data.json";
/// Cases that are named in a message; the rest is counted.
const NAMED: usize = 5;

/// The cases for training and validation, by their ids.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInputs {
    cases: BTreeMap<String, CaseInput>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CaseInput {
    /// Of image and labels.
    sha256: String,
    /// Of the image.
    #[serde(default)]
    image: String,
    /// What tells without reading the files that nobody wrote to them.
    stamp: Option<String>,
}

/// What is in memory while a file is hashed.
const BYTES_OF_CASE: usize = 1 << 20;

impl RunInputs {
    /// Hashes all of those cases but the ones whose files nobody wrote to since the run last went on.
    ///
    /// # Errors
    /// A file that cannot be read, and [`ErrorKind::Stopped`](ssn_io::ErrorKind::Stopped).
    pub fn of(resolved: &ResolvedRun, run: &Path, control: Control<'_>) -> Result<Self> {
        let known = Self::read(&run.join(INPUTS)).map_or(BTreeMap::new(), |inputs| inputs.cases);
        let dataset = &resolved.dataset;
        let used: Vec<usize> =
            (0..dataset.entries.len()).filter(|&index| resolved.parts[index] != Split::Test).collect();
        let input = |index: usize| -> ssn_data::Result<CaseInput> {
            let stamp = dataset.case_stamp(index);
            let known = known.get(&dataset.entries[index].id);
            let is_same =
                |known: &&CaseInput| stamp.is_some() && known.stamp == stamp && !known.image.is_empty();
            let [image, sha256] = match known.filter(is_same) {
                Some(known) => [known.image.clone(), known.sha256.clone()],
                None => dataset.case_sha256(index)?,
            };
            Ok(CaseInput { sha256, image, stamp })
        };
        let phase = control.phase("hashing", used.len(), "cases");
        let inputs = parallel::map_until(used.len(), &phase, |number, meter| {
            meter.saw_all(BYTES_OF_CASE);
            input(used[number])
        })
        .map_err(|_| Error::stopped())?;
        let inputs = parallel::all_or_error(inputs, |number| &dataset.entries[used[number]].id)?;
        let ids = used.iter().map(|&index| dataset.entries[index].id.clone());
        Ok(Self { cases: ids.zip(inputs).collect() })
    }

    /// Returns the hashes of the images of those of a run's cases that are in `ids`.
    pub(super) fn images(run: &Path, ids: &BTreeSet<String>) -> BTreeSet<String> {
        let cases = Self::read(&run.join(INPUTS)).map_or(BTreeMap::new(), |inputs| inputs.cases);
        let of_ids = cases.into_iter().filter(|(id, case)| ids.contains(id) && !case.image.is_empty());
        of_ids.map(|(_, case)| case.image).collect()
    }

    fn read(path: &Path) -> Result<Self, String> {
        let bytes = read_bytes(path, &Limits::default()).map_err(|error| error.to_string())?;
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }

    /// Makes sure that a run goes on with what it began with, or keeps what it begins with; gives what changed if that is allowed.
    ///
    /// # Errors
    /// A dataset that changed, unless that is allowed.
    pub fn keep(&self, run: &Path, allow_changes: bool) -> Result<Option<String>> {
        let path = run.join(INPUTS);
        let change = if path.exists() { self.change(&path) } else { None };
        if let Some(reason) = change.as_ref().filter(|_| !allow_changes) {
            let advice =
                "go on all the same with `ssn train --resume RUN --allow-changed-data`, or begin a new run";
            return Err(unusable(run, reason, advice));
        }
        if Self::read(&path).as_ref() != Ok(self) {
            let text = serde_json::to_string_pretty(self).map_err(|error| Error::data(&path, error))?;
            write_atomically(&path, |out| out.write_all((text + "\n").as_bytes()))
                .map_err(|error| NnError::unsaved(&path, error.source))?;
        }
        Ok(change)
    }

    /// In what the dataset differs from what a file tells.
    fn change(&self, path: &Path) -> Option<String> {
        let before = match Self::read(path) {
            Ok(before) => before,
            Err(error) => {
                return Some(format!("whether its dataset changed cannot be told: {INPUTS}: {error}"));
            }
        };
        let (before, now) = (&before.cases, &self.cases);
        let changed = now
            .iter()
            .filter(|(id, input)| before.get(*id).is_some_and(|known| known.sha256 != input.sha256));
        let differences = [
            ("changed", changed.map(|(id, _)| id).collect::<Vec<_>>()),
            ("new", now.keys().filter(|id| !before.contains_key(*id)).collect()),
            ("gone", before.keys().filter(|id| !now.contains_key(*id)).collect()),
        ];
        let told: Vec<String> = differences
            .iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(what, ids)| format!("{what}: {}", listed(ids, NAMED)))
            .collect();
        (!told.is_empty()).then(|| format!("its dataset is another than when it began ({})", told.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(cases: &[(&str, &str)]) -> RunInputs {
        let input = |hash: &str| CaseInput { sha256: hash.to_owned(), image: String::new(), stamp: None };
        RunInputs { cases: cases.iter().map(|(id, hash)| ((*id).to_owned(), input(hash))).collect() }
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
